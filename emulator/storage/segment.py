"""One segment of a partition's log: ``<base offset>.log`` with its two indexes, and one of aborted transactions.

The batches' headers and byte positions stay in memory, so a read needs no search in files. Invariant: positions ascend,
and every listed batch lies within the file. A clean load leaves a torn tail where it is, as Kafka does; then the file
is longer than its batches, and appended batches come after the tail.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.types import Offset
from laststand.emulator.storage.batch_scan import BatchValidation, SegmentScan, scan_batches
from laststand.emulator.storage.filesystem import Buffer, FileSystem, OpenMode
from laststand.emulator.storage.segment_index import MAX_RELATIVE_OFFSET, SegmentIndex
from laststand.emulator.storage.transaction_index import TransactionIndexFile

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"

INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def offset_file_path(directory: str, offset: int, suffix: str) -> str:
    """Returns the path of a file that is named by an offset, 20 digits wide."""
    return f"{directory}/{offset:020d}{suffix}"


class Segment:
    """An open segment.

    Attributes:
        transactions: that markers in this segment abort.
    """

    def __init__(
        self, filesystem: FileSystem, directory: str, base_offset: Offset, *, index_interval_bytes: int
    ) -> None:
        """Opens the files of a segment, creating what is missing.

        If there was a log file before, ``trust`` or ``recover`` must follow.

        Raises:
            StorageError: a file cannot be opened.
        """
        self._filesystem = filesystem
        self._directory = directory
        self.base_offset = base_offset
        self.batches: list[BatchDescriptor] = []
        self._positions: list[int] = []
        self._log = filesystem.open(offset_file_path(directory, base_offset, LOG_SUFFIX), OpenMode.APPEND)
        self.transactions = TransactionIndexFile(
            filesystem, offset_file_path(directory, base_offset, TRANSACTION_INDEX_SUFFIX), base_offset=base_offset
        )
        self._index = SegmentIndex(
            base_offset=base_offset,
            interval_bytes=index_interval_bytes,
            offset_file=filesystem.open(offset_file_path(directory, base_offset, OFFSET_INDEX_SUFFIX), OpenMode.APPEND),
            time_file=filesystem.open(offset_file_path(directory, base_offset, TIME_INDEX_SUFFIX), OpenMode.APPEND),
        )

    @property
    def size(self) -> int:
        """Length of the log file in bytes."""
        return self._log.size

    @property
    def path(self) -> str:
        """Path of the log file."""
        return self._log.path

    @property
    def largest_timestamp_ms(self) -> int:
        """Largest record timestamp, -1 for none."""
        return self._index.largest_timestamp_ms

    def can_hold(self, last_offset: Offset) -> bool:
        """Returns whether an index of this segment can express that offset."""
        return last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def trust(self, scan: SegmentScan) -> None:
        """Takes over the result of a scan of the log file; the indexes are trusted to agree with it."""
        self._index.resume(scan.batches, scan.positions)
        self.batches = scan.batches
        self._positions = scan.positions

    def recover(self, scan: SegmentScan) -> None:
        """Takes over the result of a scan of the log file, truncates the file after it, and rewrites the indexes.

        Raises:
            StorageError: a file cannot be cut or written.
            OffsetsNotAscendingError: the batches' offsets go backwards; nothing was changed.
        """
        self._index.rebuild(scan.batches, scan.positions)
        self._log.truncate(scan.valid_bytes)
        self.batches = scan.batches
        self._positions = scan.positions

    def scan(self, check: BatchValidation) -> SegmentScan:
        """Reads the log file from its start; see ``scan_batches``.

        Raises:
            StorageError: the file cannot be read.
        """
        return scan_batches(self._log, check=check)

    def append(self, batches: Sequence[BatchDescriptor], contents: Sequence[Buffer]) -> None:
        """Appends stamped batches with one write.

        Raises:
            StorageError: the write failed.
        """
        position = self._log.size
        self._log.append(contents)
        positions: list[int] = []
        for batch in batches:
            positions.append(position)
            position += batch.size
        self.batches += batches
        self._positions += positions
        self._index.append(batches, positions)

    def position_of(self, index: int) -> int:
        """Returns the byte position of the batch with that index in ``batches``."""
        return self._positions[index]

    def find(self, base_offset: Offset) -> int:
        """Returns the index of the first batch whose base offset is at or above ``base_offset``."""
        return bisect_left(self.batches, base_offset, key=_base_offset)

    def read(self, *, position: int, length: int) -> bytes:
        """Returns bytes of the log file.

        Raises:
            StorageError: the read failed.
        """
        return self._log.read(position=position, length=length)

    def truncate_to(self, offset: Offset) -> None:
        """Drops every batch whose last offset is at or above ``offset``, and all batches after the first of these.

        Raises:
            StorageError: the truncation failed.
        """
        kept = bisect_left(self.batches, offset, key=_last_offset)
        if kept == len(self.batches):
            return
        self._log.truncate(self._positions[kept])
        del self.batches[kept:]
        del self._positions[kept:]
        self._index.rebuild(self.batches, self._positions)

    def finish(self) -> None:
        """Completes the time index, before a newer segment begins or this one is closed.

        Raises:
            StorageError: the write failed.
        """
        self._index.finish()

    def sync(self) -> None:
        """Makes log and indexes durable. May run in another thread while the log is appended to.

        Raises:
            StorageError: the sync failed.
        """
        self._log.sync()
        self._index.sync()
        self.transactions.sync()

    def close(self) -> None:
        """Closes the files, syncing nothing."""
        self._log.close()
        self._index.close()
        self.transactions.close()

    def rename_deleted(self) -> list[str]:
        """Closes the segment and renames its files to ``.deleted``.

        Returns:
            The new paths, to be unlinked after ``log.segment.delete.delay.ms``.

        Raises:
            StorageError: a rename failed.
        """
        self.close()
        doomed: list[str] = []
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            path = offset_file_path(self._directory, self.base_offset, suffix)
            if self._filesystem.exists(path):
                self._filesystem.rename(path, path + DELETED_SUFFIX)
                doomed.append(path + DELETED_SUFFIX)
        return doomed


def _base_offset(batch: BatchDescriptor) -> Offset:
    return batch.base_offset


def _last_offset(batch: BatchDescriptor) -> Offset:
    return batch.last_offset
