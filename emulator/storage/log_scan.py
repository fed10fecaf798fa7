"""Reads an open log from its recovery point to its end, in any thread; the log may be served meanwhile.

The work notes the files and their lengths when it is created, opens them for itself, and changes nothing. Later appends
are not read; a file that is truncated or renamed meanwhile appears as a bad batch or an error, which the caller that
truncated it expects.
"""

from collections.abc import Sequence

import msgspec

from laststand.emulator.core.types import Offset
from laststand.emulator.storage.batch_scan import BatchValidation, scan_batches
from laststand.emulator.storage.filesystem import File, FileSystem, OpenMode


class LogScanResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a scan.

    Attributes:
        start_offset: base of the first segment that was read.
        batch_count: intact batches, up to the first that is not.
        bad_offset: the log ends before this offset; ``None`` if every batch is intact.
    """

    start_offset: Offset
    batch_count: int
    bad_offset: Offset | None


class ScannedSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment when the work was created: ``size`` bytes with ``batch_count`` batches."""

    path: str
    base_offset: Offset
    size: int
    batch_count: int


class LogScan:
    """Segments to be read, ascending, at least one."""

    def __init__(self, filesystem: FileSystem, segments: Sequence[ScannedSegment]) -> None:
        self._filesystem = filesystem
        self._segments = segments

    def run(self) -> LogScanResult:
        """Reads; blocks for as long as the disk takes.

        Raises:
            StorageError: a file is not there any more, or cannot be read.
        """
        batch_count = 0
        bad_offset: Offset | None = None
        for segment in self._segments:
            file = self._filesystem.open(segment.path, OpenMode.READ)
            try:
                scan = scan_batches(_Prefix(file, segment.size), check=BatchValidation.CRC)
            finally:
                file.close()
            batch_count += len(scan.batches)
            if len(scan.batches) < segment.batch_count:
                bad_offset = scan.batches[-1].next_offset if scan.batches else segment.base_offset
                break
        return LogScanResult(start_offset=self._segments[0].base_offset, batch_count=batch_count, bad_offset=bad_offset)


class _Prefix:
    """The first bytes of a file, as if it ended there."""

    def __init__(self, file: File, size: int) -> None:
        self._file = file
        self.size = size

    def read(self, *, position: int, length: int) -> bytes:
        return self._file.read(position=position, length=min(length, self.size - position))
