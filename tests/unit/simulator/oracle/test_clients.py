"""Checks of what clients see, each in a cluster in which it must fire."""

import msgspec

from laststand.emulator.core.client.steps import FinalReadRecorded, PollRecorded, SendRecorded
from laststand.emulator.core.history import Attempt, OperationType, PolledBatch
from laststand.emulator.core.types import CauseId, LeaderEpoch, NodeId, Offset
from laststand.emulator.simulator.oracle.truth import PromisedBatch
from tests.unit.simulator.oracle.world import (
    CAUSE,
    FOLLOWER,
    LEADER,
    NAME,
    TOPIC,
    Doctor,
    World,
    assert_fires,
    firing,
)

READER = "final-consumer"


def sends(world: World, type_: OperationType, *, offset: int | None, crc: int) -> None:
    attempt = Attempt(
        node=NodeId(0),
        leader_epoch=LeaderEpoch(0),
        producer_id=None,
        producer_epoch=None,
        base_sequence=None,
        crc=crc,
        outcome="NONE",
    )
    record = SendRecorded(
        type=type_,
        operation_id=CauseId("producer-all:9"),
        partition=NAME,
        topic_id=TOPIC,
        first_record_id=9,
        record_count=1,
        base_offset=None if offset is None else Offset(offset),
        attempts=(attempt,),
    )
    world.oracle.recorded("producer-all", record, now_ms=0)


def stored(world: World, index: int) -> PolledBatch:
    """Returns a stored batch as a consumer gets it: the first holds record 0, the second 1 and 2."""
    batch = world.node(LEADER).disk.logs[NAME].batches[index]
    return PolledBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        crc=batch.crc,
        producer="producer-all",
        first_record_id=int(batch.base_offset),
        record_count=batch.record_count,
    )


def polls(world: World, *batches: PolledBatch, position: int = 0, seek: bool = False, client: str = READER) -> None:
    record = PollRecorded(
        type=OperationType.OK,
        operation_id=CAUSE,
        partition=NAME,
        topic_id=TOPIC,
        node=NodeId(0),
        position=Offset(position),
        leader_epoch=LeaderEpoch(0),
        seek=seek,
        high_watermark=Offset(3),
        batches=batches,
    )
    world.oracle.recorded(client, record, now_ms=0)


def nobody_sent_what_is_stored(world: World) -> None:
    batches = world.node(FOLLOWER).disk.logs[NAME].batches
    batches[0] = msgspec.structs.replace(batches[0], crc=99)
    world.oracle.finish()


def nobody_sent_what_is_read(world: World) -> None:
    polls(world, msgspec.structs.replace(stored(world, 0), first_record_id=50))


def failed_and_stored(world: World) -> None:
    crc = world.node(LEADER).disk.logs[NAME].batches[0].crc
    sends(world, OperationType.FAIL, offset=None, crc=crc)
    world.oracle.finish()


def twice_in_the_log(world: World) -> None:
    batches = world.node(LEADER).disk.logs[NAME].batches
    batches.insert(0, batches[0])
    world.oracle.finish()


def out_of_sequence(world: World) -> None:
    batches = world.node(LEADER).disk.logs[NAME].batches
    batches[0] = msgspec.structs.replace(batches[0], base_sequence=7)
    world.oracle.scan()


def earlier_than_what_was_acked_before(world: World) -> None:
    sends(world, OperationType.INVOKE, offset=None, crc=5)
    sends(world, OperationType.OK, offset=0, crc=5)


def reads_what_is_not_committed(world: World) -> None:
    world.oracle.truths[NAME].committed.clear()
    polls(world, stored(world, 0))


def reads_above_the_high_watermark(world: World) -> None:
    batch = msgspec.structs.replace(stored(world, 1), base_offset=Offset(0), last_offset=Offset(4))
    world.oracle.truths[NAME].committed[Offset(4)] = (batch.leader_epoch, batch.crc)
    polls(world, batch)


def position_jumps(world: World) -> None:
    polls(world, client="consumer-0")


def is_given_it_again(world: World) -> None:
    polls(world, stored(world, 0), stored(world, 0))


def is_given_the_next_but_one(world: World) -> None:
    polls(world, stored(world, 1))


def is_sent_back(world: World) -> None:
    polls(world, seek=True, client="consumer-0")


def reads_to_the_end(world: World, *indexes: int, type_: OperationType = OperationType.OK) -> None:
    position = 0
    for index in indexes:
        batch = stored(world, index)
        polls(world, batch, position=position)
        position = batch.last_offset + 1
    read = FinalReadRecorded(
        type=type_,
        operation_id=CAUSE,
        partition=NAME,
        topic_id=TOPIC,
        start_offset=Offset(0),
        end_offset=Offset(3) if type_ is OperationType.OK else None,
    )
    world.oracle.recorded(READER, read, now_ms=0)


def is_not_given_what_was_acknowledged(world: World) -> None:
    last = stored(world, 1)
    world.oracle.truths[NAME].acknowledge(
        PromisedBatch(base_offset=last.base_offset, last_offset=last.last_offset, crc=77, moment=0, leader_epoch=None)
    )
    reads_to_the_end(world, 0, 1)


def is_given_the_end_of_a_batch(world: World) -> None:
    last = stored(world, 1)
    first_offset = Offset(last.base_offset - 1)
    world.oracle.truths[NAME].acknowledge(
        PromisedBatch(base_offset=first_offset, last_offset=last.last_offset, crc=last.crc, moment=0, leader_epoch=None)
    )
    reads_to_the_end(world, 0, 1)


def never_gets_to_the_end(world: World) -> None:
    reads_to_the_end(world, 0, 1, type_=OperationType.INFO)


CASES = (
    ("D10", nobody_sent_what_is_stored),
    ("D10", nobody_sent_what_is_read),
    ("D11", failed_and_stored),
    ("D12", twice_in_the_log),
    ("D13", out_of_sequence),
    ("D14", earlier_than_what_was_acked_before),
    ("D16", reads_what_is_not_committed),
    ("D16", reads_above_the_high_watermark),
    ("C1", position_jumps),
    ("C1", is_given_it_again),
    ("C1", is_given_the_next_but_one),
    ("C2", is_not_given_what_was_acknowledged),
    ("C2", is_given_the_end_of_a_batch),
    ("C3", is_sent_back),
    ("L6", never_gets_to_the_end),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    assert_fires(check_id, doctor)


def test_a_reader_of_everything_is_content() -> None:
    world = World()
    reads_to_the_end(world, 0, 1)
    assert world.oracle.alarms == []


def test_a_consumer_may_be_sent_back_from_what_was_deleted() -> None:
    world = World()
    truth, batches = world.oracle.truths[NAME], world.node(LEADER).disk.logs[NAME].batches
    truth.delete(Offset(1000), batches, since=Offset(0), leader_epoch=LeaderEpoch(0))
    is_sent_back(world)
    assert "C3" not in world.fired


def test_a_consumer_is_sent_back_though_others_were_deleted_at_its_offset() -> None:
    world = World()
    batches = [msgspec.structs.replace(batch, crc=99) for batch in world.node(LEADER).disk.logs[NAME].batches]
    world.oracle.truths[NAME].delete(Offset(1000), batches, since=Offset(0), leader_epoch=LeaderEpoch(0))
    is_sent_back(world)
    assert "C3" in world.fired


def test_a_consumer_may_be_sent_back_to_where_a_new_topic_begins() -> None:
    world = World()
    polls(world, position=3)
    polls(world, stored(world, 0), seek=True)
    assert world.oracle.alarms == []
