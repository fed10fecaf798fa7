"""Members of groups: which partitions each of them owned, in which generation and for how long, by its own history."""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from laststand.emulator.core.history import (
    GroupCommitOperation,
    GroupMemberOperation,
    GroupReadOperation,
    MemberStep,
    OperationType,
)

_NS_PER_MS: Final = 1_000_000


class Ownership(NamedTuple):
    """An assignment of a member, from the answer to its SyncGroup until the member gave its partitions up.

    Attributes:
        assigned: the line of the assignment.
        asked_at: index of the line by which the member had asked to join.
        ended_ns: when the assignment ended; infinite if no line records it.
    """

    assigned: GroupMemberOperation
    asked_at: int
    ended_ns: float

    @property
    def owner(self) -> str:
        """The member; a static member by its instance id, which outlives its processes."""
        return self.assigned.instance_id or self.assigned.member_id

    def meets(self, other: "Ownership") -> bool:
        """Returns whether two assignments overlap in time."""
        return self.assigned.time_ns < other.ended_ns and other.assigned.time_ns < self.ended_ns


class Memberships:
    """All members of a run.

    Attributes:
        lines: about their steps, in the order of their histories.
        reads: the records that members read, in the same order.
        commits: the positions that members were to commit, in the same order.
    """

    def __init__(self) -> None:
        self.lines: list[GroupMemberOperation] = []
        self.reads: list[GroupReadOperation] = []
        self.commits: list[GroupCommitOperation] = []

    def ownerships(self) -> Iterator[Ownership]:
        """Yields all assignments, in the order in which they began."""
        lines = sorted(self.lines, key=lambda line: line.index)
        for place, line in enumerate(lines):
            if line.step is not MemberStep.ASSIGNED:
                continue
            own_before = (each for each in reversed(lines[:place]) if each.process == line.process)
            asked = next((each.index for each in own_before if each.step is MemberStep.JOINING), line.index)
            after = next((each for each in lines[place + 1 :] if each.process == line.process), None)
            ended_ns = math.inf if after is None else after.time_ns - after.overdue_ms * _NS_PER_MS
            yield Ownership(line, asked, ended_ns)

    def has_position(self, group_id: str, before: int) -> bool:
        """Returns whether a group had committed a position before a place of the history."""
        return any(
            commit.group_id == group_id and commit.type is OperationType.OK and commit.index < before
            for commit in self.commits
        )
