"""Elections that somebody asks for, and those that the controller holds from time to time.

After Kafka's ``ReplicationControlManager``. An UNCLEAN request ignores the topic's own setting, yet is a clean election
where a clean candidate lives; a PREFERRED one on a leaderless partition may elect another clean candidate.
"""

from typing import Final

import msgspec

from emulator.core.controller.decision import ChangeReason, Decision
from emulator.core.controller.partition_change import PartitionTarget
from emulator.core.controller.view import ClusterView
from emulator.core.errors import ErrorCode
from emulator.core.image import PartitionState
from emulator.core.types import ElectionType, TopicPartition

SWEEP_LIMIT: Final = 1000
"""Partitions that one periodic pass changes at most."""


class ElectOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer for one partition, and what it writes."""

    error: ErrorCode
    decisions: tuple[Decision, ...] = ()


def request_error(mode: ElectionType) -> ErrorCode:
    """Returns the error of a whole ElectLeaders request: only PREFERRED and UNCLEAN can be asked for."""
    return ErrorCode.INVALID_REQUEST if mode is ElectionType.ONLINE else ErrorCode.NONE


def elect_leaders(view: ClusterView, partition: TopicPartition, mode: ElectionType) -> ElectOutcome:
    """Decides on one partition of an ElectLeaders request that ``request_error`` finds nothing wrong with."""
    state = view.image.partitions.get(partition)
    if state is None:
        return ElectOutcome(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not _is_needed(state, mode):
        return ElectOutcome(error=ErrorCode.ELECTION_NOT_NEEDED)
    decisions = _elect(view, partition, mode)
    if decisions:
        return ElectOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))
    if mode is ElectionType.PREFERRED:
        return ElectOutcome(error=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return ElectOutcome(error=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


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
    """Returns unclean elections of leaderless partitions whose topic allows them, ``SWEEP_LIMIT`` at most."""
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
