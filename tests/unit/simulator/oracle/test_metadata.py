"""Metadata as a whole: each check in a cluster in which it must fire, and the oracle's own fold against the core's."""

import msgspec
import pytest
from msgspec import UNSET

from laststand.emulator.core import events
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.records import MetadataBatch, PartitionChangeRecord, Record
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    LogDeletedReason,
    MetadataOffset,
    NodeId,
    Offset,
)
from tests.unit.simulator.oracle.world import (
    CAUSE,
    CLUSTER,
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


def applied(world: World, broker_id: BrokerId) -> None:
    broker = world.node(broker_id).broker
    assert broker is not None
    end_offset = broker.image.next_offset
    world.happens(
        events.MetadataApplied(cause_id=CAUSE, start_offset=end_offset, end_offset=end_offset), node=broker_id
    )


def image_of_a_partition_is_wrong(world: World) -> None:
    broker = world.node(FOLLOWER).broker
    assert broker is not None
    state = broker.image.partitions[NAME]
    broker.image.partitions[NAME] = msgspec.structs.replace(state, isr=(FOLLOWER,))
    applied(world, FOLLOWER)


def image_of_a_broker_is_wrong(world: World) -> None:
    broker = world.node(FOLLOWER).broker
    assert broker is not None
    registration = broker.image.brokers[OTHER]
    broker.image.brokers[OTHER] = msgspec.structs.replace(registration, fenced=True)
    applied(world, FOLLOWER)


def image_is_ahead_of_the_log(world: World) -> None:
    broker = world.node(FOLLOWER).broker
    assert broker is not None
    broker.image.next_offset = MetadataOffset(broker.image.next_offset + 5)
    applied(world, FOLLOWER)


def role_is_not_that_of_the_image(world: World) -> None:
    world.partition(FOLLOWER).leader_epoch = LeaderEpoch(-1)
    world.oracle.scan()


def hosts_what_it_is_no_replica_of(world: World) -> None:
    broker = world.node(FOLLOWER).broker
    assert broker is not None
    state = broker.image.partitions[NAME]
    broker.image.partitions[NAME] = msgspec.structs.replace(state, replicas=(LEADER, OTHER))
    world.oracle.scan()


def earlier_controller_writes(world: World) -> None:
    change = world.last(events.PartitionChanged)
    world.happens(change, incarnation=3)
    world.happens(msgspec.structs.replace(change, metadata_offset=MetadataOffset(99)), incarnation=2)


def offset_is_written_again(world: World) -> None:
    world.happens(world.last(events.BrokerRegistered))


def registers(world: World, *, broker_epoch: int, offset: int) -> None:
    event = msgspec.structs.replace(
        world.last(events.BrokerRegistered),
        broker_epoch=BrokerEpoch(broker_epoch),
        metadata_offset=MetadataOffset(offset),
    )
    world.happens(event)


def broker_epoch_is_used_again(world: World) -> None:
    registers(world, broker_epoch=world.last(events.BrokerRegistered).broker_epoch, offset=90)


def broker_epoch_is_beyond_its_record(world: World) -> None:
    registers(world, broker_epoch=91, offset=90)


def assigned_log_is_deleted(world: World) -> None:
    deleted = events.LogDeleted(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        reason=LogDeletedReason.STRAY,
        log_end_offset=Offset(3),
    )
    world.happens(deleted, node=FOLLOWER)


def appends(world: World, *records: Record) -> None:
    """Puts records into the controller's log, and lets the oracle fold them."""
    log = world.cluster.controller_node.log
    log.append(MetadataBatch(base_offset=log[-1].end_offset, records=records))
    applied(world, FOLLOWER)


def log_skips_an_offset(world: World) -> None:
    log = world.cluster.controller_node.log
    log.append(MetadataBatch(base_offset=MetadataOffset(log[-1].end_offset + 1), records=()))
    applied(world, FOLLOWER)


NEW = BrokerId(NodeId(3))
_RECORD = PartitionChangeRecord(topic_id=TOPIC, partition=0)
_BEGIN = msgspec.structs.replace(
    _RECORD, replicas=(LEADER, FOLLOWER, NEW, OTHER), adding_replicas=(NEW,), removing_replicas=(OTHER,)
)
_IN_SYNC = msgspec.structs.replace(_RECORD, isr=(LEADER, FOLLOWER, OTHER, NEW))
_END = msgspec.structs.replace(
    _RECORD,
    leader=LEADER,
    replicas=(LEADER, FOLLOWER, NEW),
    isr=(LEADER, FOLLOWER, NEW),
    adding_replicas=(),
    removing_replicas=(),
)


def moves(world: World, **fields: object) -> None:
    appends(world, _BEGIN, _IN_SYNC, msgspec.structs.replace(_END, **fields))


def reassigned_out_of_sync(world: World) -> None:
    moves(world, isr=(LEADER, FOLLOWER))


def reassigned_with_a_former_replica_in_sync(world: World) -> None:
    moves(world, isr=(LEADER, FOLLOWER, OTHER))


def grown_out_of_sync(world: World) -> None:
    """Nobody leaves, so that the replicas stay as they are."""
    begin = msgspec.structs.replace(_RECORD, replicas=(LEADER, FOLLOWER, OTHER, NEW), adding_replicas=(NEW,))
    appends(world, begin, msgspec.structs.replace(_RECORD, adding_replicas=()))


def reassigned_with_an_unclean_leader(world: World) -> None:
    """All targets were in sync, and an unclean election in the same change leaves its leader alone."""
    everybody = msgspec.structs.replace(_RECORD, isr=(LEADER, OTHER, NEW))
    elected = msgspec.structs.replace(_END, leader=FOLLOWER, isr=(FOLLOWER,))
    appends(world, msgspec.structs.replace(_BEGIN, isr=(LEADER, NEW)), everybody, elected)


def reassigned_within_an_epoch(world: World) -> None:
    moves(world, leader=UNSET)


CASES = (
    ("M13", image_of_a_partition_is_wrong),
    ("M13", image_of_a_broker_is_wrong),
    ("M13", image_is_ahead_of_the_log),
    ("M13", role_is_not_that_of_the_image),
    ("M13", hosts_what_it_is_no_replica_of),
    ("M14", earlier_controller_writes),
    ("M14", offset_is_written_again),
    ("M14", log_skips_an_offset),
    ("M12", broker_epoch_is_used_again),
    ("M12", broker_epoch_is_beyond_its_record),
    ("M16", reassigned_out_of_sync),
    ("M16", reassigned_with_a_former_replica_in_sync),
    ("M16", reassigned_within_an_epoch),
    ("M16", grown_out_of_sync),
    ("M16", reassigned_with_an_unclean_leader),
    ("L7", assigned_log_is_deleted),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    assert_fires(check_id, doctor)


def test_a_reassignment_may_end_well() -> None:
    world = World()
    moves(world)
    assert world.oracle.alarms == []


@pytest.mark.parametrize("isr", [(LEADER, FOLLOWER, OTHER), (LEADER,)])
def test_a_reassignment_may_be_called_off(isr: tuple[BrokerId, ...]) -> None:
    world = World()
    appends(world, _BEGIN, msgspec.structs.replace(_END, replicas=(LEADER, FOLLOWER, OTHER), isr=isr))
    assert "M16" not in world.fired


@pytest.mark.parametrize(
    ("leader", "before", "isr"),
    [
        (FOLLOWER, (LEADER, NEW, FOLLOWER), (FOLLOWER, LEADER, NEW)),
        (FOLLOWER, (OTHER,), (FOLLOWER, LEADER, NEW)),
    ],
)
def test_a_reassignment_may_end_with_another_leader(
    leader: BrokerId, before: tuple[BrokerId, ...], isr: tuple[BrokerId, ...]
) -> None:
    world = World()
    appends(
        world,
        msgspec.structs.replace(_BEGIN, leader=before[0], isr=before),
        msgspec.structs.replace(_END, leader=leader, isr=isr),
    )
    assert "M16" not in world.fired


def test_without_min_isr_a_reassignment_completes_by_the_isr_from_before_an_unclean_election() -> None:
    world = World(PLAN.replace("brokers=3", "brokers=3 reassignment_requires_min_isr=off"))
    begin = msgspec.structs.replace(_BEGIN, isr=(LEADER, NEW, OTHER))
    appends(world, begin, msgspec.structs.replace(_END, leader=FOLLOWER, isr=(FOLLOWER,)))
    assert "M16" not in world.fired


def test_an_added_replica_may_be_removed_again_before_the_others_are_in_sync() -> None:
    world = World()
    both = msgspec.structs.replace(
        _RECORD, replicas=(LEADER, FOLLOWER, OTHER, NEW), adding_replicas=(NEW,), removing_replicas=(NEW,)
    )
    back = msgspec.structs.replace(_END, replicas=(LEADER, FOLLOWER, OTHER), isr=(LEADER,))
    appends(world, both, back)
    assert "M16" not in world.fired


def test_the_oracles_fold_is_the_cores() -> None:
    world = World(f"""{CLUSTER}expire 1
wait 100
kill 2
wait 700
start 2
wait 700
stop 0
wait 700
start 0
wait 700
""")
    end_offset = MetadataOffset(0)
    image = MetadataImage()
    reference = world.oracle.checks.metadata.reference
    for batch in world.cluster.controller_node.log:
        for record in batch.records:
            image.replay(record, offset=end_offset)
            end_offset = MetadataOffset(end_offset + 1)
            assert reference.partitions_at(end_offset) == image.partitions
            assert reference.brokers_at(end_offset) == image.brokers
    assert end_offset > 20
