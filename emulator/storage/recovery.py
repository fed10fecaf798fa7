"""Opening a partition directory, and repairing it where its log directory was not closed in order.

Source: Kafka's ``LogLoader`` and ``LogSegment.recover``. In short:

- Clean: nothing is checked or cut; the recovery point becomes the log end. A segment that lacks its offset index is
  recovered all the same, and alone: what is cut from it may leave a hole.
- Unclean: every segment from the one that *contains* the recovery point on is read from its base, with CRC. The first
  bad batch ends its file there; whatever lost bytes takes all later segments with it. Older segments are trusted. The
  recovery point stays, at most lowered to the log end: nothing was synced by reading it.

With the switch ``holes_end_logs``, which Kafka lacks, a segment that was read and ends before the next one begins does
so, too; with ``recovery_trims_epochs``, epochs beyond the log's end are forgotten before any of its batches is added.
Not checked, as in Kafka: that offsets ascend (only an index entry that would go backwards is noticed, and empties the
segment), that a segment's content matches its name. What the core rules (trimming the epoch cache, clamping the high
watermark, producer state) is left to it: all it needs is in ``LoadedLog``.
"""

import logging
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import msgspec

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.types import Offset, TopicId, TopicPartition
from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.batch_scan import BatchValidation, ScanEnd, SegmentScan, scan_batches
from laststand.emulator.storage.checkpoints import LEADER_EPOCH_CHECKPOINT, read_epochs
from laststand.emulator.storage.filesystem import FileSystem, OpenMode, file_name, read_file
from laststand.emulator.storage.meta_properties import read_topic_id, write_topic_id
from laststand.emulator.storage.partition_log import LogSettings, PartitionLog
from laststand.emulator.storage.producer_snapshot import delete_stray_snapshots, newest_snapshot
from laststand.emulator.storage.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    Segment,
    offset_file_path,
)
from laststand.emulator.storage.segment_index import MAX_RELATIVE_OFFSET, OffsetsNotAscendingError
from laststand.emulator.storage.segment_rules import has_hole

_LOG: Final = logging.getLogger(__name__)

_CLEANED_SUFFIX: Final = ".cleaned"
_SWAP_SUFFIX: Final = ".swap"
_TEMPORARY_SUFFIX: Final = ".tmp"


class LogCheckpoints(msgspec.Struct, frozen=True, kw_only=True):
    """The entries for one log in a log directory's checkpoints; 0 without an entry."""

    recovery_point: Offset = Offset(0)
    log_start_offset: Offset = Offset(0)
    high_watermark: Offset = Offset(0)


def create_log(
    filesystem: FileSystem,
    path: str,
    *,
    partition: TopicPartition,
    topic_id: TopicId,
    settings: LogSettings,
    memory: BatchMemory,
) -> PartitionLog:
    """Makes a new, empty partition directory with its topic id. The caller syncs the directory that holds it.

    Raises:
        StorageError: the directory exists, or a write failed.
    """
    filesystem.make_directory(path)
    segment = Segment(filesystem, path, Offset(0), index_interval_bytes=settings.index_interval_bytes)
    # Last, because writing it syncs the partition directory and thereby the names of the segment's files.
    write_topic_id(filesystem, path, topic_id)
    return PartitionLog(
        filesystem,
        path,
        partition=partition,
        topic_id=topic_id,
        settings=settings,
        segments=[segment],
        log_start_offset=Offset(0),
        log_end_offset=Offset(0),
        recovery_point=Offset(0),
        memory=memory,
    )


def load_log(
    filesystem: FileSystem,
    path: str,
    *,
    partition: TopicPartition,
    is_clean: bool,
    checkpoints: LogCheckpoints,
    settings: LogSettings,
    memory: BatchMemory,
) -> tuple[PartitionLog, inputs.LoadedLog]:
    """Opens a partition directory and, unless it was closed in order, recovers it.

    Args:
        filesystem: the file system of the directory.
        path: the partition directory.
        partition: topic and number.
        is_clean: whether the clean-shutdown file of its log directory existed.
        checkpoints: of its log directory.
        settings: of the topic.
        memory: keeps its newest batches.

    Returns:
        The open log, and its state for the core.

    Raises:
        CorruptRecordError: clean, but the newest segment ends in bytes that can be no batch.
        StorageError: a file could not be read, cut or written.
    """
    while True:
        _remove_leftovers(filesystem, path)
        bases = _segment_bases(filesystem, path)
        loading = _Loading(filesystem, path, is_clean=is_clean, settings=settings)
        try:
            segments = loading.open_segments(bases, recovery_point=checkpoints.recovery_point)
            break
        except _OffsetOverflowError as overflow:  # at most once per segment: what a split leaves does not overflow
            loading.close()
            _split_segment(filesystem, path, overflow.base_offset, overflow.scan)
    log_end_offset = loading.log_end_offset(segments) if segments else checkpoints.log_start_offset
    if segments and log_end_offset < checkpoints.log_start_offset:
        _LOG.warning("log restarts partition=%s log_end_offset=%d reason=below log start", partition, log_end_offset)
        for segment in segments:
            segment.close()
            remove_segment(filesystem, path, segment.base_offset)
        segments = []
        log_end_offset = checkpoints.log_start_offset
    if not segments:
        segments = [loading.new_segment(checkpoints.log_start_offset)]
    delete_stray_snapshots(filesystem, path, [segment.base_offset for segment in segments])
    if not is_clean:
        # A segment that was dropped here must not come back behind what is appended from now on. Kafka does not sync.
        filesystem.sync_directory(path)

    topic_id = read_topic_id(filesystem, path)
    log = PartitionLog(
        filesystem,
        path,
        partition=partition,
        topic_id=topic_id,
        settings=settings,
        segments=segments,
        log_start_offset=max(checkpoints.log_start_offset, segments[0].base_offset),
        log_end_offset=log_end_offset,
        recovery_point=log_end_offset if is_clean else min(checkpoints.recovery_point, log_end_offset),
        memory=memory,
    )
    producers_offset, producers = newest_snapshot(filesystem, path, at_most=log_end_offset)
    on_disk = read_epochs(filesystem, f"{path}/{LEADER_EPOCH_CHECKPOINT}")
    trims_first = settings.recovery_trims_epochs and not is_clean
    found = log.batches if trims_first else loading.scanned
    epochs = with_found_epochs(on_disk, found, trims_first=trims_first)
    if epochs != tuple(on_disk):
        # A log that was closed in order is not scanned again: what was found must be durable by then.
        log.write_epochs(epochs)
    loaded = inputs.LoadedLog(
        partition=partition,
        topic_id=topic_id,
        is_clean=is_clean,
        batches=tuple(log.batches),
        log_start_offset=log.log_start_offset,
        log_end_offset=log_end_offset,
        epochs=epochs,
        log_start_checkpoint=checkpoints.log_start_offset,
        high_watermark_checkpoint=checkpoints.high_watermark,
        recovery_point=log.recovery_point,
        producers=producers,
        producers_offset=producers_offset,
    )
    return log, loaded


def with_found_epochs(
    epochs: Sequence[EpochEntry], found: Sequence[BatchDescriptor], *, trims_first: bool
) -> tuple[EpochEntry, ...]:
    """Returns a leader epoch checkpoint with an entry added for each batch above the newest epoch.

    An entry without records, of a leader that appended nothing, is replaced by one that starts at its offset.

    Args:
        epochs: the checkpoint.
        found: batches of the log, ascending; all of them if ``trims_first``.
        trims_first: remove entries that begin beyond the last batch before any is added. The newest of them may be the
            only one that is left of deleted records (``LeaderEpochFileCache.truncateFromStart``), and be newer than
            batches that are back after a power loss: these would have no epoch once it is removed (S48).
    """
    cache = LeaderEpochCache(epochs)
    if trims_first and found:
        cache.truncate_from_end(found[-1].next_offset)
    for batch in found:
        if cache.latest_epoch is None or batch.leader_epoch > cache.latest_epoch:
            cache.assign(batch.leader_epoch, batch.base_offset)
    return cache.entries


def remove_segment(filesystem: FileSystem, directory: str, base_offset: Offset) -> None:
    """Removes the files of a closed segment at once.

    Raises:
        StorageError: a removal failed.
    """
    for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
        path = offset_file_path(directory, base_offset, suffix)
        if filesystem.exists(path):
            filesystem.unlink(path)


def _segment_bases(filesystem: FileSystem, path: str) -> list[Offset]:
    return [
        Offset(int(name.removesuffix(LOG_SUFFIX)))
        for name in filesystem.list_directory(path)
        if name.endswith(LOG_SUFFIX)
    ]


def _remove_leftovers(filesystem: FileSystem, path: str) -> None:
    """Step 1: removes leftovers of an interrupted deletion, compaction or checkpoint, and indexes without a segment."""
    names = filesystem.list_directory(path)
    for name in names:
        if name.endswith((DELETED_SUFFIX, _CLEANED_SUFFIX, _TEMPORARY_SUFFIX)):
            filesystem.unlink(f"{path}/{name}")
    _complete_swaps(filesystem, path)
    for name in filesystem.list_directory(path):
        stem, dot, suffix = name.rpartition(".")
        if dot + suffix in INDEX_SUFFIXES and not filesystem.exists(f"{path}/{stem}{LOG_SUFFIX}"):
            filesystem.unlink(f"{path}/{name}")


def _complete_swaps(filesystem: FileSystem, path: str) -> None:
    """A ``.swap`` segment is complete: it replaces the segments whose offsets it covers."""
    swaps = [name for name in filesystem.list_directory(path) if name.endswith(_SWAP_SUFFIX)]
    for name in swaps:
        if not name.endswith(LOG_SUFFIX + _SWAP_SUFFIX):
            continue
        first = int(name.partition(".")[0])
        file = filesystem.open(f"{path}/{name}", OpenMode.READ)
        try:
            batches = scan_batches(file, check=BatchValidation.HEADERS).batches
        finally:
            file.close()
        last = batches[-1].last_offset if batches else first
        for base in _segment_bases(filesystem, path):
            if first <= base <= last:
                remove_segment(filesystem, path, base)
    for name in swaps:
        filesystem.rename(f"{path}/{name}", f"{path}/{name.removesuffix(_SWAP_SUFFIX)}")


class _OffsetOverflowError(Exception):
    """A segment holds an offset that its index cannot express (Kafka's ``LogSegmentOffsetOverflowException``)."""

    def __init__(self, base_offset: Offset, scan: SegmentScan) -> None:
        super().__init__(base_offset)
        self.base_offset = base_offset
        self.scan = scan


def _is_in_range(batch: BatchDescriptor, base_offset: Offset) -> bool:
    return 0 <= batch.last_offset - base_offset <= MAX_RELATIVE_OFFSET


def _split_segment(filesystem: FileSystem, path: str, base_offset: Offset, scan: SegmentScan) -> None:
    """Replaces a segment by several, each named by its first batch, through ``.swap`` files that survive a crash."""
    content = read_file(filesystem, offset_file_path(path, base_offset, LOG_SUFFIX))
    starts: list[tuple[Offset, int]] = []
    for batch, position in zip(scan.batches, scan.positions, strict=True):
        if not starts or not _is_in_range(batch, starts[-1][0]):
            starts.append((batch.base_offset, position))
    ends = [position for _, position in starts[1:]] + [len(content)]
    cleaned: list[str] = []
    for (first, position), end in zip(starts, ends, strict=True):
        name = offset_file_path(path, first, LOG_SUFFIX) + _CLEANED_SUFFIX
        file = filesystem.open(name, OpenMode.APPEND)
        file.append((content[position:end],))
        file.sync()
        file.close()
        cleaned.append(name)
    for name in cleaned:
        filesystem.rename(name, name.removesuffix(_CLEANED_SUFFIX) + _SWAP_SUFFIX)
    filesystem.sync_directory(path)
    remove_segment(filesystem, path, base_offset)


class _Loading:
    """The segments of one directory while they are opened; ``scanned`` collects what recovery read."""

    def __init__(self, filesystem: FileSystem, path: str, *, is_clean: bool, settings: LogSettings) -> None:
        self._filesystem = filesystem
        self._path = path
        self._is_clean = is_clean
        self._settings = settings
        self.scanned: list[BatchDescriptor] = []
        self._opened: list[Segment] = []

    def close(self) -> None:
        for segment in self._opened:
            segment.close()

    def new_segment(self, base_offset: Offset) -> Segment:
        segment = Segment(
            self._filesystem, self._path, base_offset, index_interval_bytes=self._settings.index_interval_bytes
        )
        self._opened.append(segment)
        return segment

    def open_segments(self, bases: list[Offset], *, recovery_point: Offset) -> list[Segment]:
        first_scanned = len(bases) if self._is_clean else max(bisect_right(bases, recovery_point) - 1, 0)
        segments: list[Segment] = []
        for number, base in enumerate(bases):
            index_path = offset_file_path(self._path, base, OFFSET_INDEX_SUFFIX)
            has_index = self._filesystem.exists(index_path)
            segment = self.new_segment(base)
            segments.append(segment)
            if number < first_scanned:
                if has_index:
                    self._trust(segment, is_newest=number + 1 == len(bases))
                else:
                    self._recover(segment)
            elif self._recover(segment) or self._has_hole_before(bases[number + 1 : number + 2], segment):
                for later in bases[number + 1 :]:
                    remove_segment(self._filesystem, self._path, later)
                break
        return segments

    def _has_hole_before(self, next_base: list[Offset], segment: Segment) -> bool:
        """Returns whether a segment lost whole batches at its end, while the next segment exists: S47."""
        end = self.log_end_offset([segment])
        if not self._settings.holes_end_logs or not next_base or not has_hole(end, next_base[0]):
            return False
        _LOG.warning("log cut partition=%s end=%d next_segment=%d", file_name(self._path), end, next_base[0])
        return True

    def _trust(self, segment: Segment, *, is_newest: bool) -> None:
        scan = segment.scan(BatchValidation.HEADERS)
        if scan.end is ScanEnd.CORRUPT and is_newest:
            raise CorruptRecordError(path=segment.path, position=scan.valid_bytes, reason=scan.reason)
        segment.trust(scan)

    def _recover(self, segment: Segment) -> bool:
        """Recovers one segment; returns whether it lost bytes."""
        size = segment.size
        scan = segment.scan(BatchValidation.CRC)
        if not all(_is_in_range(batch, segment.base_offset) for batch in scan.batches):
            raise _OffsetOverflowError(segment.base_offset, scan)
        try:
            segment.recover(scan)
        except OffsetsNotAscendingError:
            scan = SegmentScan(
                batches=[], positions=[], valid_bytes=0, end=ScanEnd.CORRUPT, reason="offsets go backwards"
            )
            segment.recover(scan)
        self.scanned += scan.batches
        if scan.valid_bytes < size:
            _LOG.warning(
                "segment cut file=%s/%s valid_bytes=%d size=%d reason=%s",
                file_name(self._path),
                file_name(segment.path),
                scan.valid_bytes,
                size,
                scan.reason or "no whole batch",
            )
        return scan.valid_bytes < size

    def log_end_offset(self, segments: list[Segment]) -> Offset:
        newest = segments[-1]
        return newest.batches[-1].next_offset if newest.batches else newest.base_offset
