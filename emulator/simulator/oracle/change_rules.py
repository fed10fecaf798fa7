"""Rules about one committed change of a partition, by its states before and after: M7, M9, M11, M16, M19."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from laststand.emulator.core import events
from laststand.emulator.core.types import LeaderRecoveryState

UNCLEAN: Final = (events.Election.UNCLEAN, events.Election.LAST_KNOWN_LEADER)
_FROM_OUTSIDE: Final = (events.Election.ELR, *UNCLEAN)
PROPOSED: Final = "alter_partition"
REASSIGNED: Final = "reassignment"

Problem: TypeAlias = tuple[str, str]
"""Id of a check, and what is wrong; the sentence goes on from the partition's name."""


def change_problems(
    before: events.PartitionChanged,
    event: events.PartitionChanged,
    *,
    has_recovery_state: bool,
    completes_at_min_isr: bool,
) -> Iterator[Problem]:
    """Yields the problems of a change.

    Args:
        before: the state that was changed.
        event: the new state.
        has_recovery_state: whether partitions can be in state RECOVERING.
        completes_at_min_isr: whether reassignments complete with min ISR members only.
    """
    yield from _epochs(before, event)
    yield from _recovery(before, event, has_recovery_state=has_recovery_state)
    yield from _growth(before, event)
    yield from _cancellation(before, event)
    if completes_at_min_isr:
        yield from _completion(before, event)


def _epochs(before: events.PartitionChanged, event: events.PartitionChanged) -> Iterator[Problem]:
    is_new_leader = event.leader != before.leader
    if event.partition_epoch != before.partition_epoch + 1 or (
        event.leader_epoch - before.leader_epoch not in ((1,) if is_new_leader else (0, 1))
    ):
        yield "M9", f"went from {before.describe()} to {event.describe()}"


def _recovery(
    before: events.PartitionChanged, event: events.PartitionChanged, *, has_recovery_state: bool
) -> Iterator[Problem]:
    was = before.leader_recovery_state is LeaderRecoveryState.RECOVERING
    is_recovering = event.leader_recovery_state is LeaderRecoveryState.RECOVERING
    is_proposed = event.reason == PROPOSED and event.broker_id == before.leader
    if is_recovering and (len(event.isr) > 1 or (event.leader is not None and event.isr != (event.leader,))):
        yield "M7", f"recovers beside others: {event.describe()}"
    must_recover = has_recovery_state and event.leader is not None and event.election in UNCLEAN
    if must_recover and not is_recovering:
        yield "M7", f"need not recover from an unclean election: {event.describe()}"
    if is_recovering and not was and event.election not in UNCLEAN:
        yield "M7", f"recovers from no unclean election: {event.describe()}"
    if was and not is_recovering and not is_proposed:
        yield "M7", f"has recovered, and its leader {before.leader} did not say so"


def _growth(before: events.PartitionChanged, event: events.PartitionChanged) -> Iterator[Problem]:
    gained = set(event.isr) - set(before.isr)
    if event.election in _FROM_OUTSIDE:
        gained -= {event.leader}
    if gained and event.reason != PROPOSED:
        yield "M11", f"has {sorted(gained)} in its ISR by {event.describe()}"


def _cancellation(before: events.PartitionChanged, event: events.PartitionChanged) -> Iterator[Problem]:
    was_moving = bool(before.adding_replicas or before.removing_replicas)
    is_moving = bool(event.adding_replicas or event.removing_replicas)
    kept = set(before.replicas) - set(before.adding_replicas)
    if event.reason != REASSIGNED or is_moving or not was_moving or set(event.replicas) != kept:
        return
    if len(event.isr) < min(event.effective_min_isr, len(event.replicas)):
        yield "M19", f"was cancelled with too few in sync: {event.describe()}"


def _completion(before: events.PartitionChanged, event: events.PartitionChanged) -> Iterator[Problem]:
    kept = set(before.replicas) - set(before.removing_replicas)
    is_over = bool(before.removing_replicas or before.adding_replicas) and not event.adding_replicas
    if not is_over or event.removing_replicas or event.reason == REASSIGNED or set(event.replicas) != kept:
        return
    if len(event.isr) < min(event.effective_min_isr, len(event.replicas)):
        yield "M16", f"was reassigned with too few in sync: {event.describe()}"
