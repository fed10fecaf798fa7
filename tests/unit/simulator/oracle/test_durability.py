"""Checks of promised records that are not on the replicas, each in a cluster in which it must fire."""

import msgspec
import pytest

from laststand.emulator.core import events
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    IncarnationId,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TruncationReason,
)
from laststand.emulator.plan import actions
from laststand.emulator.simulator.disk.retention import RETENTION
from laststand.emulator.simulator.oracle.finding import Guarantee
from laststand.emulator.simulator.oracle.guarantee import GuaranteeLedger
from laststand.emulator.simulator.oracle.truth import PartitionTruth, PromisedBatch
from tests.unit.simulator.oracle.world import (
    CAUSE,
    FOLLOWER,
    LEADER,
    NAME,
    OTHER,
    PLAN,
    TOPIC,
    Doctor,
    World,
    assert_fires,
    firing,
)


def acked_record_gone(world: World) -> None:
    world.shorten(LEADER)
    world.oracle.scan()


def committed_record_gone(world: World) -> None:
    world.oracle.truths[NAME].acked.clear()
    world.oracle.truths[NAME].exposed.clear()
    acked_record_gone(world)


def candidate_too_short(world: World) -> None:
    world.shorten(FOLLOWER)
    world.oracle.scan()


def acked_record_nowhere(world: World) -> None:
    for broker_id in world.cluster.nodes:
        world.shorten(broker_id)
    world.oracle.finish()


def acked_record_below_every_log_start(world: World) -> None:
    """It lies in the files of all replicas, where nobody can read it, and nobody wanted it to be deleted."""
    for broker_id in world.cluster.nodes:
        log = world.node(broker_id).disk.logs[NAME]
        log.log_start_offset = Offset(log.batches[0].last_offset + 1)
    world.oracle.finish()


def acked_record_cut_off_before_the_power_loss(world: World) -> None:
    """Only what a replica still held when its power went is lost with it."""
    for broker_id in world.cluster.nodes:
        if broker_id == OTHER:
            world.happens(cut(Offset(1)), node=broker_id)
        world.happens(power_lost(broker_id))
    acked_record_nowhere(world)


def acked_record_deleted_before_the_power_loss(world: World) -> None:
    for broker_id in world.cluster.nodes:
        if broker_id == OTHER:
            world.happens(
                events.StrayDeleted(cause_id=CAUSE, topic=NAME.topic, partition=NAME.partition, topic_id=TOPIC),
                node=broker_id,
            )
        world.happens(power_lost(broker_id))
    acked_record_nowhere(world)


def acked_record_cut_off_after_a_power_loss_and_a_copy(world: World) -> None:
    """A replica that copied the records again did not lose them with its power."""
    appended = [entry for entry in world.journal.entries if isinstance(entry.event, events.BatchAppended)]
    for broker_id in world.cluster.nodes:
        world.happens(power_lost(broker_id))
    for entry in appended:
        if entry.node_id == OTHER:
            world.happens(entry.event, node=OTHER)
    world.happens(cut(Offset(1)), node=OTHER)
    acked_record_nowhere(world)


def cut(new_end: Offset) -> events.LogTruncated:
    """A follower cuts off its log."""
    return events.LogTruncated(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        reason=TruncationReason.DIVERGING_EPOCH,
        old_end_offset=Offset(3),
        new_end_offset=new_end,
        high_watermark=Offset(0),
        leader=LEADER,
        leader_epoch=LeaderEpoch(0),
    )


def power_lost(broker_id: BrokerId) -> events.PowerLost:
    """A replica's log is empty after a power loss."""
    return events.PowerLost(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        lost_node=broker_id,
        lost_incarnation=0,
        keep="none",
        old_end_offset=Offset(3),
        new_end_offset=Offset(0),
    )


def consumed_record_gone(world: World) -> None:
    world.oracle.truths[NAME].acked.clear()
    acked_record_gone(world)


def given_too_early_and_not_on_who_leads_when_all_stop(world: World) -> None:
    """The leader has it when the final consumer reads; when it stops, one leads that does not."""
    truth = world.oracle.truths[NAME]
    truth.given_too_early.append(truth.exposed[Offset(0)])
    truth.exposed.clear()
    world.oracle.finish()
    assert "D5" not in world.fired
    log = world.node(FOLLOWER).disk.logs[NAME]
    log.log_start_offset = Offset(log.batches[0].last_offset + 1)
    world.oracle.checks.losses.became_leader(NAME, world.node(FOLLOWER), LeaderEpoch(1), log.log_end_offset)
    world.oracle.stopped(unread=())


def replicas_differ(world: World) -> None:
    batches = world.node(FOLLOWER).disk.logs[NAME].batches
    batches[0] = msgspec.structs.replace(batches[0], crc=99)
    world.oracle.scan()


def end_goes_back(world: World) -> None:
    world.partition(LEADER).log.high_watermark = Offset(1)
    world.oracle.scan()


def more_deleted_than_was_asked_for(world: World) -> None:
    world.oracle.asked(actions.DeleteRecords(partition=NAME, offset=Offset(1)))
    deletes(world, 3)


def acked_record_deleted(world: World) -> None:
    deletes(world, 3)


def consumed_record_deleted(world: World) -> None:
    world.oracle.truths[NAME].acked.clear()
    deletes(world, 3)


def uncommitted_record_deleted(world: World) -> None:
    world.oracle.asked(actions.DeleteRecords(partition=NAME, offset=None))
    deletes(world, 4)


def deletes(world: World, below: int, *, cause_id: CauseId = CAUSE) -> None:
    """Lets the leader raise its log start."""
    world.node(LEADER).disk.logs[NAME].log_start_offset = Offset(below)
    raised = events.LogStartOffsetRaised(
        cause_id=cause_id,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        old=Offset(0),
        new=Offset(below),
    )
    world.happens(raised, node=LEADER)
    world.oracle.scan()


def hears_late_that_it_leads(world: World) -> None:
    """Broker 1 was elected for a moment, without the last batch, and hears of that when broker 0 leads again."""
    for number, leader in enumerate((FOLLOWER, LEADER), start=1):
        world.commits(leader=leader, leader_epoch=LeaderEpoch(number), partition_epoch=PartitionEpoch(number))
    world.happens(
        events.BecameLeader(
            cause_id=CAUSE,
            topic=NAME.topic,
            partition=NAME.partition,
            topic_id=TOPIC,
            leader_epoch=LeaderEpoch(1),
            partition_epoch=PartitionEpoch(1),
            epoch_start_offset=Offset(1),
            high_watermark=Offset(0),
            isr=(LEADER, FOLLOWER),
        ),
        node=FOLLOWER,
    )


def leads_again_though_another_was_elected(world: World) -> None:
    """By metadata that ends before the election of its successor."""
    world.commits(leader_epoch=LeaderEpoch(1), partition_epoch=PartitionEpoch(1), leader=FOLLOWER)
    world.ends(LEADER, events.IncarnationEnd.POWER_LOST)
    world.node(LEADER).incarnation = 1
    world.happens(
        events.BecameLeader(
            cause_id=CauseId("metadata-1"),
            topic=NAME.topic,
            partition=NAME.partition,
            topic_id=TOPIC,
            leader_epoch=LeaderEpoch(0),
            partition_epoch=PartitionEpoch(0),
            epoch_start_offset=Offset(1),
            high_watermark=Offset(0),
            isr=(LEADER, FOLLOWER, OTHER),
        ),
        node=LEADER,
        incarnation=1,
    )


def leads_again_by_a_process_that_is_not_registered(world: World) -> None:
    world.node(LEADER).incarnation_id = IncarnationId("another")
    acked_record_gone(world)


CASES = (
    ("D1", leads_again_though_another_was_elected),
    ("D2", leads_again_though_another_was_elected),
    ("D1", leads_again_by_a_process_that_is_not_registered),
    ("D1", acked_record_gone),
    ("D1", hears_late_that_it_leads),
    ("D2", hears_late_that_it_leads),
    ("D2", committed_record_gone),
    ("D3", candidate_too_short),
    ("D4", acked_record_nowhere),
    ("D4", acked_record_below_every_log_start),
    ("D4", acked_record_cut_off_before_the_power_loss),
    ("D4", acked_record_deleted_before_the_power_loss),
    ("D4", acked_record_cut_off_after_a_power_loss_and_a_copy),
    ("D5", given_too_early_and_not_on_who_leads_when_all_stop),
    ("D5", consumed_record_gone),
    ("D6", replicas_differ),
    ("C3", end_goes_back),
    ("D1", more_deleted_than_was_asked_for),
    ("D1", acked_record_deleted),
    ("D5", consumed_record_deleted),
    ("D9", uncommitted_record_deleted),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    assert_fires(check_id, doctor)


def test_without_a_leader_at_the_end_d4_finds_losses_that_d1_cannot() -> None:
    world = World()
    world.has_no_leader()
    acked_record_nowhere(world)
    assert "D4" in world.fired
    assert "D1" not in world.fired


def test_records_that_every_holder_lost_with_its_power_are_not_promised() -> None:
    world = World()
    for broker_id in world.cluster.nodes:
        world.happens(power_lost(broker_id))
    acked_record_nowhere(world)
    assert "D4" not in world.fired


def test_nothing_fires_by_itself() -> None:
    world = World()
    world.simulation.finish()
    assert world.oracle.alarms == []
    assert world.oracle.tally.acks == 3


@pytest.mark.parametrize(("nodes", "guarantee"), [((1,), Guarantee.HOLDS), ((1, 2), Guarantee.EXCEEDED)])
def test_a_loss_counts_only_within_the_guarantee(nodes: tuple[int, ...], guarantee: Guarantee) -> None:
    world = World()
    for node in nodes:
        world.ends(NodeId(node), events.IncarnationEnd.POWER_LOST)
    world.commits(leader_epoch=LeaderEpoch(1), partition_epoch=PartitionEpoch(1))
    world.partition(LEADER).leader_epoch = LeaderEpoch(1)
    acked_record_gone(world)
    (loss,) = [alarm for alarm in world.oracle.alarms if alarm.check_id == "D1"]
    assert loss.guarantee is guarantee


@pytest.mark.parametrize("asked", [Offset(3), Offset(1000), None])
def test_records_that_an_administrator_deleted_are_no_loss(asked: Offset | None) -> None:
    world = World()
    world.oracle.asked(actions.DeleteRecords(partition=NAME, offset=asked))
    deletes(world, 3)
    assert world.oracle.alarms == []


def test_records_that_retention_deleted_are_no_loss() -> None:
    world = World()
    deletes(world, 3, cause_id=RETENTION)
    assert world.oracle.alarms == []


def test_a_leader_deletes_the_requested_records_and_its_followers_do_so_too() -> None:
    world = World(PLAN + "delete_records: {partition: orders-0, offset: 2}\nwait 100\n")
    assert {world.partition(broker_id).log.log_start_offset for broker_id in world.cluster.nodes} == {2}
    world.simulation.finish()
    assert world.oracle.alarms == []
    assert world.oracle.truths[NAME].log_start_offset == 2


def test_only_what_the_deleting_leader_had_is_deleted() -> None:
    """S50: a later leader may have other records at these offsets, or have the same again."""
    truth = PartitionTruth(GuaranteeLedger())
    old = BatchDescriptor(
        base_offset=Offset(0), last_offset=Offset(1), leader_epoch=LeaderEpoch(1), crc=7, size=10, record_count=2
    )
    truth.delete(Offset(2), (old,), since=Offset(0), leader_epoch=LeaderEpoch(1))

    def is_deleted(*, crc: int, leader_epoch: int | None, appended_epoch: int | None = None, offset: int = 1) -> bool:
        promise = PromisedBatch(
            base_offset=Offset(0),
            last_offset=Offset(1),
            crc=crc,
            moment=0,
            leader_epoch=None if leader_epoch is None else LeaderEpoch(leader_epoch),
            appended_epoch=None if appended_epoch is None else LeaderEpoch(appended_epoch),
        )
        return truth.is_deleted(promise, Offset(offset))

    assert is_deleted(crc=7, leader_epoch=1)
    assert is_deleted(crc=7, leader_epoch=None)
    assert not is_deleted(crc=7, leader_epoch=2)
    assert not is_deleted(crc=8, leader_epoch=1)
    assert not is_deleted(crc=7, leader_epoch=1, offset=2)
    assert is_deleted(crc=7, leader_epoch=2, appended_epoch=1)  # a retry, acknowledged by a later leader
    truth.committed[Offset(1)] = (LeaderEpoch(1), 7)
    assert not is_deleted(crc=7, leader_epoch=2, appended_epoch=2)  # appended again after the deletion
    truth.delete(Offset(5), (), since=Offset(2), leader_epoch=LeaderEpoch(3))
    assert not is_deleted(crc=8, leader_epoch=3)  # below where that leader's log began
    truth.delete(Offset(5), None, since=Offset(0), leader_epoch=LeaderEpoch(3))
    assert is_deleted(crc=8, leader_epoch=3)


def test_a_candidate_has_what_lies_in_the_log_that_it_uses_as_the_topics() -> None:
    """Without topic ids in requests, a broker takes the log of a topic that had the name before (S27)."""
    world = World()
    log = world.node(FOLLOWER).disk.logs[NAME]
    log.topic_id = TopicId("of-the-topic-before")
    world.oracle.scan()
    assert "D3" not in world.fired
    world.oracle.checks.losses.took_role(NAME, FOLLOWER, TopicId("of-the-topic-before"))
    world.oracle.scan()
    assert "D3" in world.fired


def test_a_late_leader_whose_log_has_a_gap_lacks_what_a_consumer_was_given() -> None:
    world = World()
    world.oracle.truths[NAME].acked.clear()
    node = world.node(LEADER)
    log = node.disk.logs[NAME]
    took_over = next(
        entry.event
        for entry in world.journal.entries
        if isinstance(entry.event, events.BecameLeader) and entry.node_id == LEADER
    )
    late = msgspec.structs.replace(took_over, epoch_start_offset=log.log_end_offset)
    world.oracle.checks.durability.check_late_leader(NAME, node, late)
    assert "D5" not in world.fired
    del log.batches[0]
    world.oracle.checks.durability.check_late_leader(NAME, node, late)
    assert "D5" in world.fired
