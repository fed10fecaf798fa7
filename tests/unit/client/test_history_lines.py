"""Operations that a client records become lines of the history, nothing of them lost or made up."""

import msgspec
import pytest

from laststand.emulator.core.client.history_lines import history_line
from laststand.emulator.core.client.steps import FinalReadRecorded, PollRecorded, SendRecorded
from laststand.emulator.core.history import OperationType, SendOperation
from laststand.emulator.core.types import Acks, CauseId, LeaderEpoch, NodeId, Offset, TopicId, TopicPartition

ORDERS = TopicPartition("orders", 2)
TOPIC_ID = TopicId("first")


@pytest.mark.parametrize(("acks", "base_offset"), [(Acks.ALL, 7), (Acks.LEADER, 7), (Acks.NONE, None)])
def test_a_batch_without_an_answer_has_no_offset(acks: Acks, base_offset: int | None) -> None:
    recorded = SendRecorded(
        operation_id=CauseId("p/1"),
        type=OperationType.OK,
        partition=ORDERS,
        topic_id=TOPIC_ID,
        first_record_id=30,
        record_count=3,
        base_offset=Offset(7),
    )
    line = history_line(recorded, index=4, time_ns=9, process="p", acks=acks)
    assert isinstance(line, SendOperation)
    assert (line.index, line.time_ns, line.process, line.acks) == (4, 9, "p", int(acks))
    assert (line.topic, line.partition, line.base_offset) == ("orders", 2, base_offset)
    assert (line.first_record_id, line.record_count) == (30, 3)


def test_lines_hold_everything_that_was_recorded() -> None:
    poll = PollRecorded(
        operation_id=CauseId("c/1"),
        type=OperationType.OK,
        partition=ORDERS,
        topic_id=TOPIC_ID,
        node=NodeId(1),
        leader_epoch=LeaderEpoch(5),
        position=Offset(20),
        seek=True,
        high_watermark=Offset(25),
        log_start_offset=Offset(3),
        error="NONE",
    )
    read = FinalReadRecorded(
        operation_id=CauseId("c/2"),
        type=OperationType.INFO,
        partition=ORDERS,
        topic_id=TOPIC_ID,
        start_offset=Offset(3),
        end_offset=Offset(25),
        error="gave up",
    )
    lines = (
        (poll, history_line(poll, index=0, time_ns=1, process="c", phase="live")),
        (read, history_line(read, index=1, time_ns=2, process="c")),
    )
    for recorded, line in lines:
        expected = {**msgspec.structs.asdict(recorded), "topic": "orders", "partition": 2}
        written = msgspec.structs.asdict(line)
        assert {name: written[name] for name in expected} == expected
