"""Checks of what operations read for groups: X7-X9, by the records and responses that clients received.

A group may have members as well: what these read and commit counts, too.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from typing import NamedTuple

from laststand.emulator.core.client import steps
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.types import CauseId, Offset, TopicId, TopicPartition
from laststand.emulator.simulator.oracle.group_positions import GroupPositions
from laststand.emulator.simulator.oracle.truth import PartitionTruth, deleted_below

Report = Callable[[str, TopicPartition, str], None]


class _GroupPartition(NamedTuple):
    """A partition as a group reads it; another topic of the same name counts separately."""

    group_id: str
    partition: TopicPartition
    topic_id: TopicId | None


class GroupChecks:
    """Checks of one run's groups."""

    def __init__(
        self, report: Report, truths: Mapping[TopicPartition, PartitionTruth], positions: GroupPositions
    ) -> None:
        self._report = report
        self._truths = truths
        self._positions = positions
        self._reads: dict[CauseId, steps.GroupReadRecorded] = {}
        self._unread: set[CauseId] = set()
        self._acked: dict[TopicPartition, list[steps.SendRecorded]] = {}
        self._first: dict[_GroupPartition, Offset] = {}
        self._dealt_with: dict[_GroupPartition, set[int]] = {}
        """CRCs that a group was given, or that it is known to have left out."""

    def forget(self, name: TopicPartition) -> None:
        """Forgets the records of a partition that was deleted."""
        self._acked.pop(name, None)
        self._reads = {each: read for each, read in self._reads.items() if read.partition != name}

    def acked(self, record: steps.SendRecorded) -> None:
        """A batch was acknowledged with acks=all."""
        self._acked.setdefault(record.partition, []).append(record)

    def read(self, client: str, record: steps.GroupReadRecorded, *, undone: Set[CauseId]) -> None:
        """Checks an operation that read for a group: its start offset (X8, X9), and that it has no ``undone`` send."""
        name, group = record.partition, record.group_id
        self._reads[record.operation_id] = record
        standing = self._positions.of(record, since=self._positions.since(client))
        if (
            record.committed is not None
            and record.committed not in standing.taken
            and record.committed not in standing.open
            and not record.committed == record.position < max(standing.taken, default=-1)  # it went back: X9
        ):
            self._report("X8", name, f"{group} has the position {record.committed} of {name}, and never committed it")
        expected = standing.last[-1] if standing.last else None
        written_behind = self._written_behind(record, undone)
        is_deleted = expected is not None and expected < record.position <= deleted_below(self._truths, "X9", name)
        if expected is None or standing.may_be_at(record.position) or is_deleted:
            if written_behind:
                sentence = f"{group} goes on at {record.position} of {name}, behind {written_behind} records"
                self._report("X9", name, f"{sentence} that it was never given")
            return
        again = sum(offset < expected for offset in _offsets(record.batches))
        left_out = sum(expected <= offset < record.position for offset in self._acked_offsets(record, undone))
        consequence = f"{again} records again, {left_out} left out"
        sentence = f"{group} goes on at {record.position} of {name}, and had committed {expected}: {consequence}"
        self._report("X9", name, sentence)

    def read_by_member(self, record: steps.GroupReadRecorded) -> None:
        """A member read for its group."""
        self._reads[record.operation_id] = record
        key = _GroupPartition(record.group_id, record.partition, record.topic_id)
        self._first.setdefault(key, record.position)
        self._dealt_with.setdefault(key, set()).update(batch.crc for batch in record.batches)

    def committed(self, record: steps.GroupCommitRecorded) -> None:
        """A commit has its outcome, or will share that of its transaction."""
        if record.type is OperationType.FAIL:
            self._unread.add(record.operation_id)

    def _written_behind(self, record: steps.GroupReadRecorded, undone: Set[CauseId]) -> int:
        """Counts the records between a group's first and present position that the group never received."""
        key = _GroupPartition(record.group_id, record.partition, record.topic_id)
        start = deleted_below(self._truths, "X9", record.partition)
        first = self._first.setdefault(key, record.position)
        dealt_with = self._dealt_with.setdefault(key, set())
        count = 0
        for send, offsets in self._acked_in(record, undone):
            crc = send.attempts[-1].crc
            if crc not in dealt_with and first <= offsets.start < record.position:
                count += sum(start <= offset < record.position for offset in offsets)
                dealt_with.add(crc)
        dealt_with.update(batch.crc for batch in record.batches)
        return count

    def _acked_in(
        self, read: steps.GroupReadRecorded, undone: Set[CauseId]
    ) -> Iterator[tuple[steps.SendRecorded, range]]:
        """Yields the sends, with their offsets, that a group is to read in the topic that an operation read."""
        for send in self._acked.get(read.partition, ()):
            is_to_be_read = send.topic_id == read.topic_id and send.operation_id not in undone
            if send.base_offset is not None and is_to_be_read:
                yield send, range(send.base_offset, send.base_offset + send.record_count)

    def _acked_offsets(self, read: steps.GroupReadRecorded, undone: Set[CauseId]) -> Iterator[int]:
        for _, offsets in self._acked_in(read, undone):
            yield from offsets

    # --- When all is over -----------------------------------------------------------------------------------------

    def check(self, committed: Set[CauseId], *, undone: Set[CauseId], transactions: Set[CauseId]) -> None:
        """X7: of the records that a group reads in transactions, each is read in one committed transaction.

        Args:
            committed: transactions that are committed, by their producer's response or in any partition.
            undone: sends of all other transactions.
            transactions: all transactions. What is read outside of them counts as read unless its commit was refused.
        """
        by_source: dict[_GroupPartition, list[steps.GroupReadRecorded]] = {}
        outside: dict[_GroupPartition, list[steps.GroupReadRecorded]] = {}
        for operation_id, read in self._reads.items():
            source = _GroupPartition(read.group_id, read.partition, read.topic_id)
            if operation_id in committed:
                by_source.setdefault(source, []).append(read)
            elif operation_id not in transactions and operation_id not in self._unread:
                outside.setdefault(source, []).append(read)
        for source, reads in by_source.items():
            self._check_once(source.group_id, source.partition, reads)
            self._check_gaps(source.group_id, source.partition, reads, outside.get(source, []), undone)

    def _check_once(self, group: str, name: TopicPartition, reads: list[steps.GroupReadRecorded]) -> None:
        seen: dict[int, CauseId] = {}
        for read in reads:
            for offset in _offsets(read.batches):
                if seen.setdefault(offset, read.operation_id) != read.operation_id:
                    both = f"{seen[offset]} and {read.operation_id}"
                    self._report("X7", name, f"{offset} of {name} was read for {group} in {both}, which are committed")

    def _check_gaps(
        self,
        group: str,
        name: TopicPartition,
        reads: list[steps.GroupReadRecorded],
        outside: list[steps.GroupReadRecorded],
        undone: Set[CauseId],
    ) -> None:
        covered = {offset for read in (*reads, *outside) for offset in range(read.position, read.next_position)}
        start, end = min(read.position for read in reads), max(read.next_position for read in reads)
        start = max(start, deleted_below(self._truths, "X7", name))
        for offset in self._acked_offsets(reads[0], undone):
            if start <= offset < end and offset not in covered:
                self._report("X7", name, f"{offset} of {name} was read for {group} in no committed transaction")


def _offsets(batches: tuple[PolledBatch, ...]) -> Iterator[int]:
    for batch in batches:
        yield from range(batch.base_offset, batch.base_offset + batch.record_count)
