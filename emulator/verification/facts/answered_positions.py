"""Positions of consumer groups that a coordinator returns after it had answered a commit.

Times of all lines are those of one machine. A commit that was answered before a client asked is in force, unless
another commit may have replaced it: any commit that had not been answered yet when this one began.
"""

import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from laststand.emulator.core.history import GroupPositionOperation, OperationType
from laststand.emulator.core.types import TopicId
from laststand.emulator.verification.facts.cluster import ClusterFacts

_NONE = -1


class PositionAfterCommit(NamedTuple):
    """A position that a client received after a commit had been answered.

    Attributes:
        commit: the last commit that had been answered when the client asked.
        given: the coordinator's answer.
        lowest: the lowest offset that may be in force.
    """

    commit: GroupPositionOperation
    given: GroupPositionOperation
    lowest: int

    @property
    def is_behind(self) -> bool:
        """True if the position is below each one that may be in force: an answered commit was lost."""
        return _value(self.given) < self.lowest


def positions_after_commits(cluster: ClusterFacts) -> Iterator[PositionAfterCommit]:
    """Yields the positions that clients received after a commit of their group, in the order of the answers."""
    for operations in _by_place(_outcomes(cluster.group_positions)):
        yield from _after_commits(operations)


def _outcomes(operations: Sequence[GroupPositionOperation]) -> list[GroupPositionOperation]:
    """Returns the operations that have not failed, in the order of their ends; without an answer they are ``INFO``."""
    ended = {each.operation_id for each in operations if each.type is not OperationType.INVOKE}
    outcomes = [
        msgspec.structs.replace(each, type=OperationType.INFO) if each.type is OperationType.INVOKE else each
        for each in operations
        if each.type is not OperationType.INVOKE or each.operation_id not in ended
    ]
    return sorted((each for each in outcomes if each.type is not OperationType.FAIL), key=_ended)


def _by_place(operations: Sequence[GroupPositionOperation]) -> Iterator[list[GroupPositionOperation]]:
    """Yields the operations of each partition of each group; the deletion of a group belongs to all its partitions."""
    places = dict.fromkeys(
        (each.group_id, each.topic, each.partition, each.topic_id) for each in operations if each.topic
    )
    by_place: dict[tuple[str, str, int], list[GroupPositionOperation]] = defaultdict(list)
    for each in operations:
        if each.topic:
            by_place[each.group_id, each.topic, each.partition].append(each)
            continue
        for group_id, topic, partition, topic_id in places:
            if group_id == each.group_id:
                deleted = msgspec.structs.replace(each, topic=topic, partition=partition, topic_id=topic_id)
                by_place[group_id, topic, partition].append(deleted)
    yield from by_place.values()


def _after_commits(operations: Sequence[GroupPositionOperation]) -> Iterator[PositionAfterCommit]:
    """Yields the positions received for one partition of a group; its operations are in the order of their ends."""
    commits = [each for each in operations if each.kind == "commit"]
    answered = [each for each in commits if each.type is OperationType.OK or each.error is not None]
    of_topic: dict[TopicId | None, list[GroupPositionOperation]] = defaultdict(list)
    for each in answered:
        if each.type is OperationType.OK:
            of_topic[each.topic_id].append(each)
    unanswered = [each for each in commits if each.type is OperationType.INFO and each.error is None]
    lowest_unsure = min(map(_value, unanswered), default=sys.maxsize)
    lowest_since = list(accumulate(map(_value, reversed(answered)), min, initial=lowest_unsure))[::-1]
    """For each answered commit, the lowest offset of it, of later answered commits, and of all unanswered ones."""
    for given in operations:
        before = of_topic[given.topic_id]
        count = bisect_left(before, given.begun_ns, key=_ended)
        if given.kind == "commit" or given.type is not OperationType.OK or not count:
            continue
        last = before[count - 1]
        rivals = bisect_left(answered, last.begun_ns, key=_ended)
        yield PositionAfterCommit(last, given, min(_value(last), lowest_since[rivals]))


def _ended(operation: GroupPositionOperation) -> int:
    return operation.time_ns


def _value(operation: GroupPositionOperation) -> int:
    return _NONE if operation.offset is None else operation.offset
