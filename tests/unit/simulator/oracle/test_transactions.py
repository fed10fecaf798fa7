"""Checks of transactions, each on the log of a transaction that is doctored until it must fire."""

import msgspec
import pytest

from laststand.emulator.core.batch import BatchDescriptor, Marker, TransactionResult
from laststand.emulator.core.client.steps import CommittedReadRecorded, SendRecorded, TransactionRecorded
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.types import BrokerId, CauseId, NodeId, Offset, TopicPartition
from laststand.emulator.plan.fields import TRANSACTIONAL
from tests.unit.simulator.oracle.world import Doctor, World, firing

PLAN = """\
cluster brokers=3
topic orders replicas=(0,1,2);(0,1,2) min.insync.replicas=2
topic __transaction_state replicas=(1,2,0) min.insync.replicas=2
transact orders-0,orders-1 records=1 end={end}
wait 300
"""
FIRST = TopicPartition("orders", 0)


def log(world: World, name: TopicPartition = FIRST) -> list[BatchDescriptor]:
    """Returns what the leader has: a batch, and the end of its transaction."""
    return world.node(BrokerId(NodeId(0))).disk.logs[name].batches


def reads(world: World, *batches: PolledBatch, position: int, next_position: int) -> None:
    record = CommittedReadRecorded(
        operation_id=CauseId("reader"),
        partition=FIRST,
        topic_id=None,
        node=NodeId(0),
        position=Offset(position),
        next_position=Offset(next_position),
        seek=False,
        batches=batches,
    )
    world.oracle.recorded("reader", record, now_ms=0)


def is_given(world: World) -> None:
    batch = log(world)[0]
    polled = PolledBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        crc=batch.crc,
        producer=TRANSACTIONAL,
        first_record_id=0,
        record_count=1,
    )
    reads(world, polled, position=0, next_position=2)


def ends_otherwise(world: World) -> None:
    batches = log(world)
    marker = Marker(result=TransactionResult.ABORT, coordinator_epoch=0)
    batches[1] = msgspec.structs.replace(batches[1], marker=marker)


def reads_what_was_aborted(world: World) -> None:
    is_given(world)
    world.oracle.finish()


def reads_what_is_aborted_in_one_partition(world: World) -> None:
    is_given(world)
    ends_otherwise(world)
    world.oracle.finish()


def is_torn(world: World) -> None:
    ends_otherwise(world)
    world.oracle.finish()


def is_written_twice(world: World) -> None:
    log(world).insert(0, log(world)[0])
    world.oracle.finish()


def is_gone(world: World) -> None:
    del log(world)[0]
    world.oracle.finish()


def has_no_end(world: World) -> None:
    del log(world)[1]
    for check_id, name, sentence in world.oracle.missing():
        world.oracle.alarm_log.report(check_id, name, sentence, guarantee=world.oracle.guarantee_of(check_id, name))


def reader_jumps(world: World) -> None:
    reads(world, position=2, next_position=3)
    reads(world, position=4, next_position=5)


def reader_is_not_given_it(world: World) -> None:
    world.oracle.checks.transactions = type(world.oracle.checks.transactions)(
        world.oracle.alarm_log, world.oracle.truths
    )
    for client, record in [(each.client, each.record) for each in world.journal.history]:
        if isinstance(record, SendRecorded | TransactionRecorded) and client == TRANSACTIONAL:
            world.oracle.recorded(client, record, now_ms=0)
    reads(world, position=0, next_position=2)
    world.oracle.finish()


CASES: tuple[tuple[str, Doctor], ...] = (
    ("X1", reads_what_is_aborted_in_one_partition),
    ("X2", is_torn),
    ("X3", is_torn),
    ("X3", is_written_twice),
    ("X3", is_gone),
    ("X5", has_no_end),
    ("X10", reader_jumps),
    ("X10", reader_is_not_given_it),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    world = World(PLAN.format(end="commit"))
    doctor(world)
    assert check_id in {finding.check_id for finding in world.simulation.findings()}


def test_a_record_of_a_transaction_that_its_producer_aborted_is_given_to_nobody() -> None:
    world = World(PLAN.format(end="abort"))
    reads_what_was_aborted(world)
    assert "X1" in world.fired


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_transactions_that_end_are_in_order(end: str) -> None:
    world = World(PLAN.format(end=end))
    ended = [each.record for each in world.journal.history if isinstance(each.record, TransactionRecorded)]
    assert [record.type for record in ended] == [OperationType.INVOKE, OperationType.OK]
    world.simulation.finish()
    assert world.oracle.alarms == []
