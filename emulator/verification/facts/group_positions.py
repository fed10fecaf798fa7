"""Positions of groups: where each reading began, and what its group had committed before.

Operations of applications and members of groups both read and commit. Each of them does one thing after the other, and
the lines of a history are in the order of what happened: a commit takes effect between the line of its reading and the
line of its outcome. Commits of two readers may overlap, so more than one of them may be the last one. A commit without
an answer may take effect at any time after it was asked for, also after later ones: Kafka compares no positions.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from laststand.emulator.core.history import GroupReadOperation, OperationType
from laststand.emulator.verification.facts.memberships import Memberships
from laststand.emulator.verification.facts.transactions import TransactionFacts

_Key = tuple[str, str, int]
"""Group, topic and partition."""

GroupSource = tuple[str, str, int, str | None]
"""A partition as a group reads it, of one topic of that name: group, topic, partition, topic id."""


def group_source(read: GroupReadOperation) -> GroupSource:
    """Returns the partition that a group read from."""
    return read.group_id, read.topic, read.partition, read.topic_id


class _Commit(NamedTuple):
    """A commit of a position, and the lines of the history between which it took effect, if it did.

    ``is_committed`` is ``None`` if the outcome is unknown. ``topic_id`` is that of the topic that the operation had
    read; coordinators store positions by topic name.
    """

    asked: int
    settled: int
    key: _Key
    offset: int
    is_committed: bool | None
    topic_id: str | None


class GroupRead(NamedTuple):
    """One reading for a group.

    Attributes:
        operation: its line.
        last: the positions of commits that may be the last one, in the order of their outcomes; empty if the group may
            have committed nothing.
        earlier: all that it had committed before.
        possible: positions of commits with an unknown outcome.
        has_committed: whether the group had tried to commit a position before, with any outcome.
        is_in_another_topic: whether its last commit was in another topic of the same name.
    """

    operation: GroupReadOperation
    last: tuple[int, ...]
    earlier: frozenset[int]
    possible: frozenset[int]
    has_committed: bool
    is_in_another_topic: bool

    @property
    def expected(self) -> int | None:
        """The position that the group had committed last; ``None`` if none."""
        return self.last[-1] if self.last else None

    @property
    def is_elsewhere(self) -> bool:
        """True if the read did not begin at a position that its group may have committed last."""
        position = self.operation.position
        return bool(self.last) and position not in self.last and position not in self.possible

    def offsets(self) -> Iterator[int]:
        """Yields the offsets of all records that were read."""
        for batch in self.operation.batches:
            yield from range(batch.base_offset, batch.base_offset + batch.record_count)


class Positions:
    """The commits of a run's groups, by operations and by members."""

    def __init__(self, facts: TransactionFacts, memberships: Memberships) -> None:
        self._facts = facts
        self._commits: dict[_Key, list[_Commit]] = {}
        for commit in sorted(_commits(facts, memberships), key=lambda each: each.settled):
            self._commits.setdefault(commit.key, []).append(commit)
        self._ends = _ends(facts)

    def reads(self) -> Iterator[GroupRead]:
        """Yields all reads of operations, in order; those of members are ``Memberships.reads``."""
        for operation in sorted(self._facts.group_reads, key=lambda each: each.index):
            lines = self._ends.get(operation.process, [])
            place = bisect_left(lines, operation.index)
            yield self.at(operation, since=lines[place - 1] if place else -1)

    def at(self, operation: GroupReadOperation, *, since: int) -> GroupRead:
        """Returns a reading whose position was asked for after a line of the history."""
        commits = self._commits.get((operation.group_id, operation.topic, operation.partition), [])
        before = [each for each in commits if each.asked < operation.index]
        taken = [each for each in before if each.is_committed]
        settled = [each for each in taken if each.settled <= since]
        overtaken = max((each.asked for each in settled), default=-1)
        last = [each for each in taken if each.settled >= overtaken] if settled else []
        return GroupRead(
            operation=operation,
            last=tuple([each.offset for each in last]),
            earlier=frozenset(each.offset for each in taken),
            possible=frozenset(each.offset for each in before if each.is_committed is None),
            has_committed=any(each.settled < operation.index for each in before),
            is_in_another_topic=bool(last) and last[-1].topic_id != operation.topic_id,
        )


def first_reads(memberships: Memberships, positions: Positions) -> Iterator[GroupRead]:
    """Yields each member's first read of an assigned partition, if the group had committed a position there before."""
    for ownership in memberships.ownerships():
        line = ownership.assigned
        seen: set[tuple[str, int]] = set()
        for operation in memberships.reads:
            is_own = operation.process == line.process and operation.generation_id == line.generation_id
            place = (operation.topic, operation.partition)
            if not is_own or operation.index < line.index or place in seen:
                continue
            seen.add(place)
            read = positions.at(operation, since=line.index)
            if read.last and not read.is_in_another_topic and operation.position not in read.possible:
                yield read


def outside_transactions(facts: TransactionFacts, memberships: Memberships) -> Iterator[GroupReadOperation]:
    """Yields what operations and members read without a transaction, and may have committed the position behind it."""
    commits = [*facts.group_commits, *memberships.commits]
    refused = {commit.operation_id for commit in commits if commit.type is OperationType.FAIL}
    for read in (*facts.group_reads, *memberships.reads):
        if read.operation_id not in facts.operations and read.operation_id not in refused:
            yield read


def _commits(facts: TransactionFacts, memberships: Memberships) -> Iterable[_Commit]:
    reads = {read.operation_id: read for read in (*facts.group_reads, *memberships.reads)}
    for commit in (*facts.group_commits, *memberships.commits):
        settled, is_committed = commit.index, _KNOWN.get(commit.type)
        transaction = facts.operations.get(commit.operation_id)
        if transaction is not None and commit.type is OperationType.OK:
            is_committed = _KNOWN.get(transaction.type)
            if is_committed and transaction.result == "abort":
                is_committed = False
            if transaction.type is not OperationType.INVOKE:
                settled = transaction.index
        read = reads.get(commit.operation_id)
        yield _Commit(
            asked=commit.index if read is None else read.index,
            settled=settled,
            key=(commit.group_id, commit.topic, commit.partition),
            offset=commit.offset,
            is_committed=is_committed,
            topic_id=None if read is None else read.topic_id,
        )


def _ends(facts: TransactionFacts) -> Mapping[str, list[int]]:
    """Returns the lines of each process by which a reading, a commit, or a transaction was over, in order."""
    ends: dict[str, list[int]] = {}
    for read in facts.group_reads:
        ends.setdefault(read.process, []).append(read.index)
    for commit in facts.group_commits:
        ends.setdefault(commit.process, []).append(commit.index)
    for operation in facts.operations.values():
        if operation.type is not OperationType.INVOKE:
            ends.setdefault(operation.process, []).append(operation.index)
    for lines in ends.values():
        lines.sort()
    return ends


_KNOWN: Final = {OperationType.OK: True, OperationType.FAIL: False}
