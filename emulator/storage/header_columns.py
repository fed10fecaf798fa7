"""The batch headers of a segment file as columns: one read per batch, whatever its size.

For logs too large to be read completely. A header has the place of the next one; the bytes in between are read only if
batches are small. One file waits for the disk at each batch, so several are read at a time, in threads. Where a file
ends, and why, is decided as in ``batch_scan``.
"""

import os
import struct
from typing import Final

import msgspec
import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from laststand.emulator.storage.batch_scan import ScanEnd
from laststand.emulator.storage.record_batch import (
    HEADER_SIZE,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC,
    MINIMAL_BATCH_LENGTH,
)
from laststand.emulator.user_files import open_file

HEADER_COLUMNS: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
"""The 61 bytes of a header, as ``record_batch`` draws them."""

Headers = NDArray[np.void]
"""An array of ``HEADER_COLUMNS``."""

_LENGTH_AND_MAGIC: Final = struct.Struct(">i4xb")
_LENGTH_AT: Final = 8
_CRC_START: Final = 21
_WINDOW_BYTES: Final = 1 << 16
"""Bytes that are read at once where batches are small."""

_LARGE_BATCH: Final = 1 << 13
"""The size of a batch from which on a read takes no more than the header: a page of the disk."""

LEGACY_MAGICS: Final = (0, 1)
"""Formats of Kafka before 0.11, in which there are no batches."""


class SegmentHeaders(msgspec.Struct, frozen=True, kw_only=True):
    """The whole batches at the start of a segment file.

    Attributes:
        headers: in file order.
        file_bytes: length of the file.
        valid_bytes: end of the last batch.
        end: why no further batch follows.
        reason: the same in words; empty at a plain end of file.
        legacy_magic: format of the bytes after them, if it is one of ``LEGACY_MAGICS``.
    """

    headers: Headers
    file_bytes: int
    valid_bytes: int
    end: ScanEnd
    reason: str = ""
    legacy_magic: int | None = None

    def positions(self) -> NDArray[np.int64]:
        """Returns the byte position of each batch."""
        ends = np.cumsum(batch_sizes(self.headers))
        return np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends


def batch_sizes(headers: Headers) -> NDArray[np.int64]:
    """Returns the bytes of each batch, header included."""
    return headers["batch_length"].astype(np.int64) + LOG_OVERHEAD


def read_headers(path: str) -> SegmentHeaders:
    """Reads the headers of a segment file up to the first thing that is no whole batch. No CRC is checked.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        # Else the kernel reads ahead, and so the whole file.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        return _read_headers(file.fileno(), os.fstat(file.fileno()).st_size)


def _read_headers(descriptor: int, end: int) -> SegmentHeaders:
    found = bytearray()
    position, window_start, window = 0, 0, b""
    outcome, reason, legacy_magic = ScanEnd.SILENT, "", None
    window_bytes = _WINDOW_BYTES
    while end - position > HEADER_UP_TO_MAGIC:
        at = position - window_start
        if at + HEADER_SIZE > len(window):
            window, window_start, at = os.pread(descriptor, window_bytes, position), position, 0
        batch_length, magic = _LENGTH_AND_MAGIC.unpack_from(window, at + _LENGTH_AT)
        size = batch_length + LOG_OVERHEAD
        if batch_length < MINIMAL_BATCH_LENGTH:
            outcome, reason = ScanEnd.CORRUPT, f"declared length {batch_length}"
            break
        if magic != MAGIC or size < HEADER_SIZE:
            outcome, reason = ScanEnd.CORRUPT, f"magic {magic}, size {size}"
            legacy_magic = magic if magic in LEGACY_MAGICS else None
            break
        if position + size > end:
            reason = f"declared size {size}, {end - position} bytes left"
            break
        found += window[at : at + HEADER_SIZE]
        position += size
        window_bytes = HEADER_SIZE if size > _LARGE_BATCH else _WINDOW_BYTES
    if not reason and position < end:
        reason = f"{end - position} bytes left"
    return SegmentHeaders(
        headers=np.frombuffer(bytes(found), HEADER_COLUMNS),
        file_bytes=end,
        valid_bytes=position,
        end=outcome,
        reason=reason,
        legacy_magic=legacy_magic,
    )


def first_wrong_crc(path: str, segment: SegmentHeaders, *, first: int) -> int | None:
    """Returns the place of the first batch, from ``first`` on, whose content does not have its CRC; ``None``: all do.

    Raises:
        OSError: the file cannot be read.
    """
    sizes, positions = batch_sizes(segment.headers), segment.positions()
    with open_file(path) as file:
        for place in range(first, len(sizes)):
            content = os.pread(file.fileno(), int(sizes[place]), int(positions[place]))
            if crc32c(memoryview(content)[_CRC_START:]) != int(segment.headers["crc"][place]):
                return place
    return None
