"""Segments that storage dropped, and requests that name a partition twice, as a broker takes them."""

from laststand.emulator.core import inputs, messages, records
from laststand.emulator.core.effects import AppendToLog, RecordEvent, WriteEpochCheckpoint
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Offset, RequestId
from tests.unit.core.broker.hosting import NAME, OWN, TOPIC_ID
from tests.unit.core.broker.kraft.test_broker_steps import CAUSE, Life, fetch, produce


def test_epochs_of_dropped_segments_leave_the_checkpoint() -> None:
    life = Life()
    life.serve()
    life.ask(produce(acks=1))
    for _ in range(2):
        life.metadata(records.PartitionChangeRecord(topic_id=TOPIC_ID, partition=0, leader=OWN))
        life.ask(produce(acks=1))
    effects = life.step(inputs.SegmentsDeleted(cause_id=CAUSE, partition=NAME, log_start_offset=Offset(2)))
    (checkpoint,) = [effect for effect in effects if isinstance(effect, WriteEpochCheckpoint)]
    # That of the last record that is gone stays (S50).
    assert [(entry.leader_epoch, entry.start_offset) for entry in checkpoint.epochs] == [(1, 1), (2, 2)]


def test_a_request_that_names_a_partition_twice_appends_nothing() -> None:
    # One block of bytes per partition: two batches for one could not be told apart.
    life = Life()
    life.serve()
    asked = produce(acks=1)
    twice = type(asked)(acks=1, timeout_ms=1000, partitions=asked.partitions * 2)
    effects = life.step(inputs.RequestReceived(cause_id=CAUSE, request_id=RequestId(99), request=twice))
    assert not any(isinstance(effect, AppendToLog) for effect in effects)
    answer = life.answers[RequestId(99)]
    assert isinstance(answer, messages.ProduceResponse)
    assert [partition.error for partition in answer.partitions] == [ErrorCode.INVALID_REQUEST] * 2
    life.ask(fetch(0))


def test_segments_that_end_where_the_log_starts_change_nothing() -> None:
    life = Life()
    life.serve()
    life.ask(produce(acks=1))
    effects = life.step(inputs.SegmentsDeleted(cause_id=CAUSE, partition=NAME, log_start_offset=Offset(0)))
    assert not any(isinstance(effect, RecordEvent) for effect in effects)
