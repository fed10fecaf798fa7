"""C4: a consumer that keeps its offset in a topic that was created again under the same name."""

from typing import Final

import pytest

from laststand.emulator.core.client.steps import PollRecorded
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.types import LeaderEpoch, NodeId, Offset, TopicId
from laststand.emulator.simulator.oracle.finding import Guarantee
from tests.unit.simulator.oracle.world import CAUSE, LEADER, NAME, TOPIC, Doctor, World

READER: Final = "reader"
BEFORE: Final = TopicId("id-of-the-topic-before")


def polls(
    world: World, *indexes: int, position: int, topic_id: TopicId = TOPIC, seek: bool = False, is_told: bool = True
) -> None:
    """A consumer is given batches of the leader's log: the first holds record 0, the second 1 and 2."""
    stored = world.node(LEADER).disk.logs[NAME].batches
    record = PollRecorded(
        type=OperationType.OK if is_told else OperationType.INFO,
        operation_id=CAUSE,
        partition=NAME,
        topic_id=topic_id,
        node=NodeId(0),
        position=Offset(position),
        leader_epoch=LeaderEpoch(0),
        seek=seek,
        high_watermark=Offset(3),
        batches=tuple(
            PolledBatch(
                base_offset=max(batch.base_offset, Offset(position)),
                last_offset=batch.last_offset,
                leader_epoch=batch.leader_epoch,
                crc=batch.crc,
                producer="producer-all",
                first_record_id=max(int(batch.base_offset), position),
                record_count=batch.last_offset - max(batch.base_offset, position) + 1,
            )
            for batch in (stored[index] for index in indexes)
        ),
    )
    world.oracle.recorded(READER, record, now_ms=0)


def goes_on(world: World) -> None:
    polls(world, position=0, topic_id=BEFORE, seek=True)
    polls(world, position=1, topic_id=BEFORE)
    polls(world, 1, position=1)


def goes_on_within_a_batch(world: World) -> None:
    polls(world, position=2, topic_id=BEFORE, seek=True)
    polls(world, 1, position=2)


def goes_on_at_the_end(world: World) -> None:
    polls(world, position=3, topic_id=BEFORE, seek=True)
    polls(world, position=3)


def seeks_too_late(world: World) -> None:
    goes_on(world)
    polls(world, position=3, seek=True)


CASES = (
    ("C4", goes_on),
    ("C4", goes_on_within_a_batch),
    ("C4", goes_on_at_the_end),
    ("C4", seeks_too_late),
)


@pytest.mark.parametrize("doctor", [doctor for _, doctor in CASES], ids=lambda doctor: doctor.__name__)
def test_what_a_consumer_misses_is_reported_and_is_no_finding(doctor: Doctor) -> None:
    world = World()
    doctor(world)
    world.oracle.finish()
    [first, *_] = [alarm for alarm in world.oracle.alarms if alarm.check_id == "C4"]
    assert first.guarantee is Guarantee.EXCEEDED
    assert "C4" not in {finding.check_id for finding in world.simulation.findings()}


def test_the_part_of_a_batch_that_is_missed_is_named() -> None:
    world = World()
    goes_on_within_a_batch(world)
    world.oracle.finish()
    sentences = [alarm.sentence.partition(" (")[0] for alarm in world.oracle.alarms if alarm.check_id == "C4"]
    assert sentences == ["orders-0 0..0", "orders-0 1..1"]


def is_sent_to_the_beginning(world: World) -> None:
    polls(world, position=3, topic_id=BEFORE, seek=True)
    polls(world, position=3, is_told=False)
    polls(world, 0, 1, position=0, seek=True)


def begins_where_auto_offset_reset_says(world: World) -> None:
    polls(world, position=1, topic_id=BEFORE, seek=True)
    polls(world, position=1)  # it is told which follower to read from, and there that it is out of range
    polls(world, 1, position=1, seek=True)


def is_given_it_later(world: World) -> None:
    goes_on(world)
    polls(world, 0, 1, position=0, seek=True)


def stays_in_one_topic(world: World) -> None:
    polls(world, 1, position=1, seek=True)


def comes_from_a_topic_without_an_id(world: World) -> None:
    polls(world, position=1, topic_id=TopicId("~orders"), seek=True)
    polls(world, 1, position=1)


@pytest.mark.parametrize(
    "doctor",
    [
        is_sent_to_the_beginning,
        begins_where_auto_offset_reset_says,
        is_given_it_later,
        stays_in_one_topic,
        comes_from_a_topic_without_an_id,
    ],
    ids=lambda doctor: doctor.__name__,
)
def test_a_consumer_misses_nothing_that_it_sought_past_or_was_given(doctor: Doctor) -> None:
    world = World()
    doctor(world)
    world.oracle.finish()
    assert "C4" not in world.fired


def test_deleted_records_are_not_missed() -> None:
    world = World()
    goes_on(world)
    truth = world.oracle.truths[NAME]
    truth.delete(Offset(1), None, since=Offset(0), leader_epoch=LeaderEpoch(0))
    world.oracle.finish()
    assert "C4" not in world.fired
