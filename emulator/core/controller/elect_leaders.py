"""Elections on request, and those that the controller holds periodically.

After Kafka's ``ReplicationControlManager``. An UNCLEAN request ignores the topic's own setting, yet is a clean election
where a clean candidate lives; a PREFERRED one on a leaderless partition may elect another clean candidate. KIP-966
adds the replica that the administrator names, which is a clean election where that replica is a clean candidate, and
the longest log, which is the unclean recovery manager's to find.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from laststand.emulator.core import admin_messages, events
from laststand.emulator.core.controller.decision import Decision, UncleanElection
from laststand.emulator.core.controller.partition_change import PartitionTarget
from laststand.emulator.core.controller.recovery import RecoveryAction, decide_recovery
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerId, ChangeReason, ElectionType, RecoveryStrategy, TopicPartition

SWEEP_LIMIT: Final = 1000
"""Partitions that one periodic pass changes at most."""


ELECT_LIMIT: Final = 1000
"""Partitions that one ElectLeaders request is served; the rest are answered with REQUEST_LIMIT_REACHED (KIP-966)."""


def election_requests(
    election_type: int, partitions: Sequence[admin_messages.ElectablePartition]
) -> tuple[admin_messages.ElectLeadersRequest, ...]:
    """Returns as many requests as the limit needs, in the order of the partitions."""
    return tuple(
        admin_messages.ElectLeadersRequest(
            election_type=election_type, partitions=tuple(partitions[first : first + ELECT_LIMIT])
        )
        for first in range(0, len(partitions), ELECT_LIMIT)
    )


class ElectOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer for one partition, and what it writes; with ``recovery`` the answer is that of an unclean recovery."""

    error: ErrorCode
    message: str = ""
    decisions: tuple[Decision, ...] = ()
    recovery: RecoveryStrategy | None = None


def request_error(request: admin_messages.ElectLeadersRequest) -> ErrorCode:
    """Returns the error of a whole ElectLeaders request: no such election, or all partitions to one named leader."""
    if request.election_type not in list(admin_messages.RequestedElection):
        return ErrorCode.INVALID_REQUEST
    is_designated = request.election_type == admin_messages.RequestedElection.DESIGNATED
    return ErrorCode.INVALID_REQUEST if is_designated and request.partitions is None else ErrorCode.NONE


def requested_partitions(
    view: ClusterView, request: admin_messages.ElectLeadersRequest
) -> tuple[admin_messages.ElectablePartition, ...]:
    """Returns the partitions that a request is about, in its order; all by name where it lists none."""
    if request.partitions is not None:
        return request.partitions
    every = sorted(view.image.partitions)
    return tuple(admin_messages.ElectablePartition(topic=topic, partition=partition) for topic, partition in every)


def elect_leaders(
    view: ClusterView, asked: admin_messages.ElectablePartition, election: admin_messages.RequestedElection
) -> ElectOutcome:
    """Decides on one partition of an ElectLeaders request that ``request_error`` finds nothing wrong with."""
    partition = asked.topic_partition
    state = view.image.partitions.get(partition)
    if state is None:
        return ElectOutcome(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=f"there is no partition {partition}")
    match election:
        case admin_messages.RequestedElection.PREFERRED:
            return _elect_by_mode(view, partition, state, ElectionType.PREFERRED)
        case admin_messages.RequestedElection.UNCLEAN if view.properties.unclean_recovery_manager_enabled:
            return _elect_longest_log(view, partition, state, RecoveryStrategy.AGGRESSIVE)
        case admin_messages.RequestedElection.UNCLEAN:
            return _elect_by_mode(view, partition, state, ElectionType.UNCLEAN)
        case admin_messages.RequestedElection.DESIGNATED:
            return _elect_designated(view, partition, state, asked.desired_leader)
        case admin_messages.RequestedElection.LONGEST_LOG_BALANCED:
            return _elect_longest_log(view, partition, state, RecoveryStrategy.BALANCED)
        case admin_messages.RequestedElection.LONGEST_LOG_AGGRESSIVE:
            return _elect_longest_log(view, partition, state, RecoveryStrategy.AGGRESSIVE)


def _elect_by_mode(
    view: ClusterView, partition: TopicPartition, state: PartitionState, mode: ElectionType
) -> ElectOutcome:
    if not _is_needed(state, mode):
        return ElectOutcome(error=ErrorCode.ELECTION_NOT_NEEDED)
    decisions = _elect(view, partition, mode)
    if decisions:
        return ElectOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))
    if mode is ElectionType.PREFERRED:
        return ElectOutcome(error=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return ElectOutcome(error=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def _elect_designated(
    view: ClusterView, partition: TopicPartition, state: PartitionState, desired_leader: BrokerId | None
) -> ElectOutcome:
    if desired_leader is None or desired_leader not in state.replicas:
        message = f"the desired leader of {partition} must be one of its replicas {list(state.replicas)}"
        return ElectOutcome(error=ErrorCode.INVALID_REQUEST, message=message)
    if state.leader == desired_leader:
        return ElectOutcome(error=ErrorCode.ELECTION_NOT_NEEDED)
    if desired_leader not in view.active_brokers():
        message = f"broker {desired_leader} may not lead now"
        return ElectOutcome(error=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message=message)
    # No other replica may win, so this is clean if the replica is a clean candidate and unclean if it is not.
    target = PartitionTarget(acceptable=frozenset({desired_leader}), election=ElectionType.UNCLEAN)
    unclean = UncleanElection(
        method=events.UncleanMethod.DESIGNATED,
        strategy=view.recovery_strategy(partition.topic),
        candidates=(desired_leader,),
        why="the administrator named it",
    )
    decisions = view.change_partition(
        partition, target, reason=ChangeReason.ELECT_LEADERS, broker_id=None, unclean=unclean
    )
    return ElectOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))


def _elect_longest_log(
    view: ClusterView, partition: TopicPartition, state: PartitionState, strategy: RecoveryStrategy
) -> ElectOutcome:
    if state.leader is not None:
        return ElectOutcome(error=ErrorCode.ELECTION_NOT_NEEDED)
    if not view.properties.unclean_recovery_manager_enabled:
        message = "needs unclean.recovery.manager.enabled=true"
        return ElectOutcome(error=ErrorCode.UNSUPPORTED_VERSION, message=message)
    action = decide_recovery(state, active=view.active_brokers(), strategy=strategy).action
    match action:
        case RecoveryAction.ELECT:
            return ElectOutcome(error=ErrorCode.NONE, decisions=tuple(_elect(view, partition, ElectionType.CLEAN)))
        case RecoveryAction.UNCLEAN_RECOVERY:
            return ElectOutcome(error=ErrorCode.NONE, recovery=strategy)
        case _:
            return ElectOutcome(error=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message=action.value)


def sweep_preferred(view: ClusterView) -> list[Decision]:
    """Returns the changes that give leaderships back to preferred replicas, ``SWEEP_LIMIT`` at most."""
    decisions: list[Decision] = []
    for partition, state in view.image.partitions.items():
        if len(decisions) == SWEEP_LIMIT:
            break
        if _is_needed(state, ElectionType.PREFERRED):
            decisions += _elect(view, partition, ElectionType.PREFERRED)
    return decisions


def sweep_unclean(view: ClusterView) -> list[Decision]:
    """Returns unclean elections of leaderless partitions whose topic allows them, at most ``SWEEP_LIMIT``."""
    decisions: list[Decision] = []
    for partition, _ in view.leaderless_partitions():
        if len(decisions) == SWEEP_LIMIT:
            break
        if view.is_unclean_election_enabled(partition.topic):
            decisions += _elect(view, partition, ElectionType.UNCLEAN)
    return decisions


def _is_needed(state: PartitionState, mode: ElectionType) -> bool:
    return state.leader is None if mode is ElectionType.UNCLEAN else state.leader != state.replicas[0]


def _elect(view: ClusterView, partition: TopicPartition, mode: ElectionType) -> list[Decision]:
    target = PartitionTarget(acceptable=view.active_brokers(), election=mode)
    return view.change_partition(partition, target, reason=ChangeReason.ELECT_LEADERS, broker_id=None)
