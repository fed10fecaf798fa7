"""What a controller may commit: each check in a cluster in which it must fire."""

import msgspec
import pytest

from emulator.core.events import (
    AlterPartitionDecided,
    BrokerRegistered,
    Election,
    FeatureChanged,
    IncarnationEnd,
    IncarnationEnded,
    ReplicaAnswer,
    UncleanLeaderElected,
    UncleanMethod,
)
from emulator.core.metadata_version import METADATA_VERSION
from emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    RecoveryStrategy,
    TopicId,
)
from tests.unit.simulator.oracle.world import (
    CAUSE,
    FOLLOWER,
    LEADER,
    NAME,
    OTHER,
    TOPIC,
    Doctor,
    World,
    assert_fires,
    firing,
)

RECOVERING = LeaderRecoveryState.RECOVERING
NEXT = PartitionEpoch(1)


def isr_is_no_replica(world: World) -> None:
    world.commits(partition_epoch=NEXT, isr=(LEADER, BrokerId(NodeId(7))))


def elr_is_no_replica(world: World) -> None:
    world.commits(partition_epoch=NEXT, isr=(LEADER,), elr=(FOLLOWER, BrokerId(NodeId(7))))


def leader_is_not_in_isr(world: World) -> None:
    world.commits(partition_epoch=NEXT, isr=(FOLLOWER,))


def fenced_member(world: World) -> None:
    brokers = world.cluster.image.brokers
    brokers[FOLLOWER] = msgspec.structs.replace(brokers[FOLLOWER], fenced=True)
    world.commits(partition_epoch=NEXT)


def elr_beside_a_large_isr(world: World) -> None:
    world.commits(partition_epoch=NEXT, isr=(LEADER, FOLLOWER), elr=(OTHER,))


def candidates_vanish(world: World) -> None:
    world.changes(partition_epoch=NEXT, isr=(LEADER,), reason="alter_partition", broker_id=LEADER)


def registers_uncleanly(world: World) -> None:
    event = BrokerRegistered(
        cause_id=CAUSE,
        metadata_offset=MetadataOffset(90),
        broker_id=FOLLOWER,
        broker_epoch=BrokerEpoch(90),
        incarnation_id=IncarnationId("incarnation-1-1"),
        previous_broker_epoch=None,
        stored_broker_epoch=BrokerEpoch(4),
        is_clean=False,
    )
    world.happens(event)


def unclean_candidate(world: World) -> None:
    registers_uncleanly(world)
    world.changes(partition_epoch=NEXT, reason="elect_leaders", metadata_offset=MetadataOffset(91))


def elects(world: World, election: Election, leader: BrokerId = FOLLOWER, **fields: object) -> None:
    world.changes(
        partition_epoch=NEXT,
        leader_epoch=LeaderEpoch(1),
        reason="broker_fenced",
        broker_id=LEADER,
        leader=leader,
        election=election,
        **fields,
    )


def elected_from_outside_the_isr(world: World) -> None:
    elects(world, Election.ISR, BrokerId(NodeId(7)))


def elected_from_elr_beside_an_isr(world: World) -> None:
    elects(world, Election.ELR)


def unclean_beside_candidates(world: World) -> None:
    elects(world, Election.UNCLEAN, isr=(FOLLOWER,), leader_recovery_state=RECOVERING)


def loses_everybody(world: World) -> None:
    world.changes(
        partition_epoch=NEXT,
        leader_epoch=LeaderEpoch(1),
        leader=None,
        isr=(),
        election=Election.NO_CANDIDATE,
        reason="broker_registered",
        broker_id=LEADER,
    )


def returns_uncleanly(world: World, **fields: object) -> None:
    loses_everybody(world)
    world.changes(
        partition_epoch=PartitionEpoch(2),
        leader_epoch=LeaderEpoch(2),
        leader=OTHER,
        election=Election.UNCLEAN,
        reason="broker_unfenced",
        broker_id=OTHER,
        isr=(OTHER,),
        **fields,
    )


def unclean_and_serves_at_once(world: World) -> None:
    returns_uncleanly(world)


def unclean_and_not_alone(world: World) -> None:
    returns_uncleanly(world, leader_recovery_state=RECOVERING)
    assert "M6" not in world.fired
    world.changes(
        partition_epoch=PartitionEpoch(3),
        leader_epoch=LeaderEpoch(3),
        leader=FOLLOWER,
        election=Election.UNCLEAN,
        reason="broker_unfenced",
        broker_id=OTHER,
        isr=(FOLLOWER, OTHER),
        leader_recovery_state=RECOVERING,
    )


def recovers_by_answers(world: World, *answers: tuple[BrokerId, int | None, int]) -> None:
    """Broker 2 is elected by the longest log, and broker 0 is remembered as the leader before."""
    loses_everybody(world)
    world.changes(
        partition_epoch=PartitionEpoch(2),
        leader_epoch=LeaderEpoch(1),
        leader=None,
        reason="broker_fenced",
        election=Election.NO_CANDIDATE,
        isr=(),
        last_known_leader=LEADER,
    )
    world.changes(
        partition_epoch=PartitionEpoch(3),
        leader_epoch=LeaderEpoch(2),
        leader=OTHER,
        election=Election.UNCLEAN,
        reason="unclean_recovery",
        isr=(OTHER,),
        leader_recovery_state=RECOVERING,
    )
    event = UncleanLeaderElected(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TopicId("id-of-orders"),
        metadata_offset=MetadataOffset(95),
        leader=OTHER,
        leader_epoch=LeaderEpoch(2),
        method=UncleanMethod.LONGEST_LOG,
        strategy=RecoveryStrategy.BALANCED,
        candidates=tuple(broker for broker, _, _ in answers),
        draw=None,
        must_hear_from=(),
        answers=tuple(
            ReplicaAnswer(broker, BrokerEpoch(1), None if epoch is None else LeaderEpoch(epoch), Offset(end))
            for broker, epoch, end in answers
        ),
        discarded=(),
        why="test",
    )
    world.happens(event)


def elects_a_shorter_log(world: World) -> None:
    recovers_by_answers(world, (LEADER, 0, 7), (OTHER, 0, 5))


def elects_a_lower_epoch(world: World) -> None:
    recovers_by_answers(world, (LEADER, 1, 5), (OTHER, 0, 7))


def elects_who_said_nothing(world: World) -> None:
    recovers_by_answers(world, (LEADER, 0, 7))


def elects_before_the_last_leader_answered(world: World) -> None:
    recovers_by_answers(world, (FOLLOWER, 0, 3), (OTHER, 0, 5))


def leads_without_election(world: World) -> None:
    elects(world, Election.NONE)


def recovers_beside_others(world: World) -> None:
    world.changes(partition_epoch=NEXT, leader_recovery_state=RECOVERING)


def recovers_from_nothing(world: World) -> None:
    world.changes(partition_epoch=NEXT, leader_recovery_state=RECOVERING, isr=(LEADER,), elr=(FOLLOWER, OTHER))


def recovers_by_another(world: World) -> None:
    returns_uncleanly(world, leader_recovery_state=RECOVERING)
    assert not {"M6", "M7"} & world.fired
    world.changes(
        partition_epoch=PartitionEpoch(3),
        leader_epoch=LeaderEpoch(2),
        leader=OTHER,
        isr=(OTHER,),
        reason="broker_unfenced",
        broker_id=LEADER,
    )


def epoch_does_not_rise(world: World) -> None:
    world.changes(partition_epoch=PartitionEpoch(0))


def leader_epoch_does_not_rise(world: World) -> None:
    world.changes(partition_epoch=NEXT, leader=FOLLOWER, election=Election.ISR)


def isr_grows_by_itself(world: World) -> None:
    world.changes(partition_epoch=NEXT, isr=(LEADER, FOLLOWER), reason="broker_fenced", broker_id=OTHER)
    world.changes(partition_epoch=PartitionEpoch(2), reason="broker_unfenced", broker_id=OTHER)


def called_off(world: World, isr: tuple[BrokerId, ...]) -> None:
    """A reassignment that was to add a broker and remove ``OTHER`` is called off."""
    added = BrokerId(NodeId(7))
    world.changes(
        partition_epoch=NEXT,
        replicas=(LEADER, FOLLOWER, added, OTHER),
        adding_replicas=(added,),
        removing_replicas=(OTHER,),
        isr=isr,
        reason="reassignment",
    )
    world.changes(
        partition_epoch=PartitionEpoch(2),
        leader_epoch=LeaderEpoch(1),
        replicas=(LEADER, FOLLOWER, OTHER),
        isr=isr,
        reason="reassignment",
    )


def called_off_under_min_isr(world: World) -> None:
    called_off(world, (LEADER,))


def decides(world: World, **fields: object) -> None:
    """Lets the oracle see that a proposal of all but ``OTHER`` was accepted, as it should be but for ``fields``."""
    brokers = world.cluster.image.brokers
    accepted = AlterPartitionDecided(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        broker_id=LEADER,
        broker_epoch=brokers[LEADER].broker_epoch,
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        proposed_isr=(LEADER, FOLLOWER),
        broker_epochs=(brokers[LEADER].broker_epoch, brokers[FOLLOWER].broker_epoch),
        error="NONE",
    )
    world.happens(msgspec.structs.replace(accepted, **fields))


def goes_by_a_smaller_min_isr(world: World) -> None:
    """Two are configured, and the partition has three replicas."""
    world.changes(partition_epoch=NEXT, effective_min_isr=1)


def accepts_a_stranger(world: World) -> None:
    epoch = world.cluster.image.brokers[FOLLOWER].broker_epoch
    decides(world, broker_id=FOLLOWER, broker_epoch=epoch)


def accepts_another_epoch(world: World) -> None:
    decides(world, leader_epoch=LeaderEpoch(1))


def accepts_another_incarnation(world: World) -> None:
    epoch = world.cluster.image.brokers[LEADER].broker_epoch
    decides(world, broker_epochs=(epoch, BrokerEpoch(1)))


def accepts_an_earlier_sender(world: World) -> None:
    decides(world, broker_epoch=BrokerEpoch(1))


def accepts_another_broker(world: World) -> None:
    decides(world, proposed_isr=(LEADER, BrokerId(NodeId(7))))


def accepts_an_isr_without_its_leader(world: World) -> None:
    epoch = world.cluster.image.brokers[FOLLOWER].broker_epoch
    decides(world, proposed_isr=(FOLLOWER,), broker_epochs=(epoch,))


def accepts_who_names_no_epoch(world: World) -> None:
    world.changes(partition_epoch=NEXT, isr=(LEADER, FOLLOWER), reason="broker_fenced", broker_id=OTHER)
    brokers = world.cluster.image.brokers
    known = tuple(brokers[member].broker_epoch for member in (LEADER, FOLLOWER))
    decides(world, partition_epoch=NEXT, proposed_isr=(LEADER, FOLLOWER, OTHER), broker_epochs=(*known, None))


def accepts_who_is_not_active(world: World) -> None:
    registers_uncleanly(world)
    decides(world, broker_epochs=(world.cluster.image.brokers[LEADER].broker_epoch, BrokerEpoch(90)))


def accepts_after_another_change(world: World) -> None:
    world.changes(partition_epoch=NEXT, isr=(LEADER, FOLLOWER), reason="broker_fenced", broker_id=OTHER)
    decides(world)


def takes_the_future_for_old(world: World) -> None:
    decides(world, partition_epoch=PartitionEpoch(7), error="INVALID_UPDATE_VERSION")


def registers_during_the_session(world: World) -> None:
    ended = IncarnationEnded(
        cause_id=CAUSE,
        ended_node=FOLLOWER,
        ended_incarnation=0,
        end=IncarnationEnd.KILLED,
        exit_code=None,
        metadata_offset=MetadataOffset(12),
    )
    world.happens(ended, node=NodeId(2000))
    registers_uncleanly(world)


CASES = (
    ("M1", isr_is_no_replica),
    ("M1", leader_is_not_in_isr),
    ("M2", fenced_member),
    ("M3", elr_beside_a_large_isr),
    ("M4", candidates_vanish),
    ("M5", unclean_candidate),
    ("M6", elected_from_outside_the_isr),
    ("M6", elected_from_elr_beside_an_isr),
    ("M6", unclean_beside_candidates),
    ("M6", unclean_and_not_alone),
    ("M6", leads_without_election),
    ("M7", unclean_and_serves_at_once),
    ("M7", recovers_beside_others),
    ("M7", recovers_from_nothing),
    ("M7", recovers_by_another),
    ("M9", epoch_does_not_rise),
    ("M9", leader_epoch_does_not_rise),
    ("M11", isr_grows_by_itself),
    ("M10", accepts_a_stranger),
    ("M10", accepts_another_epoch),
    ("M10", accepts_another_incarnation),
    ("M10", accepts_an_earlier_sender),
    ("M10", accepts_another_broker),
    ("M10", accepts_an_isr_without_its_leader),
    ("M10", accepts_who_names_no_epoch),
    ("M10", accepts_who_is_not_active),
    ("M10", accepts_after_another_change),
    ("M10", takes_the_future_for_old),
    ("M12", registers_during_the_session),
    ("M17", elr_is_no_replica),
    ("M19", called_off_under_min_isr),
    ("M21", goes_by_a_smaller_min_isr),
    ("M20", elects_a_shorter_log),
    ("M20", elects_a_lower_epoch),
    ("M20", elects_who_said_nothing),
    ("M20", elects_before_the_last_leader_answered),
)


@firing(CASES)
def test_it_fires(check_id: str, doctor: Doctor) -> None:
    assert_fires(check_id, doctor)


def test_a_proposal_in_order_may_be_accepted() -> None:
    world = World()
    decides(world)
    assert world.oracle.alarms == []


@pytest.mark.parametrize(("level", "fires"), [(3, True), (2, False)])
def test_an_unclean_leader_recovers_where_the_metadata_version_has_a_state_for_it(level: int, *, fires: bool) -> None:
    world = World()
    version = FeatureChanged(
        cause_id=CAUSE, metadata_offset=MetadataOffset(80), name=METADATA_VERSION, feature_level=level
    )
    world.happens(version)
    returns_uncleanly(world)
    assert ("M7" in world.fired) is fires


def test_the_longest_log_may_lead_once_the_last_leader_answered() -> None:
    world = World()
    recovers_by_answers(world, (LEADER, None, 0), (OTHER, 0, 5))
    assert "M20" not in world.fired


def test_a_reassignment_may_be_called_off_at_min_isr() -> None:
    world = World()
    called_off(world, (LEADER, FOLLOWER))
    assert world.oracle.alarms == []
