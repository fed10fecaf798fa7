"""One partition's log on disk: its segments, and the files beside them.

The core decides offsets, epochs and truncation targets; this class carries them out and never looks into records. A
partition directory is::

    00000000000000000000.log .index .timeindex     segments, named by base offset; .txnindex: what they abort
    00000000000000001500.snapshot                   last batch per producer, everything below 1500
    leader-epoch-checkpoint partition.metadata

An append is one ``writev`` and two list extensions; nothing is synced unless ``flush.messages`` says so: acks=all does
not mean fsync. The newest batches stay in memory, so that a fetch near the end of the log reads no file.

Invariants: log_start_offset <= log_end_offset; recovery_point <= log_end_offset, and everything below it is synced.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry, LogSpan, TransactionResult
from laststand.emulator.core.broker.replicas.transaction_index import CompletedTransaction, OpenTransactions
from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import Offset, ProducerId, TopicId, TopicPartition
from laststand.emulator.storage.batch_memory import BatchMemory, Recent
from laststand.emulator.storage.checkpoints import LEADER_EPOCH_CHECKPOINT, write_epochs
from laststand.emulator.storage.filesystem import Buffer, FileSystem
from laststand.emulator.storage.log_scan import LogScan, ScannedSegment
from laststand.emulator.storage.producer_snapshot import (
    LastBatch,
    after_batch,
    delete_snapshot,
    newest_snapshot,
    snapshot_entry,
    snapshot_offsets,
    write_snapshot,
)
from laststand.emulator.storage.record_batch import stamp
from laststand.emulator.storage.retention import RetentionLimits, SegmentSummary, deletable_segments
from laststand.emulator.storage.segment import Segment
from laststand.emulator.storage.segment_rules import is_segment_full


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a log; the defaults are Kafka's.

    Attributes:
        segment_bytes: a segment is rolled before it grows past this (``segment.bytes``).
        index_interval_bytes: distance of index entries (``index.interval.bytes``).
        flush_messages: number of records after which an append syncs (``flush.messages``).
        flush_ms: time after which a log is synced again (``flush.ms``); ``None`` for never.
        holes_end_logs: recovery ends the log before a segment that does not continue the previous one; Kafka does not
            check.
        recovery_trims_epochs: recovery removes epochs beyond the log's end first; Kafka does so last.
    """

    segment_bytes: int = 1 << 30
    index_interval_bytes: int = 4096
    flush_messages: int = (1 << 63) - 1
    flush_ms: int | None = None
    holes_end_logs: bool = False
    recovery_trims_epochs: bool = False


def log_settings(topic: TopicProperties, switches: Switches) -> LogSettings:
    """Returns the settings of a topic's logs."""
    return LogSettings(
        segment_bytes=topic.segment_bytes,
        index_interval_bytes=topic.index_interval_bytes,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        holes_end_logs=switches.holes_end_logs,
        recovery_trims_epochs=switches.recovery_trims_epochs,
    )


class FlushWork:
    """Rolled segments to be synced, in any thread; hand it to ``PartitionLog.complete_flush`` afterwards."""

    def __init__(self, segments: Sequence[Segment], *, end_offset: Offset, generation: int) -> None:
        self._segments = segments
        self.end_offset = end_offset
        self.generation = generation

    def run(self) -> None:
        """Syncs; blocks for as long as the disk takes.

        Raises:
            StorageError: a sync failed; the process has to end.
        """
        for segment in self._segments:
            segment.sync()


class PartitionLog:
    """An open log. Not thread-safe, but for ``FlushWork.run`` and ``LogScan.run``."""

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        *,
        partition: TopicPartition,
        topic_id: TopicId | None,
        settings: LogSettings,
        segments: list[Segment],
        log_start_offset: Offset,
        log_end_offset: Offset,
        recovery_point: Offset,
        memory: BatchMemory,
    ) -> None:
        """Takes over opened segments; use ``create_log`` or ``recovery.load_log``.

        Args:
            filesystem: the file system of the log.
            path: of the partition directory.
            partition: topic and number.
            topic_id: from ``partition.metadata``.
            settings: of the topic.
            segments: at least one, ascending.
            log_start_offset: first offset that may be read.
            log_end_offset: next offset.
            recovery_point: everything below this offset is synced.
            memory: keeps the newest batches, together with those of other logs.
        """
        self.partition = partition
        self.topic_id = topic_id
        self.path = path
        self.settings = settings
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self._filesystem = filesystem
        self._segments = segments
        self._active = segments[-1]
        self._memory = memory
        self._recent: Recent = {}
        self._producers: dict[ProducerId, LastBatch] = {}
        self._flush_work: FlushWork | None = None
        self._generation = 0
        self._flushed_at_ms = 0
        self._reported_recovery_point = recovery_point
        self._doomed: list[str] = []
        self._transactions = OpenTransactions()
        self._reload_producers()
        self._reload_transactions()

    # --- What is there --------------------------------------------------------------------------------------------

    @property
    def segment_bases(self) -> tuple[Offset, ...]:
        """Base offsets of all segments."""
        return tuple(segment.base_offset for segment in self._segments)

    @property
    def size(self) -> int:
        """Bytes of all log files."""
        return sum(segment.size for segment in self._segments)

    @property
    def batches(self) -> list[BatchDescriptor]:
        """Headers of all batches on disk, in offset order."""
        return [batch for segment in self._segments for batch in segment.batches]

    @property
    def producers(self) -> tuple[inputs.ProducerSnapshotEntry, ...]:
        """Last batch of every producer in the log."""
        return tuple(snapshot_entry(last) for last in self._producers.values())

    def read(self, span: LogSpan) -> list[Buffer]:
        """Returns the batches of a span, to be joined: one buffer for each in memory, one per run read from a file.

        Raises:
            StorageError: a read failed.
        """
        contents: list[Buffer] = []
        recent = self._recent
        number = max(bisect_right(self._segments, span.base_offset, key=_base_offset) - 1, 0)
        index = self._segments[number].find(span.base_offset)
        while number < len(self._segments):
            segment = self._segments[number]
            batches = segment.batches
            while index < len(batches):
                batch = batches[index]
                if batch.base_offset >= span.end_offset:
                    return contents
                content = recent.get(batch.base_offset)
                if content is None:
                    first = index
                    while (
                        index < len(batches)
                        and batches[index].base_offset < span.end_offset
                        and batches[index].base_offset not in recent
                    ):
                        index += 1
                    position = segment.position_of(first)
                    length = segment.position_of(index - 1) + batches[index - 1].size - position
                    contents.append(segment.read(position=position, length=length))
                else:
                    contents.append(content)
                    index += 1
            number, index = number + 1, 0
        return contents

    def recovery_scan(self) -> LogScan:
        """Returns the work of reading, with CRCs, every segment from the one with the recovery point on."""
        return LogScan(
            self._filesystem,
            [
                ScannedSegment(
                    path=segment.path,
                    base_offset=segment.base_offset,
                    size=segment.size,
                    batch_count=len(segment.batches),
                )
                for segment in self._segments_from(self.recovery_point)
            ],
        )

    # --- Writing --------------------------------------------------------------------------------------------------

    def append(self, batches: Sequence[BatchDescriptor], contents: Sequence[Buffer]) -> None:
        """Appends batches, stamped with the offsets and epochs that the core gave them.

        Args:
            batches: headers as they shall be in the log; ascending, from ``log_end_offset`` on.
            contents: bytes of each batch, as received.

        Raises:
            StorageError: the write failed, or the sync that ``flush.messages`` asked for.
        """
        stamped = [stamp(content, batch) for batch, content in zip(batches, contents, strict=True)]
        active = self._active
        if active.size + sum(map(len, stamped)) <= self.settings.segment_bytes and active.can_hold(
            batches[-1].last_offset
        ):
            active.append(batches, stamped)
            for batch in batches:
                self._note_transaction(active, batch)
        else:
            for batch, content in zip(batches, stamped, strict=True):
                self._append_rolling(batch, content)
        self.log_end_offset = batches[-1].next_offset
        self._remember(batches, stamped)
        if self.log_end_offset - self.recovery_point >= self.settings.flush_messages:
            self.flush()

    def _append_rolling(self, batch: BatchDescriptor, content: Buffer) -> None:
        is_full = is_segment_full(self._active.size, len(content), segment_bytes=self.settings.segment_bytes)
        if is_full or not self._active.can_hold(batch.last_offset):
            self.roll(batch.base_offset)
        self._active.append((batch,), (content,))
        self._note_transaction(self._active, batch)
        self._note_producer(batch)

    def _remember(self, batches: Sequence[BatchDescriptor], contents: Sequence[Buffer]) -> None:
        for batch, content in zip(batches, contents, strict=True):
            self._note_producer(batch)
            self._memory.add(self._recent, batch.base_offset, content)

    def _note_producer(self, batch: BatchDescriptor) -> None:
        if batch.producer_id is not None and (batch.marker is not None or not batch.is_control):
            self._producers[batch.producer_id] = after_batch(self._producers.get(batch.producer_id), batch)

    def _note_transaction(self, segment: Segment, batch: BatchDescriptor) -> None:
        aborted = self._transactions.note(batch)
        if aborted is not None:
            segment.transactions.append(aborted)

    def roll(self, base_offset: Offset) -> None:
        """Starts a new segment; the older ones are to be flushed (``pop_flush_work``).

        Raises:
            StorageError: a file could not be created or written.
        """
        self._active.finish()
        write_snapshot(self._filesystem, self.path, base_offset, self.producers)
        unflushed = self._segments_from(self.recovery_point)
        self._flush_work = FlushWork(unflushed, end_offset=base_offset, generation=self._generation)
        self._active = self._open_segment(base_offset)
        self._segments.append(self._active)

    def _open_segment(self, base_offset: Offset) -> Segment:
        return Segment(
            self._filesystem, self.path, base_offset, index_interval_bytes=self.settings.index_interval_bytes
        )

    def pop_flush_work(self) -> FlushWork | None:
        """Returns, once, the segments that the last roll left to be synced in the background."""
        work, self._flush_work = self._flush_work, None
        return work

    def complete_flush(self, work: FlushWork) -> None:
        """Raises the recovery point after ``work`` has run; no effect if the log was truncated meanwhile."""
        if work.generation == self._generation:
            self.recovery_point = max(self.recovery_point, work.end_offset)

    def flush(self) -> None:
        """Syncs everything that is not synced yet; the recovery point becomes the log end.

        Raises:
            StorageError: a sync failed.
        """
        segments = self._segments_from(self.recovery_point)
        for segment in segments:
            segment.sync()
        if segments[-1].base_offset >= self.recovery_point:
            self._filesystem.sync_directory(self.path)
        self._flush_work = None
        self.recovery_point = self.log_end_offset

    def flush_if_due(self, *, now_ms: int) -> None:
        """Flushes if ``flush.ms`` has passed since the last call that found the log synced or flushed it.

        Raises:
            StorageError: a sync failed.
        """
        if self.recovery_point >= self.log_end_offset or self.settings.flush_ms is None:
            self._flushed_at_ms = now_ms
        elif now_ms - self._flushed_at_ms >= self.settings.flush_ms:
            self.flush()
            self._flushed_at_ms = now_ms

    def pop_risen_recovery_point(self) -> Offset | None:
        """Returns, once, the recovery point if it rose since the last call, or since the log was opened."""
        reported, self._reported_recovery_point = self._reported_recovery_point, self.recovery_point
        return self.recovery_point if self.recovery_point > reported else None

    def _segments_from(self, offset: Offset) -> list[Segment]:
        return self._segments[max(bisect_right(self._segments, offset, key=_base_offset) - 1, 0) :]

    def write_epochs(self, epochs: Sequence[EpochEntry]) -> None:
        """Replaces ``leader-epoch-checkpoint`` durably.

        Raises:
            StorageError: the write failed.
        """
        write_epochs(self._filesystem, f"{self.path}/{LEADER_EPOCH_CHECKPOINT}", epochs)

    # --- Removing -------------------------------------------------------------------------------------------------

    def truncate_to(self, offset: Offset) -> None:
        """Drops every batch whose last offset is at or above ``offset``; the log then ends at ``offset``.

        No effect at or above the log end. Below the first segment the log restarts at ``offset``. The recovery point
        comes down with it: the caller writes its checkpoint at once (Kafka's ``AbstractFetcherThread``).

        Raises:
            StorageError: a truncation failed.
        """
        if offset >= self.log_end_offset:
            return
        if offset < self._segments[0].base_offset:
            self.restart_at(offset)
            return
        kept = bisect_right(self._segments, offset, key=_base_offset)
        self._drop_newest(kept)
        self._active = self._segments[-1]
        self._active.truncate_to(offset)
        self._end_at(offset)
        self.log_start_offset = min(self.log_start_offset, offset)

    def restart_at(self, offset: Offset) -> None:
        """Drops everything; the log is then empty and starts and ends at ``offset``.

        Raises:
            StorageError: a removal failed.
        """
        self._drop_newest(0)
        self._active = self._open_segment(offset)
        self._segments.append(self._active)
        self._end_at(offset)
        self.log_start_offset = offset

    def _end_at(self, offset: Offset) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self._reported_recovery_point = min(self._reported_recovery_point, offset)
        self._flush_work = None
        self._generation += 1
        newest = next((segment.batches[-1].base_offset for segment in reversed(self._segments) if segment.batches), -1)
        for base_offset in [known for known in self._recent if known > newest]:
            del self._recent[base_offset]
        self._reload_producers()
        self._reload_transactions()

    def _drop_oldest(self, count: int) -> None:
        for segment in self._segments[:count]:
            self._drop(segment)
        del self._segments[:count]

    def _drop_newest(self, kept: int) -> None:
        for segment in reversed(self._segments[kept:]):
            self._drop(segment)
        del self._segments[kept:]

    def _drop(self, segment: Segment) -> None:
        """Removes segments one by one from one end of the log, each durably: a crash in between must not leave a hole.

        Kafka renames in ascending order and syncs nothing here.
        """
        self._doomed += segment.rename_deleted()
        self._filesystem.sync_directory(self.path)

    def raise_log_start(self, offset: Offset) -> None:
        """Makes ``offset`` the first readable one, and raises the recovery point to it. Never lowers the log start."""
        self.log_start_offset = max(self.log_start_offset, offset)
        self.recovery_point = max(self.recovery_point, self.log_start_offset)

    def delete_old_segments(self, *, high_watermark: Offset, limits: RetentionLimits, now_ms: int) -> Offset | None:
        """Applies retention once.

        Returns:
            The new log start if a segment was deleted and the start rose by that, else ``None``.

        Raises:
            StorageError: a removal failed.
        """
        summaries = [
            SegmentSummary(
                base_offset=segment.base_offset,
                size=segment.size,
                largest_timestamp_ms=segment.largest_timestamp_ms,
            )
            for segment in self._segments
        ]
        count = deletable_segments(
            summaries,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=high_watermark,
            limits=limits,
            now_ms=now_ms,
        )
        if count == 0:
            return None
        if count == len(self._segments):
            self.roll(self.log_end_offset)
        gone = {segment.base_offset for segment in self._segments[:count]}
        self._drop_oldest(count)
        for offset in snapshot_offsets(self._filesystem, self.path):
            if offset in gone:
                delete_snapshot(self._filesystem, self.path, offset)
        if self._segments[0].base_offset <= self.log_start_offset:
            return None
        self.raise_log_start(self._segments[0].base_offset)
        return self.log_start_offset

    def pop_doomed(self) -> list[str]:
        """Returns, once, the files that were renamed to ``.deleted`` and await their unlink."""
        doomed, self._doomed = self._doomed, []
        return doomed

    # --- Producers, end -------------------------------------------------------------------------------------------

    def _reload_producers(self) -> None:
        for offset in snapshot_offsets(self._filesystem, self.path):
            if offset > self.log_end_offset:
                delete_snapshot(self._filesystem, self.path, offset)
        covered, entries = newest_snapshot(self._filesystem, self.path, at_most=self.log_end_offset)
        self._producers = {entry.producer_id: entry for entry in entries}
        for segment in self._segments_from(covered):
            for batch in segment.batches:
                if batch.base_offset >= covered:
                    self._note_producer(batch)

    def _reload_transactions(self) -> None:
        """Makes the files of all segments agree with their batches; transactions with deleted records stay in them."""
        self._transactions = OpenTransactions()
        for segment in self._segments:
            written = {each.last_offset: each for each in segment.transactions.entries}
            aborted = [self._transactions.note(batch) or _written(written, batch) for batch in segment.batches]
            segment.transactions.replace([each for each in aborted if each is not None])

    def close(self) -> None:
        """Flushes, writes a producer snapshot at the log end, and closes the files.

        Raises:
            StorageError: a write or sync failed; the log does not count as closed in order.
        """
        self._active.finish()
        self.flush()
        write_snapshot(self._filesystem, self.path, self.log_end_offset, self.producers)
        self.abandon()

    def abandon(self) -> None:
        """Closes the files without writing or syncing anything."""
        for segment in self._segments:
            segment.close()


def _written(written: Mapping[Offset, CompletedTransaction], batch: BatchDescriptor) -> CompletedTransaction | None:
    """Returns a file's entry for the transaction that a batch aborts."""
    found = written.get(batch.last_offset)
    is_it = batch.marker is not None and batch.marker.result is TransactionResult.ABORT
    return found if is_it and found is not None and found.producer_id == batch.producer_id else None


def _base_offset(segment: Segment) -> Offset:
    return segment.base_offset
