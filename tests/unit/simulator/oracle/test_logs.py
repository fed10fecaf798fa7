"""Checks of what is done to a broker's log, each in a cluster in which it must fire."""

import msgspec

from laststand.emulator.core import events, inputs
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.types import (
    LeaderEpoch,
    MetadataOffset,
    Offset,
    StrayCleanup,
    StrayReason,
    TopicId,
    TruncationReason,
)
from laststand.emulator.simulator.disk.disk import Journal, StoredLog
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


def another_batch_at_the_same_place(world: World) -> None:
    world.appends()
    world.appends(broker=FOLLOWER, crc=98, role=events.AppendRole.FOLLOWER)


def same_batch_after_another(world: World) -> None:
    world.happens(_truncated(Offset(1)), node=FOLLOWER)
    world.appends(broker=FOLLOWER, base_offset=Offset(1), last_offset=Offset(2), crc=97, leader_epoch=LeaderEpoch(1))
    world.appends()
    world.appends(broker=FOLLOWER, role=events.AppendRole.FOLLOWER, leader_epoch=LeaderEpoch(0))


def epoch_falls(world: World) -> None:
    world.appends(leader_epoch=LeaderEpoch(4), current_leader_epoch=LeaderEpoch(4))
    world.appends(base_offset=Offset(4), last_offset=Offset(4))


def leader_appends_in_another_epoch(world: World) -> None:
    world.appends(current_leader_epoch=LeaderEpoch(1))


def epoch_cache_is_empty(world: World) -> None:
    world.partition(FOLLOWER).log.epochs = LeaderEpochCache()
    world.oracle.scan()


def log_ends_without_an_epoch(world: World) -> None:
    """Its records were deleted, and are back after a loss of power, beside an epoch that begins beyond them (S48)."""
    world.oracle.truths[NAME].log_start_offset = Offset(3)
    epoch_cache_is_empty(world)


def gap(world: World) -> None:
    world.appends(base_offset=Offset(5), last_offset=Offset(5))


def overlap(world: World) -> None:
    world.appends(base_offset=Offset(2))


def gap_above_a_cut_within_a_batch(world: World) -> None:
    """The batch goes whole, and Kafka's log ends where it was cut all the same (S49)."""
    for offset in (Offset(3), Offset(4)):
        world.appends(broker=FOLLOWER, base_offset=offset, last_offset=Offset(5) if offset == 4 else offset)
    world.happens(msgspec.structs.replace(_truncated(Offset(5)), old_end_offset=Offset(6)), node=FOLLOWER)
    world.appends(broker=FOLLOWER, base_offset=Offset(5), last_offset=Offset(5))


def core_and_disk_differ(world: World) -> None:
    world.shorten(FOLLOWER)
    world.oracle.scan()


def high_watermark_above_end(world: World) -> None:
    world.partition(FOLLOWER).log.high_watermark = Offset(50)
    world.oracle.scan()


def _truncated(end_offset: Offset) -> events.LogTruncated:
    return events.LogTruncated(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        reason=TruncationReason.DIVERGING_EPOCH,
        old_end_offset=Offset(3),
        new_end_offset=end_offset,
        high_watermark=Offset(3),
        leader=LEADER,
        leader_epoch=LeaderEpoch(0),
    )


def committed_record_cut_off(world: World) -> None:
    world.happens(_truncated(Offset(1)), node=FOLLOWER)


def committed_record_cut_off_by_who_has_not_heard_that_its_topic_is_gone(world: World) -> None:
    offset = world.cluster.controller_node.durable.next_offset - 1
    world.happens(
        events.TopicDeleted(cause_id=CAUSE, metadata_offset=MetadataOffset(offset), topic=NAME.topic, topic_id=TOPIC)
    )
    committed_record_cut_off(world)


def cut_off_before_it_is_committed(world: World) -> None:
    """A follower obeys the next leader, and the one before, which has not heard of that, counts on what it had."""
    for broker in (LEADER, FOLLOWER):
        world.appends(broker=broker, role=events.AppendRole.LEADER if broker == LEADER else events.AppendRole.FOLLOWER)
    cut = msgspec.structs.replace(_truncated(Offset(3)), old_end_offset=Offset(4), leader_epoch=LeaderEpoch(1))
    world.happens(cut, node=FOLLOWER)
    advanced = world.last(events.HighWatermarkAdvanced)
    world.happens(msgspec.structs.replace(advanced, old=Offset(3), new=Offset(4)), node=LEADER)


def append_to_another_topic(world: World) -> None:
    world.appends(topic_id=TopicId("id-of-another"), base_offset=Offset(0))


def new_topic_with_old_data(world: World) -> None:
    opened = msgspec.structs.replace(
        world.last(events.LogOpened), topic_id=TopicId("id-of-another"), log_end_offset=Offset(3)
    )
    world.happens(opened, node=FOLLOWER)


def directory_of_another_topic(world: World) -> None:
    world.node(FOLLOWER).disk.logs[NAME].topic_id = TopicId("id-of-another")
    world.oracle.scan()


CASES = (
    ("D7", another_batch_at_the_same_place),
    ("D7", same_batch_after_another),
    ("D8", epoch_falls),
    ("D8", leader_appends_in_another_epoch),
    ("D8", epoch_cache_is_empty),
    ("D8", log_ends_without_an_epoch),
    ("D9", gap),
    ("D9", gap_above_a_cut_within_a_batch),
    ("D9", overlap),
    ("D9", core_and_disk_differ),
    ("D9", high_watermark_above_end),
    ("D15", committed_record_cut_off),
    ("D15", committed_record_cut_off_by_who_has_not_heard_that_its_topic_is_gone),
    ("D15", cut_off_before_it_is_committed),
    ("M15", append_to_another_topic),
    ("M15", new_topic_with_old_data),
    ("M15", directory_of_another_topic),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    assert_fires(check_id, doctor)


def test_a_batch_that_was_sent_again_may_be_cut_off_where_it_was_not_committed() -> None:
    world = World()
    world.appends(broker=FOLLOWER, crc=1, leader_epoch=LeaderEpoch(0))
    world.oracle.truths[NAME].committed[Offset(3)] = (LeaderEpoch(1), 1)
    world.happens(_truncated(Offset(3)), node=FOLLOWER)
    assert "D15" not in world.fired


def test_what_was_deleted_may_be_another_batch_on_a_follower() -> None:
    world = World()
    world.oracle.truths[NAME].log_start_offset = Offset(3)
    same_batch_after_another(world)
    assert "D7" not in world.fired


def test_a_log_may_begin_again_below_what_it_deleted_with_an_older_batch() -> None:
    world = World()
    world.appends(broker=FOLLOWER, leader_epoch=LeaderEpoch(2), current_leader_epoch=LeaderEpoch(2))
    world.node(FOLLOWER).disk.logs[NAME].log_start_offset = Offset(4)
    world.appends(broker=FOLLOWER, base_offset=Offset(4), last_offset=Offset(4), role=events.AppendRole.FOLLOWER)
    assert "D8" not in world.fired


def test_what_was_deleted_may_come_back_without_its_epochs() -> None:
    world = World()
    cache = world.partition(FOLLOWER).log.epochs
    cache.assign(LeaderEpoch(1), Offset(3))
    cache.truncate_from_start(Offset(3))
    world.oracle.truths[NAME].log_start_offset = Offset(3)
    world.appends(broker=FOLLOWER, leader_epoch=LeaderEpoch(1), current_leader_epoch=LeaderEpoch(1))
    world.oracle.scan()
    assert "D8" not in world.fired


def test_a_log_whose_records_are_all_deleted_has_no_epoch_for_them() -> None:
    world = World()
    world.partition(FOLLOWER).log.epochs = LeaderEpochCache()
    world.partition(FOLLOWER).log.log_start_offset = Offset(3)
    world.oracle.truths[NAME].log_start_offset = Offset(3)
    world.oracle.scan()
    assert "D8" not in world.fired


OLD = TopicId("id-of-another")


def finds_a_stray(world: World) -> None:
    detected = events.StrayDetected(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=OLD,
        reason=StrayReason.UNKNOWN_TOPIC,
        action=StrayCleanup.DELETE,
        log_end_offset=Offset(3),
    )
    world.happens(detected, node=FOLLOWER)
    stray = inputs.StrayLog(partition=NAME, topic_id=OLD)
    world.node(FOLLOWER).disk.strays[stray] = StoredLog(OLD, Journal(), base_offset=Offset(0))


def deletes_it(world: World) -> None:
    world.happens(
        events.StrayDeleted(cause_id=CAUSE, topic=NAME.topic, partition=NAME.partition, topic_id=OLD), node=FOLLOWER
    )


def test_a_stray_is_overdue_once_its_grace_is_over() -> None:
    world = World()
    finds_a_stray(world)
    assert "L7" not in {check_id for check_id, _, _ in world.oracle.missing()}
    world.cluster.queue.now_ms += world.cluster.properties.stray_delete_delay_ms + 1
    assert "L7" in {check_id for check_id, _, _ in world.oracle.missing()}
    deletes_it(world)
    assert "L7" not in {check_id for check_id, _, _ in world.oracle.missing()}
    assert "L7" not in world.fired


def test_a_stray_has_its_grace_to_the_end() -> None:
    world = World()
    finds_a_stray(world)
    world.cluster.queue.now_ms += world.cluster.properties.stray_delete_delay_ms - 1
    deletes_it(world)
    assert "L7" in world.fired
