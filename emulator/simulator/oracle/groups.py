"""Checks of consumer groups: X7-X9, by the records and responses that clients received, operation by operation."""

from collections.abc import Callable, Iterator, Mapping, Set
from typing import NamedTuple

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.steps import (
    GroupCommitRecorded,
    GroupReadRecorded,
    SendRecorded,
    TransactionRecorded,
)
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.types import CauseId, Offset, TopicId, TopicPartition
from laststand.emulator.simulator.oracle.truth import PartitionTruth, deleted_below

Report = Callable[[str, TopicPartition, str], None]


class _GroupPartition(NamedTuple):
    """A partition as a group reads it; another topic of the same name counts separately."""

    group_id: str
    partition: TopicPartition
    topic_id: TopicId | None


class _Positions:
    """The positions that a group has committed in a partition: last, ever, and those that may yet take effect.

    A coordinator knows a topic by its name, so a commit may apply to a later topic than the one that was read.
    """

    def __init__(self) -> None:
        self.last: Offset | None = None
        self.last_read: GroupReadRecorded | None = None
        self.taken: set[Offset] = set()
        self.open: dict[CauseId, Offset] = {}

    def take(self, offset: Offset, read: GroupReadRecorded | None) -> None:
        """A position is committed after an operation's reads; ``None`` if they were of a deleted topic."""
        self.last, self.last_read = offset, read
        self.taken.add(offset)

    def expected(self, topic_id: TopicId | None) -> Offset | None:
        """Returns the last position, if it was committed in this topic."""
        is_of_topic = self.last_read is not None and self.last_read.topic_id == topic_id
        return self.last if is_of_topic else None


class GroupChecks:
    """Checks of one run's groups."""

    def __init__(self, report: Report, truths: Mapping[TopicPartition, PartitionTruth]) -> None:
        self._report = report
        self._truths = truths
        self._positions: dict[tuple[str, TopicPartition], _Positions] = {}
        self._reads: dict[CauseId, GroupReadRecorded] = {}
        self._acked: dict[TopicPartition, list[SendRecorded]] = {}
        self._first: dict[_GroupPartition, Offset] = {}
        self._dealt_with: dict[_GroupPartition, set[int]] = {}
        """CRCs that a group was given, or that it is known to have left out."""

    def forget(self, name: TopicPartition) -> None:
        """Forgets the records of a partition that was deleted."""
        self._acked.pop(name, None)
        self._reads = {each: read for each, read in self._reads.items() if read.partition != name}

    def acked(self, record: SendRecorded) -> None:
        """A batch was acknowledged with acks=all."""
        self._acked.setdefault(record.partition, []).append(record)

    def read(self, record: GroupReadRecorded, *, undone: Set[CauseId]) -> None:
        """A group read records: X8 and X9 on the start offset; ``undone`` sends must not be read."""
        name, group = record.partition, record.group_id
        self._reads[record.operation_id] = record
        positions = self._positions.setdefault((group, name), _Positions())
        possible = positions.open.values()
        if (
            record.committed is not None
            and record.committed not in positions.taken
            and record.committed not in possible
            and not record.committed == record.position < max(positions.taken, default=-1)  # it went back: X9
        ):
            self._report("X8", name, f"{group} has the position {record.committed} of {name}, and never committed it")
        expected = positions.expected(record.topic_id)
        written_behind = self._written_behind(record, undone)
        is_deleted = expected is not None and expected < record.position <= deleted_below(self._truths, "X9", name)
        if expected is None or record.position == expected or record.position in possible or is_deleted:
            if written_behind:
                sentence = f"{group} goes on at {record.position} of {name}, behind {written_behind} records"
                self._report("X9", name, f"{sentence} that it was never given")
            return
        again = sum(offset < expected for offset in _offsets(record.batches))
        left_out = sum(expected <= offset < record.position for offset in self._acked_offsets(record, undone))
        consequence = f"{again} records again, {left_out} left out"
        sentence = f"{group} goes on at {record.position} of {name}, and had committed {expected}: {consequence}"
        self._report("X9", name, sentence)

    def _written_behind(self, record: GroupReadRecorded, undone: Set[CauseId]) -> int:
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

    def _acked_in(self, read: GroupReadRecorded, undone: Set[CauseId]) -> Iterator[tuple[SendRecorded, range]]:
        """Yields the sends, with their offsets, that a group is to read in the topic that an operation read."""
        for send in self._acked.get(read.partition, ()):
            is_to_be_read = send.topic_id == read.topic_id and send.operation_id not in undone
            if send.base_offset is not None and is_to_be_read:
                yield send, range(send.base_offset, send.base_offset + send.record_count)

    def _acked_offsets(self, read: GroupReadRecorded, undone: Set[CauseId]) -> Iterator[int]:
        for _, offsets in self._acked_in(read, undone):
            yield from offsets

    def committed(self, record: GroupCommitRecorded, *, is_in_transaction: bool) -> None:
        """Notes that a position has its outcome, or will share that of its transaction."""
        positions = self._positions.setdefault((record.group_id, record.partition), _Positions())
        if record.type is OperationType.OK and not is_in_transaction:
            positions.take(record.offset, self._reads.get(record.operation_id))
        elif record.type is not OperationType.FAIL:
            positions.open[record.operation_id] = record.offset

    def transacted(self, record: TransactionRecorded) -> None:
        """Notes that a transaction is over: its records were read for good, or not at all."""
        read = self._reads.get(record.operation_id)
        if read is None or record.type in (OperationType.INVOKE, OperationType.INFO):
            return
        positions = self._positions[read.group_id, read.partition]
        offset = positions.open.pop(record.operation_id, None)
        is_committed = record.type is OperationType.OK and record.result is TransactionResult.COMMIT
        if is_committed and offset is not None:
            positions.take(offset, read)

    # --- When all is over -----------------------------------------------------------------------------------------

    def check(self, committed: Set[CauseId], *, undone: Set[CauseId]) -> None:
        """X7: of the records that a group reads in transactions, each is read in one committed transaction.

        Args:
            committed: transactions that are committed, by their producer's response or in any partition.
            undone: sends of all other transactions.
        """
        by_source: dict[_GroupPartition, list[GroupReadRecorded]] = {}
        for operation_id, read in self._reads.items():
            if operation_id in committed:
                source = _GroupPartition(read.group_id, read.partition, read.topic_id)
                by_source.setdefault(source, []).append(read)
        for (group, name, _), reads in by_source.items():
            self._check_once(group, name, reads)
            self._check_gaps(group, name, reads, undone)

    def _check_once(self, group: str, name: TopicPartition, reads: list[GroupReadRecorded]) -> None:
        seen: dict[int, CauseId] = {}
        for read in reads:
            for offset in _offsets(read.batches):
                if seen.setdefault(offset, read.operation_id) != read.operation_id:
                    both = f"{seen[offset]} and {read.operation_id}"
                    self._report("X7", name, f"{offset} of {name} was read for {group} in {both}, which are committed")

    def _check_gaps(
        self, group: str, name: TopicPartition, reads: list[GroupReadRecorded], undone: Set[CauseId]
    ) -> None:
        covered = {offset for read in reads for offset in range(read.position, read.next_position)}
        start, end = min(read.position for read in reads), max(read.next_position for read in reads)
        start = max(start, deleted_below(self._truths, "X7", name))
        for offset in self._acked_offsets(reads[0], undone):
            if start <= offset < end and offset not in covered:
                self._report("X7", name, f"{offset} of {name} was read for {group} in no committed transaction")


def _offsets(batches: tuple[PolledBatch, ...]) -> Iterator[int]:
    for batch in batches:
        yield from range(batch.base_offset, batch.base_offset + batch.record_count)
