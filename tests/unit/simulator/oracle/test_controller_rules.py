"""Checks of what a controller commits, each in a cluster in which it must fire."""

import msgspec
import pytest

from laststand.emulator.core import admin_messages, effects, events, inputs, messages, records
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.metadata_version import METADATA_VERSION
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    CorrelationId,
    FenceReason,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    RecoveryDropReason,
    RecoveryOrigin,
    RecoveryStrategy,
)
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import CONTROLLER
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
    event = events.BrokerRegistered(
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


def elects(world: World, election: events.Election, leader: BrokerId = FOLLOWER, **fields: object) -> None:
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
    elects(world, events.Election.ISR, BrokerId(NodeId(7)))


def elected_from_elr_beside_an_isr(world: World) -> None:
    elects(world, events.Election.ELR)


def unclean_beside_candidates(world: World) -> None:
    elects(world, events.Election.UNCLEAN, isr=(FOLLOWER,), leader_recovery_state=RECOVERING)


def loses_everybody(world: World) -> None:
    world.changes(
        partition_epoch=NEXT,
        leader_epoch=LeaderEpoch(1),
        leader=None,
        isr=(),
        election=events.Election.NO_CANDIDATE,
        reason="broker_registered",
        broker_id=LEADER,
    )


def returns_uncleanly(world: World, **fields: object) -> None:
    loses_everybody(world)
    world.changes(
        partition_epoch=PartitionEpoch(2),
        leader_epoch=LeaderEpoch(2),
        leader=OTHER,
        election=events.Election.UNCLEAN,
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
        election=events.Election.UNCLEAN,
        reason="broker_unfenced",
        broker_id=OTHER,
        isr=(FOLLOWER, OTHER),
        leader_recovery_state=RECOVERING,
    )


def leaderless(world: World, *, strategy: str | None = None) -> None:
    """Nobody leads in leader epoch 1, and broker 0 is remembered as the leader before."""
    loses_everybody(world)
    world.changes(
        partition_epoch=PartitionEpoch(2),
        leader_epoch=LeaderEpoch(1),
        leader=None,
        reason="broker_fenced",
        election=events.Election.NO_CANDIDATE,
        isr=(),
        last_known_leader=LEADER,
    )
    if strategy is not None:
        configured = events.ConfigChanged(
            cause_id=CAUSE,
            metadata_offset=MetadataOffset(94),
            resource=ConfigResource.TOPIC,
            resource_name=NAME.topic,
            name="unclean.recovery.strategy",
            value=strategy,
        )
        world.happens(configured)


def answer_of(world: World, broker: BrokerId, epoch: int | None, end: int) -> events.ReplicaAnswer:
    written = None if epoch is None else LeaderEpoch(epoch)
    return events.ReplicaAnswer(broker, world.cluster.image.brokers[broker].broker_epoch, written, Offset(end))


def asks(world: World, broker: BrokerId) -> None:
    """The controller asks a broker what it has."""
    request = effects.SendRequest(
        destination=broker,
        correlation_id=CorrelationId(1000 + broker),
        request=messages.GetReplicaLogInfoRequest(partitions=((TOPIC, 0),)),
        timeout_ms=5000,
        cause_id=CAUSE,
    )
    world.oracle.checks.controller.recovery.answers.stepped(0, inputs.TimerFired(cause_id=CAUSE), [request])


def hears(world: World, answer: events.ReplicaAnswer, *, leader_epoch: int = 1) -> None:
    """The controller gets a broker's answer."""
    info = messages.ReplicaLogInfo(
        topic_id=TOPIC,
        partition=0,
        error=ErrorCode.NONE,
        last_written_leader_epoch=answer.last_written_leader_epoch,
        current_leader_epoch=LeaderEpoch(leader_epoch),
        log_end_offset=answer.log_end_offset,
    )
    response = inputs.ResponseReceived(
        cause_id=CAUSE,
        correlation_id=CorrelationId(1000 + answer.broker_id),
        response=messages.GetReplicaLogInfoResponse(broker_epoch=answer.broker_epoch, partitions=(info,)),
    )
    world.oracle.checks.controller.recovery.answers.stepped(0, response, [])


def asks_and_hears(world: World, *answers: events.ReplicaAnswer) -> None:
    """Each broker is asked, and answers at once."""
    for answer in answers:
        asks(world, answer.broker_id)
        hears(world, answer)


def elects_the_longest_log(
    world: World,
    *answers: events.ReplicaAnswer,
    strategy: RecoveryStrategy = RecoveryStrategy.BALANCED,
    metadata_offset: int = 95,
    ends_first: bool = False,
) -> None:
    """Broker 2 is elected, by the answers that are named; ``ends_first`` if the next process tells of that."""
    world.changes(
        partition_epoch=PartitionEpoch(3),
        leader_epoch=LeaderEpoch(2),
        leader=OTHER,
        election=events.Election.UNCLEAN,
        reason="unclean_recovery",
        isr=(OTHER,),
        leader_recovery_state=RECOVERING,
    )
    event = events.UncleanLeaderElected(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        metadata_offset=MetadataOffset(metadata_offset),
        leader=OTHER,
        leader_epoch=LeaderEpoch(2),
        method=events.UncleanMethod.LONGEST_LOG,
        strategy=strategy,
        candidates=tuple(answer.broker_id for answer in answers),
        draw=None,
        must_hear_from=(),
        answers=answers,
        discarded=(),
        why="test",
    )
    batch = records.MetadataBatch(base_offset=event.metadata_offset, records=())
    decided = effects.AppendMetadata(batch=batch, events=(event,))
    world.oracle.checks.controller.recovery.answers.stepped(0, inputs.TimerFired(cause_id=CAUSE), [decided])
    if ends_first:
        world.ends(CONTROLLER)
    world.happens(event)


def recovers_by_answers(
    world: World,
    *answers: tuple[BrokerId, int | None, int],
    strategy: RecoveryStrategy = RecoveryStrategy.BALANCED,
    configured: str | None = None,
) -> None:
    """Everybody whose answer is named gives it, and broker 2 is elected."""
    leaderless(world, strategy=configured)
    given = [answer_of(world, *answer) for answer in answers]
    asks_and_hears(world, *given)
    elects_the_longest_log(world, *given, strategy=strategy)


def elects_a_shorter_log(world: World) -> None:
    recovers_by_answers(world, (LEADER, 0, 7), (OTHER, 0, 5))


def elects_a_lower_epoch(world: World) -> None:
    recovers_by_answers(world, (LEADER, 1, 5), (OTHER, 0, 7))


def elects_who_said_nothing(world: World) -> None:
    recovers_by_answers(world, (LEADER, 0, 7))


def elects_before_the_last_leader_answered(world: World) -> None:
    recovers_by_answers(world, (FOLLOWER, 0, 3), (OTHER, 0, 5))


def elects_by_answers_that_nobody_gave(world: World) -> None:
    leaderless(world)
    elects_the_longest_log(world, answer_of(world, LEADER, 0, 3), answer_of(world, OTHER, 0, 5))


def alters_an_answer(world: World) -> None:
    leaderless(world)
    asks_and_hears(world, answer_of(world, LEADER, 0, 7), answer_of(world, OTHER, 0, 5))
    elects_the_longest_log(world, answer_of(world, LEADER, 0, 3), answer_of(world, OTHER, 0, 5))


def hears_all_but_counts(world: World, *counted: BrokerId) -> None:
    """Broker 1 has the longest log."""
    leaderless(world)
    given = {broker: answer_of(world, broker, 0, end) for broker, end in ((LEADER, 3), (FOLLOWER, 7), (OTHER, 5))}
    asks_and_hears(world, *given.values())
    elects_the_longest_log(world, *(given[broker] for broker in counted))


def begins_to_ask(world: World) -> None:
    event = events.UncleanRecoveryStarted(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        leader_epoch=LeaderEpoch(1),
        strategy=RecoveryStrategy.BALANCED,
        origin=RecoveryOrigin.CONFIGURED,
        must_hear_from=(LEADER,),
    )
    world.happens(event)


def does_not_wait_for_everybody(world: World) -> None:
    begins_to_ask(world)
    recovers_by_answers(world, (LEADER, None, 0), (OTHER, 0, 5))


def aggressive_does_not_wait_for_who_is_up(world: World) -> None:
    begins_to_ask(world)
    aggressive_is_configured(world)


def leaves_an_answer_out(world: World) -> None:
    hears_all_but_counts(world, LEADER, OTHER)


def asks_again_and_leaves_the_answer_out(world: World) -> None:
    leaderless(world)
    asks_and_hears(world, answer_of(world, FOLLOWER, 0, 7))
    asks(world, FOLLOWER)
    given = [answer_of(world, broker, 0, 5) for broker in (LEADER, OTHER)]
    asks_and_hears(world, *given)
    elects_the_longest_log(world, *given)


def counts_an_answer(world: World, answer: events.ReplicaAnswer, *, leader_epoch: int = 1) -> None:
    """The answer of broker 0 is counted as it was given, beside one that counts."""
    leaderless(world)
    asks(world, LEADER)
    hears(world, answer, leader_epoch=leader_epoch)
    elected = answer_of(world, OTHER, 0, 5)
    asks_and_hears(world, elected)
    elects_the_longest_log(world, answer, elected)


def counts_an_answer_of_an_earlier_leader_epoch(world: World) -> None:
    counts_an_answer(world, answer_of(world, LEADER, 0, 3), leader_epoch=0)


def counts_an_answer_of_an_earlier_incarnation(world: World) -> None:
    counts_an_answer(world, events.ReplicaAnswer(LEADER, BrokerEpoch(1), LeaderEpoch(0), Offset(3)))


def counts_what_an_earlier_controller_heard(world: World) -> None:
    leaderless(world)
    given = [answer_of(world, LEADER, 0, 3), answer_of(world, OTHER, 0, 5)]
    asks_and_hears(world, *given)
    world.ends(CONTROLLER)
    elects_the_longest_log(world, *given)


def goes_by_a_strategy_of_its_own(world: World) -> None:
    recovers_by_answers(world, (LEADER, 0, 3), (OTHER, 0, 5), strategy=RecoveryStrategy.AGGRESSIVE)


def recovers_though_strategy_none_is_configured(world: World) -> None:
    recovers_by_answers(world, (LEADER, 0, 3), (OTHER, 0, 5), strategy=RecoveryStrategy.NONE, configured="None")


def asks_for(world: World, election: admin_messages.RequestedElection) -> None:
    """An administrator asks for a leader."""
    world.oracle.asked(actions.ElectLeaders(election=election, partitions=(NAME,)))


def goes_by_another_strategy_than_asked_for(world: World) -> None:
    asks_for(world, admin_messages.RequestedElection.LONGEST_LOG_BALANCED)
    goes_by_a_strategy_of_its_own(world)


def goes_twice_by_what_was_asked_for_once(world: World) -> None:
    asks_for(world, admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE)
    goes_by_a_strategy_of_its_own(world)
    assert "M20" not in world.fired
    given = [answer_of(world, LEADER, 0, 3), answer_of(world, OTHER, 0, 5)]
    elects_the_longest_log(world, *given, strategy=RecoveryStrategy.AGGRESSIVE, metadata_offset=96)


def leads_without_election(world: World) -> None:
    elects(world, events.Election.NONE)


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
    world.changes(partition_epoch=NEXT, leader=FOLLOWER, election=events.Election.ISR)


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


def reassigned_under_min_isr(world: World) -> None:
    world.changes(partition_epoch=NEXT, removing_replicas=(OTHER,))
    world.changes(
        partition_epoch=PartitionEpoch(2),
        leader_epoch=LeaderEpoch(1),
        replicas=(LEADER, FOLLOWER),
        isr=(LEADER,),
        removing_replicas=(),
    )


def decides(world: World, **fields: object) -> None:
    """Lets the oracle see that a proposal of all but ``OTHER`` was accepted, as it should be but for ``fields``."""
    brokers = world.cluster.image.brokers
    accepted = events.AlterPartitionDecided(
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
    world.ends(FOLLOWER)
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
    ("M16", reassigned_under_min_isr),
    ("M19", called_off_under_min_isr),
    ("M21", goes_by_a_smaller_min_isr),
    ("M20", elects_a_shorter_log),
    ("M20", elects_a_lower_epoch),
    ("M20", elects_who_said_nothing),
    ("M20", elects_before_the_last_leader_answered),
    ("M20", does_not_wait_for_everybody),
    ("M20", aggressive_does_not_wait_for_who_is_up),
    ("M20", elects_by_answers_that_nobody_gave),
    ("M20", alters_an_answer),
    ("M20", leaves_an_answer_out),
    ("M20", asks_again_and_leaves_the_answer_out),
    ("M20", counts_an_answer_of_an_earlier_leader_epoch),
    ("M20", counts_an_answer_of_an_earlier_incarnation),
    ("M20", counts_what_an_earlier_controller_heard),
    ("M20", goes_by_a_strategy_of_its_own),
    ("M20", recovers_though_strategy_none_is_configured),
    ("M20", goes_by_another_strategy_than_asked_for),
    ("M20", goes_twice_by_what_was_asked_for_once),
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
    version = events.FeatureChanged(
        cause_id=CAUSE, metadata_offset=MetadataOffset(80), name=METADATA_VERSION, feature_level=level
    )
    world.happens(version)
    returns_uncleanly(world)
    assert ("M7" in world.fired) is fires


def the_last_leader_answered(world: World) -> None:
    recovers_by_answers(world, (LEADER, None, 0), (OTHER, 0, 5))


def everybody_answered(world: World) -> None:
    recovers_by_answers(world, (LEADER, 0, 3), (FOLLOWER, 0, 4), (OTHER, 0, 5))


def aggressive_is_configured(world: World) -> None:
    recovers_by_answers(world, (OTHER, 0, 5), strategy=RecoveryStrategy.AGGRESSIVE, configured="Aggressive")


def aggressive_is_asked_for(world: World) -> None:
    asks_for(world, admin_messages.RequestedElection.UNCLEAN)
    recovers_by_answers(world, (OTHER, 0, 5), strategy=RecoveryStrategy.AGGRESSIVE)


def balanced_is_asked_for_under_strategy_none(world: World) -> None:
    asks_for(world, admin_messages.RequestedElection.LONGEST_LOG_BALANCED)
    recovers_by_answers(world, (LEADER, 0, 3), (OTHER, 0, 5), configured="None")


def the_longest_log_is_of_a_fenced_broker(world: World) -> None:
    fenced = events.BrokerFenced(
        cause_id=CAUSE,
        metadata_offset=MetadataOffset(93),
        broker_id=FOLLOWER,
        broker_epoch=world.cluster.image.brokers[FOLLOWER].broker_epoch,
        reason=FenceReason.SESSION_EXPIRED,
    )
    world.happens(fenced)
    hears_all_but_counts(world, LEADER, OTHER)


def drops_a_recovery(world: World) -> None:
    """Broker 1, which has the longest log, has answered before."""
    leaderless(world)
    asks_and_hears(world, answer_of(world, FOLLOWER, 0, 7))
    dropped = events.UncleanRecoveryDropped(
        cause_id=CAUSE,
        topic=NAME.topic,
        partition=NAME.partition,
        topic_id=TOPIC,
        leader_epoch=LeaderEpoch(1),
        reason=RecoveryDropReason.TIMED_OUT,
    )
    world.happens(dropped)


def an_answer_came_before_the_recovery_was_dropped(world: World) -> None:
    drops_a_recovery(world)
    given = [answer_of(world, LEADER, 0, 3), answer_of(world, OTHER, 0, 5)]
    asks_and_hears(world, *given)
    elects_the_longest_log(world, *given)


def the_process_that_elected_has_ended(world: World) -> None:
    """A process may end before it has told of the answer that it dropped last."""
    leaderless(world)
    given = [answer_of(world, LEADER, 0, 3), answer_of(world, FOLLOWER, 0, 7), answer_of(world, OTHER, 0, 5)]
    asks_and_hears(world, *given)
    elects_the_longest_log(world, given[0], given[2], ends_first=True)


@pytest.mark.parametrize(
    "doctor",
    [
        the_last_leader_answered,
        everybody_answered,
        aggressive_is_configured,
        aggressive_is_asked_for,
        balanced_is_asked_for_under_strategy_none,
        the_longest_log_is_of_a_fenced_broker,
        an_answer_came_before_the_recovery_was_dropped,
        the_process_that_elected_has_ended,
    ],
)
def test_the_longest_log_may_lead(doctor: Doctor) -> None:
    world = World()
    doctor(world)
    assert "M20" not in world.fired


def test_an_answer_after_a_recovery_was_dropped_is_not_left_out() -> None:
    world = World()
    drops_a_recovery(world)
    given = {broker: answer_of(world, broker, 0, end) for broker, end in ((LEADER, 3), (FOLLOWER, 7), (OTHER, 5))}
    asks_and_hears(world, *given.values())
    elects_the_longest_log(world, given[LEADER], given[OTHER])
    assert "M20" in world.fired


def test_a_reassignment_may_be_called_off_at_min_isr() -> None:
    world = World()
    called_off(world, (LEADER, FOLLOWER))
    assert world.oracle.alarms == []
