"""Positions of consumer groups: what a coordinator gives after it had answered a commit.

Times of all lines are those of one machine. A commit that was answered before a client asked is in force, unless
another one may have been carried out after it: one that was not answered before that commit was begun.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from laststand.emulator.core.history import GroupPositionOperation, OperationType
from laststand.emulator.verification.facts.cluster import ClusterFacts

_NONE = -1


class PositionAfterCommit(NamedTuple):
    """A position that a client was given after a commit had been answered.

    Attributes:
        commit: the last one that had been answered when the client asked.
        given: the answer.
        lowest: the lowest offset that may be in force.
    """

    commit: GroupPositionOperation
    given: GroupPositionOperation
    lowest: int

    @property
    def is_behind(self) -> bool:
        """A commit that was answered is not in force."""
        return (_NONE if self.given.offset is None else self.given.offset) < self.lowest


def positions_after_commits(cluster: ClusterFacts) -> Iterator[PositionAfterCommit]:
    """Yields the positions that clients were given after a commit of their group, in the order of the answers."""
    by_place: dict[tuple[str, str, int], list[GroupPositionOperation]] = defaultdict(list)
    for each in cluster.group_positions:
        if each.type is not OperationType.FAIL:
            by_place[each.group_id, each.topic, each.partition].append(each)
    for operations in by_place.values():
        commits = [each for each in operations if each.kind == "commit"]
        for given in sorted(operations, key=lambda each: each.time_ns):
            before = [
                each
                for each in commits
                if each.type is OperationType.OK and each.time_ns < given.begun_ns and each.topic_id == given.topic_id
            ]
            if given.kind == "commit" or not before:
                continue
            last = max(before, key=lambda each: each.time_ns)
            rivals = [each for each in commits if each.type is OperationType.INFO or each.time_ns >= last.begun_ns]
            lowest = min(_NONE if each.offset is None else each.offset for each in (*rivals, last))
            yield PositionAfterCommit(last, given, lowest)
