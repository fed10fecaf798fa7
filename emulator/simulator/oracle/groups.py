"""Checks of consumer groups: X7-X9, by what a client was given and told, one operation after the other."""

from collections.abc import Callable, Iterator, Set
from typing import NamedTuple

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.steps import (
    GroupCommitRecorded,
    GroupReadRecorded,
    SendRecorded,
    TransactionRecorded,
)
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.types import CauseId, Offset, TopicPartition

Report = Callable[[str, TopicPartition, str], None]


class _GroupPartition(NamedTuple):
    """A partition as a group reads it."""

    group_id: str
    partition: TopicPartition


class _Positions:
    """The positions that a group has committed in a partition: last, ever, and those that may yet take effect."""

    def __init__(self) -> None:
        self.last: Offset | None = None
        self.taken: set[Offset] = set()
        self.open: dict[CauseId, Offset] = {}

    def take(self, offset: Offset) -> None:
        self.last = offset
        self.taken.add(offset)


class GroupChecks:
    """Checks of one run's groups."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._positions: dict[_GroupPartition, _Positions] = {}
        self._in_transactions: dict[CauseId, GroupReadRecorded] = {}
        self._acked: dict[TopicPartition, list[SendRecorded]] = {}
        self._first: dict[_GroupPartition, Offset] = {}
        self._dealt_with: dict[_GroupPartition, set[int]] = {}
        """CRCs that a group was given, or that it is known to have left out."""

    def acked(self, record: SendRecorded) -> None:
        """A batch was acknowledged with acks=all."""
        self._acked.setdefault(record.partition, []).append(record)

    def read(self, record: GroupReadRecorded, *, undone: Set[CauseId]) -> None:
        """Something was read for a group: X8 and X9 on where that began; ``undone`` sends are not to be read."""
        name, group = record.partition, record.group_id
        self._in_transactions[record.operation_id] = record
        positions = self._positions.setdefault(_GroupPartition(group, name), _Positions())
        possible = positions.open.values()
        if (
            record.committed is not None
            and record.committed not in positions.taken
            and record.committed not in possible
        ):
            self._report("X8", name, f"{group} has the position {record.committed} of {name}, and never committed it")
        expected = positions.last
        written_behind = self._written_behind(record, undone)
        if expected is None or record.position == expected or record.position in possible:
            if written_behind:
                sentence = f"{group} goes on at {record.position} of {name}, behind {written_behind} records"
                self._report("X9", name, f"{sentence} that it was never given")
            return
        again = sum(offset < expected for offset in _offsets(record.batches))
        left_out = sum(expected <= offset < record.position for offset in self._acked_offsets(name, undone))
        consequence = f"{again} records again, {left_out} left out"
        sentence = f"{group} goes on at {record.position} of {name}, and had committed {expected}: {consequence}"
        self._report("X9", name, sentence)

    def _written_behind(self, record: GroupReadRecorded, undone: Set[CauseId]) -> int:
        """Returns how many records lie before a group's position, and behind its first one, that it was never given."""
        key = _GroupPartition(record.group_id, record.partition)
        first = self._first.setdefault(key, record.position)
        dealt_with = self._dealt_with.setdefault(key, set())
        count = 0
        for send in self._acked.get(record.partition, ()):
            crc = send.attempts[-1].crc
            if send.base_offset is None or send.operation_id in undone or crc in dealt_with:
                continue
            if first <= send.base_offset < record.position:
                count += min(send.record_count, record.position - send.base_offset)
                dealt_with.add(crc)
        dealt_with.update(batch.crc for batch in record.batches)
        return count

    def _acked_offsets(self, name: TopicPartition, undone: Set[CauseId]) -> Iterator[int]:
        for send in self._acked.get(name, ()):
            if send.base_offset is not None and send.operation_id not in undone:
                yield from range(send.base_offset, send.base_offset + send.record_count)

    def committed(self, record: GroupCommitRecorded, *, is_in_transaction: bool) -> None:
        """A position has its outcome, or will share that of its transaction."""
        positions = self._positions.setdefault(_GroupPartition(record.group_id, record.partition), _Positions())
        if record.type is OperationType.OK and not is_in_transaction:
            positions.take(record.offset)
        elif record.type is not OperationType.FAIL:
            positions.open[record.operation_id] = record.offset

    def transacted(self, record: TransactionRecorded) -> None:
        """A transaction is over: what it read has been read for good, or not at all."""
        read = self._in_transactions.get(record.operation_id)
        if read is None or record.type in (OperationType.INVOKE, OperationType.INFO):
            return
        positions = self._positions[_GroupPartition(read.group_id, read.partition)]
        offset = positions.open.pop(record.operation_id, None)
        is_committed = record.type is OperationType.OK and record.result is TransactionResult.COMMIT
        if is_committed and offset is not None:
            positions.take(offset)

    # --- When all is over -----------------------------------------------------------------------------------------

    def check(self, committed: Set[CauseId], *, undone: Set[CauseId]) -> None:
        """X7.

        Args:
            committed: transactions that are, as their producer was told or in any partition.
            undone: sends of those that are not.
        """
        by_source: dict[_GroupPartition, list[GroupReadRecorded]] = {}
        for operation_id, read in self._in_transactions.items():
            if operation_id in committed:
                by_source.setdefault(_GroupPartition(read.group_id, read.partition), []).append(read)
        for (group, name), reads in by_source.items():
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
        for offset in self._acked_offsets(name, undone):
            if start <= offset < end and offset not in covered:
                self._report("X7", name, f"{offset} of {name} was read for {group} in no committed transaction")


def _offsets(batches: tuple[PolledBatch, ...]) -> Iterator[int]:
    for batch in batches:
        yield from range(batch.base_offset, batch.base_offset + batch.record_count)
