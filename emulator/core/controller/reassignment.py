"""Moving a partition to other brokers, and cancelling that (AlterPartitionReassignments).

The arithmetic is in ``reassignment_lists``; completion is part of every change. By KIP-966 it asks for an ISR with all
that are added, and of min ISR (switches ``reassignment_needs_all``, ``reassignment_requires_min_isr``). A cancellation
leaves min ISR members, too (switch ``cancel_requires_min_isr``); Kafka's ``ReplicationControlManager`` takes even one
that leaves none, and as clean.
"""

from collections.abc import Iterable
from enum import Enum

import msgspec

from laststand.emulator.core import admin_messages
from laststand.emulator.core.controller.decision import Decision
from laststand.emulator.core.controller.partition_change import PartitionTarget
from laststand.emulator.core.controller.reassignment_lists import revert_reassignment, start_reassignment
from laststand.emulator.core.controller.topics import manual_placement_problem
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerId, ChangeReason, TopicPartition


class ReplicationFactorChange(Enum):
    """Permission to change the number of replicas in a reassignment (KIP-860)."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"


class ReassignOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer for one partition, and what it writes."""

    error: ErrorCode
    message: str = ""
    decisions: tuple[Decision, ...] = ()


def reassign_partition(
    view: ClusterView,
    partition: TopicPartition,
    replicas: tuple[BrokerId, ...],
    *,
    factor_change: ReplicationFactorChange = ReplicationFactorChange.ALLOWED,
) -> ReassignOutcome:
    """Decides on a reassignment to ``replicas``; fenced targets are fine, a missing leader is elected on the way."""
    state = view.image.partitions.get(partition)
    if state is None:
        return _unknown(partition)
    problem = manual_placement_problem(view, replicas, required_replicas=None)
    if problem is not None:
        return ReassignOutcome(error=ErrorCode.INVALID_REPLICA_ASSIGNMENT, message=problem)
    settled = (set(state.replicas) | set(state.adding_replicas)) - set(state.removing_replicas)
    if factor_change is ReplicationFactorChange.FORBIDDEN and len(replicas) != len(settled):
        message = f"{len(replicas)} replicas for {partition}, which has {len(settled)}"
        return ReassignOutcome(error=ErrorCode.INVALID_REPLICATION_FACTOR, message=message)
    lists = start_reassignment(current=state.replicas, target=replicas)
    # Kafka passes on only lists with members, so an empty one leaves what an earlier reassignment put there.
    target = PartitionTarget(
        acceptable=view.active_brokers(),
        replicas=lists.replicas,
        adding_replicas=lists.adding or state.adding_replicas,
        removing_replicas=lists.removing or state.removing_replicas,
    )
    decisions = view.change_partition(partition, target, reason=ChangeReason.REASSIGNMENT, broker_id=None)
    return ReassignOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))


def cancel_reassignment(view: ClusterView, partition: TopicPartition) -> ReassignOutcome:
    """Decides on a null target: back to the replicas without those being added, in their present order."""
    state = view.image.partitions.get(partition)
    if state is None:
        return _unknown(partition)
    if not _is_in_progress(state):
        return ReassignOutcome(error=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    reverted = revert_reassignment(replicas=state.replicas, adding=state.adding_replicas, isr=state.isr)
    if reverted.is_unclean and not view.is_unclean_election_enabled(partition.topic):
        message = f"no remaining replica of {partition} is in sync"
        return ReassignOutcome(error=ErrorCode.INVALID_REPLICA_ASSIGNMENT, message=message)
    required = min(view.min_isr(partition.topic).effective(reverted.replicas), len(reverted.replicas))
    if view.switches.cancel_requires_min_isr and (reverted.is_unclean or len(reverted.isr) < required):
        message = f"min ISR is {required}, and of the replicas that remain {list(reverted.isr)} are in sync"
        return ReassignOutcome(error=ErrorCode.INVALID_REPLICA_ASSIGNMENT, message=message)
    target = PartitionTarget(
        acceptable=view.active_brokers(),
        election=view.election_type(partition.topic),
        isr=reverted.isr,
        replicas=reverted.replicas,
        adding_replicas=(),
        removing_replicas=(),
    )
    decisions = view.change_partition(partition, target, reason=ChangeReason.REASSIGNMENT, broker_id=None)
    return ReassignOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))


def ongoing_reassignments(
    view: ClusterView, partitions: Iterable[TopicPartition] | None
) -> tuple[admin_messages.OngoingReassignment, ...]:
    """Returns the reassignments under way among some partitions (``None``: all), by name; the rest is left out."""
    asked = view.image.partitions if partitions is None else set(partitions) & view.image.partitions.keys()
    moving = [(name, state) for name in sorted(asked) if _is_in_progress(state := view.image.partitions[name])]
    return tuple(
        admin_messages.OngoingReassignment(
            topic=name.topic,
            partition=name.partition,
            replicas=state.replicas,
            adding_replicas=state.adding_replicas,
            removing_replicas=state.removing_replicas,
        )
        for name, state in moving
    )


def _unknown(partition: TopicPartition) -> ReassignOutcome:
    message = f"there is no partition {partition}"
    return ReassignOutcome(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message)


def _is_in_progress(state: PartitionState) -> bool:
    return bool(state.adding_replicas or state.removing_replicas)
