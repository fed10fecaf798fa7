"""Positions of groups: where each operation began to read, and what its group had committed before.

An operation of a client ends before the next one begins, so the lines of a history are in the order of what happened.
A commit without an answer may take effect at any time after it was asked for, also after later ones: Kafka compares no
positions.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from laststand.emulator.core.history import GroupReadOperation, OperationType
from laststand.emulator.verification.facts.transactions import TransactionFacts

_Key = tuple[str, str, int]
"""Group, topic and partition."""


class _Commit(NamedTuple):
    """A commit of a position, with the line of the history at which its outcome was known.

    ``is_committed`` is ``None`` if the outcome is unknown. ``topic_id`` is that of the topic that the operation had
    read; coordinators store positions by topic name.
    """

    place: int
    key: _Key
    offset: int
    is_committed: bool | None
    topic_id: str | None


class GroupRead(NamedTuple):
    """One reading of an operation.

    Attributes:
        operation: the line of the operation.
        expected: the position that the group had committed last; ``None`` if none.
        earlier: all positions that it had committed before.
        possible: positions of commits with an unknown outcome.
        has_committed: whether the group had tried to commit a position before, with any outcome.
        is_in_another_topic: whether its last commit was in another topic of the same name.
    """

    operation: GroupReadOperation
    expected: int | None
    earlier: frozenset[int]
    possible: frozenset[int]
    has_committed: bool
    is_in_another_topic: bool

    @property
    def is_elsewhere(self) -> bool:
        """True if the read did not begin at a position that its group may have committed last."""
        position = self.operation.position
        return self.expected is not None and position != self.expected and position not in self.possible

    def offsets(self) -> Iterator[int]:
        """Yields the offsets of all records that were read."""
        for batch in self.operation.batches:
            yield from range(batch.base_offset, batch.base_offset + batch.record_count)


def group_reads(facts: TransactionFacts) -> Iterator[GroupRead]:
    """Yields all reads for groups, in order."""
    commits = sorted(_commits(facts), key=lambda each: each.place)
    for operation in sorted(facts.group_reads, key=lambda each: each.index):
        key = (operation.group_id, operation.topic, operation.partition)
        before = [each for each in commits if each.key == key and each.place < operation.index]
        taken = [each for each in before if each.is_committed]
        yield GroupRead(
            operation=operation,
            expected=taken[-1].offset if taken else None,
            earlier=frozenset(each.offset for each in taken),
            possible=frozenset(each.offset for each in before if each.is_committed is None),
            has_committed=bool(before),
            is_in_another_topic=bool(taken) and taken[-1].topic_id != operation.topic_id,
        )


def _commits(facts: TransactionFacts) -> Iterable[_Commit]:
    topic_ids = {read.operation_id: read.topic_id for read in facts.group_reads}
    for commit in facts.group_commits:
        index, is_committed = commit.index, _KNOWN.get(commit.type)
        transaction = facts.operations.get(commit.operation_id)
        if transaction is not None and commit.type is OperationType.OK:
            is_committed = _KNOWN.get(transaction.type)
            if is_committed and transaction.result == "abort":
                is_committed = False
            if transaction.type is not OperationType.INVOKE:
                index = transaction.index
        key = (commit.group_id, commit.topic, commit.partition)
        yield _Commit(index, key, commit.offset, is_committed, topic_ids.get(commit.operation_id))


_KNOWN = {OperationType.OK: True, OperationType.FAIL: False}
