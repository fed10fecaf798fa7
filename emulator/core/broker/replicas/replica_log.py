"""One replica's log as the core sees it: an index of batches, offsets, epochs and producers.

The driver keeps the batches' bytes. The index is columnar, about fifty bytes a batch, because a broker holds millions;
lookups are binary searches. ``high_watermark`` lives here as it does in Kafka's ``UnifiedLog``.

Invariants: log_start_offset <= high_watermark <= log_end_offset; base offsets rise; batches are contiguous but for the
gaps that a truncation inside a batch leaves.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import AbortedTransaction, BatchDescriptor, LogSpan, Marker, TransactionResult
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.broker.replicas.producer_state import ProducerStates
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition

_NO_PRODUCER = -1

_DATA, _CONTROL, _TRANSACTIONAL, _ABORT, _COMMIT = range(5)
_MARKER_KINDS: Final = {TransactionResult.ABORT: _ABORT, TransactionResult.COMMIT: _COMMIT}
_RESULTS: Final = {kind: result for result, kind in _MARKER_KINDS.items()}


def _kind_of(batch: BatchDescriptor) -> int:
    if batch.marker is not None:
        return _MARKER_KINDS[batch.marker.result]
    if batch.is_control:
        return _CONTROL
    return _TRANSACTIONAL if batch.is_transactional else _DATA


class ReplicaLog:
    """The log of one partition on one broker; initially empty, at offset 0."""

    __slots__ = (
        "_base_offsets",
        "_base_sequences",
        "_keeps_epoch_when_empty",
        "_kinds",
        "_leader_epochs",
        "_next_offsets",
        "_positions",
        "_producer_epochs",
        "_producer_ids",
        "_producers_offset",
        "_producers_snapshot",
        "_timestamps",
        "epochs",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "lower_start_is_durable",
        "partition",
        "producers",
        "topic_id",
    )

    def __init__(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        *,
        keeps_epoch_when_empty: bool = False,
        lower_start_is_durable: bool = False,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.lower_start_is_durable = lower_start_is_durable
        self._keeps_epoch_when_empty = keeps_epoch_when_empty
        self.log_start_offset = Offset(0)
        self.high_watermark = Offset(0)
        self.log_end_offset = Offset(0)
        self.epochs = LeaderEpochCache()
        self.producers = ProducerStates()
        self._producers_snapshot: tuple[inputs.ProducerSnapshotEntry, ...] = ()
        self._producers_offset = Offset(0)
        self._clear_index()

    def _clear_index(self) -> None:
        self._base_offsets = array("q")
        self._next_offsets = array("q")
        self._positions = array("q", [0])  # one more than batches: where each starts, and where the last ends
        self._leader_epochs = array("i")
        self._timestamps = array("q")
        self._producer_ids = array("q")
        self._producer_epochs = array("h")
        self._base_sequences = array("i")  # for a marker, which has no sequence: the coordinator's epoch
        self._kinds = array("b")

    @property
    def batch_count(self) -> int:
        """Number of batches that the index holds."""
        return len(self._base_offsets)

    @property
    def is_empty(self) -> bool:
        """The log has no batch."""
        return not self._base_offsets

    @property
    def last_written_leader_epoch(self) -> LeaderEpoch | None:
        """Epoch of the last batch; the newest cache entry may be a later epoch without records."""
        return LeaderEpoch(self._leader_epochs[-1]) if self._leader_epochs else None

    @property
    def first_unstable_offset(self) -> Offset | None:
        """First offset of the earliest transaction that is open, or whose end is not committed.

        If the log start is above that offset: the base offset of the batch at the log start (``UnifiedLog``).
        """
        first = self.producers.first_unstable_offset(self.high_watermark)
        return (
            self.batch_base_offset(self.log_start_offset)
            if first is not None and first < self.log_start_offset
            else first
        )

    @property
    def last_stable_offset(self) -> Offset:
        """The end of what readers of committed records may see (KIP-98)."""
        first = self.first_unstable_offset
        return self.high_watermark if first is None else min(first, self.high_watermark)

    def aborted_transactions(self, fetch_offset: Offset, upper_bound: Offset) -> tuple[AbortedTransaction, ...]:
        """Returns the aborted transactions that have a record or their marker in a range, its end exclusive."""
        return tuple(self.producers.aborted.collect(fetch_offset, upper_bound)[0])

    def append(self, batch: BatchDescriptor, *, now_ms: int) -> None:
        """Adds a batch at its own offsets; the caller has checked that they are not below the log's end."""
        self._index(batch)
        if batch.producer_id is not None:
            self.producers.update(batch, now_ms=now_ms)

    def _index(self, batch: BatchDescriptor) -> None:
        next_offset = batch.last_offset + 1
        self._base_offsets.append(batch.base_offset)
        self._next_offsets.append(next_offset)
        self._positions.append(self._positions[-1] + batch.size)
        self._leader_epochs.append(batch.leader_epoch)
        self._timestamps.append(batch.max_timestamp_ms)
        self._producer_ids.append(_NO_PRODUCER if batch.producer_id is None else batch.producer_id)
        self._producer_epochs.append(batch.producer_epoch)
        marker = batch.marker
        self._base_sequences.append(batch.base_sequence if marker is None else marker.coordinator_epoch)
        self._kinds.append(_kind_of(batch) if marker or batch.is_control or batch.is_transactional else _DATA)
        self.log_end_offset = Offset(next_offset)

    def load(
        self,
        batches: Iterable[BatchDescriptor],
        *,
        log_start_offset: Offset,
        log_end_offset: Offset,
        producers: tuple[inputs.ProducerSnapshotEntry, ...],
        producers_offset: Offset,
        now_ms: int,
    ) -> None:
        """Fills a new log with what storage found: index, offsets, and producers by replay after the snapshot."""
        for batch in batches:
            self._index(batch)
        self.log_start_offset = self.high_watermark = log_start_offset
        self.log_end_offset = log_end_offset
        self._producers_snapshot = producers
        self._producers_offset = producers_offset
        self._reload_producers(now_ms=now_ms)

    def read(
        self, fetch_offset: Offset, *, upper_bound: Offset, max_bytes: int, is_cut_allowed: bool = False
    ) -> LogSpan | None:
        """Returns batches from the one that holds ``fetch_offset`` on, or ``None`` if there are none.

        Args:
            fetch_offset: the first offset wanted.
            upper_bound: exclusive; a batch that reaches it is left out.
            max_bytes: limit on their size together; the first batch is returned whatever its size (KIP-74).
            is_cut_allowed: whether the beginning of one more batch fills the limit.
        """
        first = bisect_right(self._next_offsets, fetch_offset)
        end = len(self._base_offsets)
        if upper_bound < self.log_end_offset:
            end = bisect_right(self._next_offsets, upper_bound, first)
        if first >= end:
            return None
        start_position = self._positions[first]
        fitting = bisect_right(self._positions, start_position + max_bytes, first + 1, end + 1) - 1
        last = max(fitting, first + 1)
        size = self._positions[last] - start_position
        if is_cut_allowed and last < end and size < max_bytes:
            last, size = last + 1, max_bytes
        return LogSpan(
            base_offset=Offset(self._base_offsets[first]),
            end_offset=Offset(self._next_offsets[last - 1]),
            size=size,
        )

    def size_between(self, fetch_offset: Offset, upper_bound: Offset) -> int:
        """Returns the size of the batches that a read from ``fetch_offset`` up to ``upper_bound`` could return."""
        first = bisect_right(self._next_offsets, fetch_offset)
        end = bisect_right(self._next_offsets, upper_bound, first)
        return self._positions[end] - self._positions[first]

    def batch_base_offset(self, offset: Offset) -> Offset:
        """Returns the base offset of the batch that ``offset`` lies inside of, else ``offset`` itself."""
        index = bisect_right(self._next_offsets, offset)
        if index < len(self._base_offsets) and self._base_offsets[index] < offset:
            return Offset(self._base_offsets[index])
        return offset

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[Offset, LeaderEpoch, int] | None:
        """Returns base offset, epoch and timestamp of the first batch with a timestamp of ``timestamp_ms`` or later.

        The core does not see timestamps of single records, so the base offset may be below the record's offset.
        """
        first = bisect_right(self._next_offsets, self.log_start_offset)
        for index in range(first, len(self._timestamps)):
            if self._timestamps[index] >= timestamp_ms:
                offset = max(Offset(self._base_offsets[index]), self.log_start_offset)
                return offset, LeaderEpoch(self._leader_epochs[index]), self._timestamps[index]
        return None

    def offset_for_max_timestamp(self) -> tuple[Offset, LeaderEpoch, int] | None:
        """Returns base offset, epoch and timestamp of the first batch that has the largest timestamp of the log."""
        first = bisect_right(self._next_offsets, self.log_start_offset)
        largest = max(self._timestamps[first:], default=None)
        return None if largest is None else self.offset_for_timestamp(largest)

    def truncate_to(self, offset: Offset, *, now_ms: int) -> bool:
        """Drops every batch whose last offset is at or above ``offset``; the log then ends there, whole batches gone.

        At or above the log end, only the epoch entry of a leader without records is dropped. Below the log start, the
        log restarts at ``offset``. Returns whether the epoch cache changed.
        """
        epochs_changed = self.epochs.truncate_from_end(min(offset, self.log_end_offset))
        if offset >= self.log_end_offset:
            return epochs_changed
        if offset < self.log_start_offset:
            return self.restart_at(offset) or epochs_changed
        self._cut_index(bisect_right(self._next_offsets, offset))
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self._reload_producers(now_ms=now_ms)
        return epochs_changed

    def forget_epochs_below(self, start_offset: Offset) -> bool:
        """Drops epoch entries below the log start; returns whether it dropped any.

        The epoch of the last deleted record stays. Without it, an empty log could not be compared with its leader's
        history below the log start (S50). Kafka moves the entry to the log start; if the log is empty, the entry is
        then lost when the log is opened.
        """
        if self._keeps_epoch_when_empty:
            return self.epochs.drop_below(start_offset)
        return self.epochs.truncate_from_start(start_offset)

    def restart_at(self, offset: Offset) -> bool:
        """Drops everything and starts again, empty, at ``offset``; returns whether the epoch cache changed."""
        self._clear_index()
        self.log_start_offset = self.high_watermark = self.log_end_offset = offset
        self._producers_snapshot = ()
        self._producers_offset = offset
        self.producers.reload((), now_ms=0)
        return self.epochs.clear()

    def raise_log_start(self, offset: Offset) -> bool:
        """Raises the log start, and the high watermark at least to it; returns whether the epoch cache changed.

        Producer state is kept: only a reload removes producers whose batches are gone.
        """
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        gone = bisect_right(self._next_offsets, offset)
        for column in self._columns():
            del column[:gone]
        del self._positions[:gone]
        return self.forget_epochs_below(offset)

    def rebuild_producers(self, *, now_ms: int) -> int:
        """Rebuilds producers from the snapshot and the batches after it; returns how many there are."""
        self._reload_producers(now_ms=now_ms)
        return len(self.producers)

    def _columns(self) -> tuple["array[int]", ...]:
        return (
            self._base_offsets,
            self._next_offsets,
            self._leader_epochs,
            self._timestamps,
            self._producer_ids,
            self._producer_epochs,
            self._base_sequences,
            self._kinds,
        )

    def _cut_index(self, kept: int) -> None:
        for column in self._columns():
            del column[kept:]
        del self._positions[kept + 1 :]

    def _reload_producers(self, *, now_ms: int) -> None:
        usable = self._producers_offset <= self.log_end_offset
        transactional = [self._descriptor(index) for index, kind in enumerate(self._kinds) if kind >= _TRANSACTIONAL]
        snapshot = self._producers_snapshot if usable else ()
        self.producers.reload(snapshot, transactional=transactional, now_ms=now_ms)
        first = bisect_left(self._base_offsets, self._producers_offset) if usable else 0
        produced = (
            self._descriptor(index)
            for index in range(first, len(self._base_offsets))
            if self._producer_ids[index] != _NO_PRODUCER
        )
        self.producers.replay(produced, now_ms=now_ms)

    def _descriptor(self, index: int) -> BatchDescriptor:
        """Returns the producer's batch, without its CRC."""
        base_offset, next_offset = self._base_offsets[index], self._next_offsets[index]
        kind, sequence = self._kinds[index], self._base_sequences[index]
        result = _RESULTS.get(kind)
        return BatchDescriptor(
            base_offset=Offset(base_offset),
            last_offset=Offset(next_offset - 1),
            leader_epoch=LeaderEpoch(self._leader_epochs[index]),
            crc=0,
            size=self._positions[index + 1] - self._positions[index],
            record_count=next_offset - base_offset,
            max_timestamp_ms=self._timestamps[index],
            producer_id=ProducerId(self._producer_ids[index]),
            producer_epoch=ProducerEpoch(self._producer_epochs[index]),
            base_sequence=sequence if result is None else -1,
            is_control=kind == _CONTROL or result is not None,
            is_transactional=kind >= _TRANSACTIONAL,
            marker=None if result is None else Marker(result=result, coordinator_epoch=sequence),
        )
