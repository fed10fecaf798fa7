"""The aborted transactions of a log, and which of them a reader of committed records has to know (KIP-98).

Entries are in the order of their markers. Kafka keeps one such list per segment, in a file (``TransactionIndex``); here
it is one list per log, rebuilt with its producers.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from laststand.emulator.core.batch import AbortedTransaction, BatchDescriptor, TransactionResult
from laststand.emulator.core.types import Offset, ProducerId


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended in this log.

    Attributes:
        producer_id: whose it was.
        first_offset: of its first record.
        last_offset: of the marker.
        is_aborted: whether the marker aborts it.
        last_stable_offset: the last stable offset once the marker is committed: the first offset of the earliest
            transaction that is still open, else the offset after the marker.
    """

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    is_aborted: bool
    last_stable_offset: Offset


class OffsetOrderError(ValueError):
    """An entry's marker offset is not above the last entry's."""


class TransactionIndex:
    """The aborted transactions of a log, by the offsets of their markers."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[CompletedTransaction] = ()) -> None:
        self.entries = list(entries)

    def append(self, aborted: CompletedTransaction) -> None:
        """Adds a transaction.

        Raises:
            OffsetOrderError: its marker is not above the last one.
        """
        if self.entries and self.entries[-1].last_offset >= aborted.last_offset:
            raise OffsetOrderError(f"{aborted.last_offset} after {self.entries[-1].last_offset}")
        self.entries.append(aborted)

    def truncate_to(self, offset: Offset) -> None:
        """Drops the transactions whose marker is at or above ``offset``."""
        del self.entries[bisect_left(self.entries, offset, key=_last_offset) :]

    def collect(self, fetch_offset: Offset, upper_bound: Offset) -> tuple[list[AbortedTransaction], bool]:
        """Returns the transactions with a record or marker in a range, and whether no later one can be in it.

        Args:
            fetch_offset: start of the range; a marker there counts.
            upper_bound: end of the range, exclusive.
        """
        found: list[AbortedTransaction] = []
        first = bisect_left(self.entries, fetch_offset, key=_last_offset)
        for entry in self.entries[first:]:
            if entry.first_offset < upper_bound:
                found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False


def _last_offset(entry: CompletedTransaction) -> Offset:
    return entry.last_offset


class OpenTransactions:
    """The transactions of a log that no marker has ended, by producer; each with the offset of its first record."""

    __slots__ = ("first_offsets",)

    def __init__(self) -> None:
        self.first_offsets: dict[ProducerId, Offset] = {}

    @property
    def earliest(self) -> Offset | None:
        """Offset of the first record of the earliest open transaction."""
        return min(self.first_offsets.values(), default=None)

    def note(self, batch: BatchDescriptor) -> CompletedTransaction | None:
        """Processes the next batch of a log; returns the transaction that the batch aborts, if any."""
        if batch.producer_id is None or not batch.is_transactional:
            return None
        if batch.marker is None:
            self.first_offsets.setdefault(batch.producer_id, batch.base_offset)
            return None
        completed = self.end(batch.producer_id, batch.last_offset, batch.marker.result)
        return completed if completed is not None and completed.is_aborted else None

    def end(
        self, producer_id: ProducerId, marker_offset: Offset, result: TransactionResult
    ) -> CompletedTransaction | None:
        """Ends and returns a producer's transaction; ``None`` if none is open."""
        first_offset = self.first_offsets.pop(producer_id, None)
        if first_offset is None:
            return None
        others = self.earliest
        return CompletedTransaction(
            producer_id=producer_id,
            first_offset=first_offset,
            last_offset=marker_offset,
            is_aborted=result is TransactionResult.ABORT,
            last_stable_offset=Offset(marker_offset + 1) if others is None else others,
        )


def index_of(batches: Sequence[BatchDescriptor]) -> TransactionIndex:
    """Returns the index of a log that has these batches of transactions, markers included, in order."""
    index, opened = TransactionIndex(), OpenTransactions()
    for batch in batches:
        aborted = opened.note(batch)
        if aborted is not None:
            index.append(aborted)
    return index
