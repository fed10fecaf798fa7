"""Checks of transactions, each on the log of a transaction that is doctored until it must fire."""

from collections.abc import Callable

import msgspec
import pytest

from laststand.emulator.core.batch import BatchDescriptor, Marker, TransactionResult
from laststand.emulator.core.client.steps import (
    CommittedReadRecorded,
    GroupReadRecorded,
    SendRecorded,
    SessionRecorded,
    TransactionRecorded,
)
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.types import BrokerId, CauseId, NodeId, Offset, ProducerEpoch, TopicId, TopicPartition
from laststand.emulator.plan.fields import PRODUCER_ALL, TRANSACTIONAL
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.oracle.group_positions import GroupPositions
from laststand.emulator.simulator.run.writer import play_and_stop
from tests.unit.simulator.oracle.world import Doctor, World, firing

PLAN = """\
cluster brokers=3
topic orders replicas=(0,1,2);(0,1,2) min.insync.replicas=2
topic __transaction_state replicas=(1,2,0) min.insync.replicas=2
transact orders-0,orders-1 records=1 end={end}
wait 300
"""
FIRST = TopicPartition("orders", 0)

GROUPS = """\
cluster brokers=3
topic orders replicas=(0,1,2) min.insync.replicas=2
topic refunds replicas=(0,1,2) min.insync.replicas=2
topic __transaction_state replicas=(1,2,0) min.insync.replicas=2
topic __consumer_offsets replicas=(1,2,0) min.insync.replicas=2
produce orders-0 acks=all records=3
wait 300
consume orders-0 group=readers records=2
consume orders-0 group=pipe records=2 into=refunds-0 end={end}
wait 300
"""


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
    reads(world, polled(world), position=0, next_position=2)


def polled(world: World) -> PolledBatch:
    """Returns the batch of the transaction as a reader is given it."""
    batch = log(world)[0]
    return PolledBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        crc=batch.crc,
        producer=TRANSACTIONAL,
        first_record_id=0,
        record_count=1,
    )


def is_given_to_a_member(world: World) -> None:
    record = GroupReadRecorded(
        operation_id=CauseId("member:read:0"),
        group_id="readers",
        partition=FIRST,
        topic_id=None,
        node=NodeId(0),
        committed=None,
        position=Offset(0),
        next_position=Offset(2),
        batches=(polled(world),),
        member_id="member",
        generation_id=1,
    )
    world.oracle.recorded("member", record, now_ms=0)


def member_reads_what_is_aborted(world: World) -> None:
    is_given_to_a_member(world)
    ends_otherwise(world)
    world.oracle.finish()


def member_reads_before_it_is_over(world: World) -> None:
    tell_again(world, after=(4, is_given_to_a_member))
    world.oracle.finish()


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


def tell_again(world: World, *, after: tuple[int, Callable[[World], None]] | None = None) -> None:
    """Tells the checks once more what the producer was told; after so many lines something else comes in between."""
    world.oracle.checks.transactions = type(world.oracle.checks.transactions)(
        world.oracle.alarm_log, world.oracle.truths, GroupPositions()
    )
    told = [each.record for each in world.journal.history if each.client == TRANSACTIONAL]
    for count, record in enumerate(told, start=1):
        if isinstance(record, SendRecorded | TransactionRecorded | SessionRecorded):
            world.oracle.recorded(TRANSACTIONAL, record, now_ms=0)
        if after is not None and after[0] == count:
            after[1](world)


def reader_is_not_given_it(world: World) -> None:
    tell_again(world)
    reads(world, position=0, next_position=2)
    world.oracle.finish()


def is_read_before_it_is_over(world: World) -> None:
    tell_again(world, after=(4, is_given))  # a session, the transaction, and a batch with its outcome
    world.oracle.finish()


def is_told_to_be_stable_before_it_is_over(world: World) -> None:
    ends_otherwise(world)
    told = CommittedReadRecorded(
        operation_id=CauseId("read"),
        partition=FIRST,
        topic_id=TopicId("id-of-orders"),
        node=NodeId(0),
        position=Offset(0),
        next_position=Offset(1),
        seek=False,
        high_watermark=Offset(1),
    )
    world.oracle.recorded("reader", told, now_ms=0)
    world.oracle.finish()


def is_fenced(world: World) -> None:
    [begun] = [each.record for each in world.journal.history if isinstance(each.record, SessionRecorded)]
    successor = msgspec.structs.replace(begun, producer_epoch=ProducerEpoch(begun.producer_epoch + 1))
    tell_again(world, after=(1, lambda _: world.oracle.recorded(TRANSACTIONAL, successor, now_ms=0)))
    world.oracle.finish()


def is_ended_by_its_successor(world: World) -> None:
    [begun] = [each.record for each in world.journal.history if isinstance(each.record, SessionRecorded)]
    successor = msgspec.structs.replace(begun, producer_epoch=ProducerEpoch(begun.producer_epoch + 1))
    tell_again(world)
    world.oracle.recorded(TRANSACTIONAL, successor, now_ms=0)
    batches = log(world)
    batches[1] = msgspec.structs.replace(batches[1], producer_epoch=ProducerEpoch(begun.producer_epoch + 2))
    world.oracle.finish()


def read_by_group(world: World, group: str, *, committed: int | None, position: int, operation: str = "read") -> None:
    record = GroupReadRecorded(
        operation_id=CauseId(operation),
        group_id=group,
        partition=FIRST,
        topic_id=reads_of(world)[-1].topic_id,
        node=NodeId(0),
        committed=None if committed is None else Offset(committed),
        position=Offset(position),
        next_position=Offset(3),
        batches=tuple(record.batches[0] for record in reads_of(world))[:1] if position == 0 else (),
    )
    world.oracle.recorded(TRANSACTIONAL, record, now_ms=0)


def reads_of(world: World) -> list[GroupReadRecorded]:
    return [each.record for each in world.journal.history if isinstance(each.record, GroupReadRecorded)]


def is_read_in_two_transactions(world: World) -> None:
    operation = CauseId("again")
    read_by_group(world, "pipe", committed=3, position=0, operation=operation)
    told = [each.record for each in world.journal.history if isinstance(each.record, TransactionRecorded)][-1]
    record = msgspec.structs.replace(told, operation_id=operation)
    world.oracle.recorded(TRANSACTIONAL, record, now_ms=0)
    world.oracle.finish()


def has_a_position_that_nobody_committed(world: World) -> None:
    read_by_group(world, "readers", committed=1, position=2)


def goes_back(world: World) -> None:
    read_by_group(world, "readers", committed=None, position=0)


def jumps_ahead(world: World) -> None:
    read_by_group(world, "readers", committed=3, position=7)


def goes_on_behind_others(world: World) -> None:
    sent = [each.record for each in world.journal.history if isinstance(each.record, SendRecorded)]
    acked = next(record for record in sent if record.type is OperationType.OK and record.partition == FIRST)
    attempt = msgspec.structs.replace(acked.attempts[-1], crc=999)
    other = msgspec.structs.replace(acked, operation_id=CauseId("another"), attempts=(attempt,))
    world.oracle.recorded(PRODUCER_ALL, other, now_ms=0)
    read_by_group(world, "readers", committed=3, position=3)


OF_GROUPS: tuple[tuple[str, Doctor], ...] = (
    ("X7", is_read_in_two_transactions),
    ("X8", has_a_position_that_nobody_committed),
    ("X9", goes_back),
    ("X9", jumps_ahead),
    ("X9", goes_on_behind_others),
)


@firing(OF_GROUPS)
def test_a_check_of_groups_fires(check_id: str, doctor: Doctor) -> None:
    world = World(GROUPS.format(end="commit"))
    doctor(world)
    assert check_id in {finding.check_id for finding in world.simulation.findings()}


@pytest.mark.parametrize(("end", "position"), [("commit", 3), ("abort", None)])
def test_groups_that_go_on_are_in_order(end: str, position: int | None) -> None:
    world = World(GROUPS.format(end=end) + "consume orders-0 group=pipe records=2 into=refunds-0\nwait 300\n")
    assert reads_of(world)[-1].committed == position
    world.simulation.finish()
    assert world.oracle.alarms == []


DELETED_RECORDS = """\
produce orders-0 acks=all records=2
wait 300
delete_records: {partition: orders-0, offset: 5}
wait 300
produce orders-0 acks=all records=1
wait 300
"""
DELETED_TOPIC = """\
recreate orders
wait 300
produce orders-0 acks=all records=2
wait 300
"""
READ_AGAIN = """\
consume orders-0 group=readers records=1
consume orders-0 group=pipe records=1 into=refunds-0
wait 300
"""


@pytest.mark.parametrize(("deletion", "position"), [(DELETED_RECORDS, 5), (DELETED_TOPIC, 0)])
def test_a_group_leaves_out_what_an_administrator_deleted(deletion: str, position: int) -> None:
    world = World(GROUPS.format(end="commit") + deletion + READ_AGAIN)
    assert [read.position for read in reads_of(world)[-2:]] == [position, position]
    world.simulation.finish()
    assert world.oracle.alarms == []


def test_what_a_group_leaves_out_beside_deleted_records_is_named() -> None:
    world = World(GROUPS.format(end="commit") + DELETED_RECORDS)
    read_by_group(world, "readers", committed=3, position=6)
    assert "X9" in world.fired


def has_the_end_of_a_former_coordinator(world: World) -> None:
    marker = log(world)[1]
    assert marker.marker is not None
    later = msgspec.structs.replace(marker.marker, coordinator_epoch=marker.marker.coordinator_epoch + 1)
    log(world).insert(1, msgspec.structs.replace(marker, marker=later))
    world.oracle.finish()


def has_a_batch_of_a_former_epoch(world: World) -> None:
    batch = log(world)[0]
    log(world).insert(0, msgspec.structs.replace(batch, producer_epoch=ProducerEpoch(batch.producer_epoch + 5)))
    world.oracle.finish()


CASES: tuple[tuple[str, Doctor], ...] = (
    ("X1", reads_what_is_aborted_in_one_partition),
    ("X1", member_reads_what_is_aborted),
    ("X2", is_torn),
    ("X3", is_torn),
    ("X3", is_written_twice),
    ("X3", is_gone),
    ("X4", is_read_before_it_is_over),
    ("X4", is_told_to_be_stable_before_it_is_over),
    ("X4", member_reads_before_it_is_over),
    ("X5", has_no_end),
    ("X6", is_fenced),
    ("X6", is_ended_by_its_successor),
    ("R3", has_the_end_of_a_former_coordinator),
    ("R5", has_a_batch_of_a_former_epoch),
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


DELETED = """\
delete_records: {partition: orders-0, offset: 2}
wait 300
"""


def test_what_an_administrator_deleted_of_a_committed_transaction_is_not_asked_for() -> None:
    world = World(PLAN.format(end="commit") + DELETED)
    del log(world)[:2]
    world.oracle.finish()
    assert world.oracle.alarms == []


LOST_MARKER = """\
cluster brokers=3
topic orders replicas=(1,2,0) min.insync.replicas=2
topic __transaction_state replicas=(0,1,2) min.insync.replicas=2
transact orders-0 records=1
hold 0->1 WriteTxnMarkers request
wait 20
lose 0->1 WriteTxnMarkers request
"""


def test_a_marker_that_was_lost_is_written_once_its_request_is_given_up() -> None:
    simulation = play_and_stop(parse_plan(LOST_MARKER))
    assert simulation.oracle.alarms == []


LOST_DECISION = """\
cluster brokers=3 {recovery}
topic orders replicas=(0,1) min.insync.replicas=2
topic __transaction_state replicas=(2) min.insync.replicas=1
transact orders-0 records=1
wait 300
hold client->2 EndTxn request
transact orders-0 records=1
wait 100
kill 2
wait 100
start 2
wait 600
release client->2 EndTxn request
wait 1000
"""


@pytest.mark.parametrize(("recovery", "outcome"), [("", OperationType.INFO), ("txn_recovery=off", OperationType.OK)])
def test_an_uncleanly_elected_coordinator_aborts_what_looks_ongoing(recovery: str, outcome: OperationType) -> None:
    world = World(LOST_DECISION.format(recovery=recovery))
    last = [each.record for each in world.journal.history if isinstance(each.record, TransactionRecorded)][-1]
    assert last.type is outcome


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_transactions_that_end_are_in_order(end: str) -> None:
    world = World(PLAN.format(end=end))
    ended = [each.record for each in world.journal.history if isinstance(each.record, TransactionRecorded)]
    assert [record.type for record in ended] == [OperationType.INVOKE, OperationType.OK]
    world.simulation.finish()
    assert world.oracle.alarms == []
