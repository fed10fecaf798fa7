"""The two indexes beside a segment, in Kafka's formats, for Kafka's tools and for later processes.

::

    .index      relative offset i32 | position i32      the *last* offset of a batch, and where the batch begins
    .timeindex  timestamp i64 | relative offset i32     largest timestamp so far, and the batch that has it

Relative to the segment's base offset; no checksum; one entry whenever more than ``index.interval.bytes`` were appended
since the last. Reads here use the positions that a segment keeps in memory, so the files are written and never
searched; they are not preallocated, which is how Kafka leaves them too once a segment is closed.
"""

import struct
from collections.abc import Sequence
from typing import Final

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.types import Offset
from laststand.emulator.storage.filesystem import File

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")

MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1
"""Last offset of a segment, relative to its base, that an index can express."""


class OffsetsNotAscendingError(Exception):
    """An index entry would go backwards (Kafka's ``InvalidOffsetException``)."""


class SegmentIndex:
    """Both indexes of one segment, as they grow."""

    def __init__(self, *, base_offset: Offset, interval_bytes: int, offset_file: File, time_file: File) -> None:
        """Continues files that ``rebuild`` or an earlier close left consistent with the segment.

        Args:
            base_offset: of the segment.
            interval_bytes: ``index.interval.bytes``.
            offset_file: the open ``.index`` file.
            time_file: the open ``.timeindex`` file.
        """
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._offset_file = offset_file
        self._time_file = time_file
        self._bytes_since_entry = 0
        self._largest_timestamp_ms = -1
        self._offset_of_largest = base_offset
        self._last_time_entry_ms = -1
        self._is_dirty = False

    @property
    def largest_timestamp_ms(self) -> int:
        """Largest timestamp of the segment, -1 for none (as Kafka's files have it)."""
        return self._largest_timestamp_ms

    def append(self, batches: Sequence[BatchDescriptor], positions: Sequence[int]) -> None:
        """Takes note of batches that were appended to the segment.

        Raises:
            StorageError: a write failed.
            OffsetsNotAscendingError: never for batches whose offsets ascend.
        """
        offset_entries, time_entries = self._entries(batches, positions, last_indexed=None)
        if offset_entries:
            self._offset_file.append((offset_entries,))
            self._is_dirty = True
        if time_entries:
            self._time_file.append((time_entries,))

    def resume(self, batches: Sequence[BatchDescriptor], positions: Sequence[int]) -> None:
        """Continues files that already cover exactly these batches, up to the last time entry."""
        self._entries(batches, positions, last_indexed=None)
        self._final_time_entry()

    def rebuild(self, batches: Sequence[BatchDescriptor], positions: Sequence[int]) -> None:
        """Makes both files as if exactly these batches had been appended.

        Raises:
            StorageError: a write failed.
            OffsetsNotAscendingError: the offsets of two indexed batches go backwards.
        """
        self._bytes_since_entry = 0
        self._largest_timestamp_ms = self._last_time_entry_ms = -1
        offset_entries, time_entries = self._entries(batches, positions, last_indexed=self._base_offset - 1)
        time_entries += self._final_time_entry()
        for file, content in ((self._offset_file, offset_entries), (self._time_file, time_entries)):
            if file.size != len(content) or file.read(position=0, length=file.size) != content:
                file.truncate(0)
                file.append((content,))
                self._is_dirty = True

    def _entries(
        self, batches: Sequence[BatchDescriptor], positions: Sequence[int], *, last_indexed: int | None
    ) -> tuple[bytes, bytes]:
        offset_entries = b""
        time_entries = b""
        pieces: list[bytes] = []
        time_pieces: list[bytes] = []
        for batch, position in zip(batches, positions, strict=True):
            if batch.max_timestamp_ms > self._largest_timestamp_ms:
                self._largest_timestamp_ms = batch.max_timestamp_ms
                self._offset_of_largest = batch.last_offset
            if self._bytes_since_entry > self._interval_bytes:
                if last_indexed is not None:
                    if batch.last_offset <= last_indexed:
                        raise OffsetsNotAscendingError
                    last_indexed = batch.last_offset
                pieces.append(_OFFSET_ENTRY.pack(batch.last_offset - self._base_offset, position))
                time_pieces.append(self._final_time_entry())
                self._bytes_since_entry = 0
            self._bytes_since_entry += batch.size
        if pieces:
            offset_entries = b"".join(pieces)
            time_entries = b"".join(time_pieces)
        return offset_entries, time_entries

    def _final_time_entry(self) -> bytes:
        if self._largest_timestamp_ms <= self._last_time_entry_ms:
            return b""
        self._last_time_entry_ms = self._largest_timestamp_ms
        return _TIME_ENTRY.pack(self._largest_timestamp_ms, self._offset_of_largest - self._base_offset)

    def finish(self) -> None:
        """Writes the last time entry: the segment is being rolled or closed.

        Raises:
            StorageError: the write failed.
        """
        entry = self._final_time_entry()
        if entry:
            self._time_file.append((entry,))
            self._is_dirty = True

    def sync(self) -> None:
        """Makes both files durable, if anything was written since the last time.

        Raises:
            StorageError: the sync failed.
        """
        if self._is_dirty:
            self._is_dirty = False
            self._offset_file.sync()
            self._time_file.sync()

    def close(self) -> None:
        """Closes both files."""
        self._offset_file.close()
        self._time_file.close()
