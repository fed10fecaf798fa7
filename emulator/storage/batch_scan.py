"""Sequential reading of a segment file, with Kafka's rules for where a file ends.

A reader stops *silently* when 17 bytes or fewer are left, or when the declared batch runs past the end of the file: a
torn tail. A declared length below 14, or another format version, is *corruption*; so zeros, if more than 17, are
corruption and not an end (Kafka's ``DefaultRecordBatch``, ``FileLogInputStream``).
"""

from enum import Enum
from typing import Final, Protocol

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.storage.record_batch import (
    HEADER_SIZE,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC,
    MINIMAL_BATCH_LENGTH,
    crc_of,
    describe_header,
)

_CHUNK_BYTES: Final = 1 << 20


class BatchValidation(Enum):
    """The extent to which each batch is verified."""

    HEADERS = "headers"
    """The header alone: a clean load, or a segment wholly below the recovery point."""

    CRC = "crc"
    """The checksum too: recovery."""


class ScanEnd(Enum):
    """Reason why a scan ended."""

    SILENT = "silent"
    """End of file, or a tail that is no whole batch."""

    CORRUPT = "corrupt"
    """Bytes that can be no batch."""


class ScannableFile(Protocol):
    """The part of a file's interface that a scan needs; ``filesystem.File`` has it."""

    @property
    def size(self) -> int:
        """Length in bytes."""

    def read(self, *, position: int, length: int) -> bytes:
        """Returns up to ``length`` bytes from ``position`` on."""


class BytesFile:
    """Content in memory that can be scanned like a file."""

    def __init__(self, content: bytes) -> None:
        self.size = len(content)
        self._content = content

    def read(self, *, position: int, length: int) -> bytes:
        """Returns up to ``length`` bytes from ``position`` on."""
        return self._content[position : position + length]


class SegmentScan(msgspec.Struct, frozen=True, kw_only=True):
    """The whole batches at the start of a file.

    Attributes:
        batches: in file order.
        positions: byte position of each.
        valid_bytes: end of the last one.
        end: why no further batch follows.
        reason: the same in words; empty at a plain end of file.
    """

    batches: list[BatchDescriptor]
    positions: list[int]
    valid_bytes: int
    end: ScanEnd
    reason: str = ""


def scan_batches(file: ScannableFile, *, check: BatchValidation) -> SegmentScan:
    """Reads a segment file from its start up to the first thing that is no whole (``CRC``: intact) batch.

    Raises:
        StorageError: the file cannot be read.
    """
    end = file.size
    batches: list[BatchDescriptor] = []
    positions: list[int] = []
    position = 0
    chunk = b""
    chunk_start = 0
    outcome, reason = ScanEnd.SILENT, ""
    while end - position > HEADER_UP_TO_MAGIC:
        at = position - chunk_start
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_start, at = file.read(position=position, length=_CHUNK_BYTES), position, 0
        batch_length = int.from_bytes(chunk[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
        size = batch_length + LOG_OVERHEAD
        if batch_length < MINIMAL_BATCH_LENGTH:
            outcome, reason = ScanEnd.CORRUPT, f"declared length {batch_length}"
            break
        if position + size > end:
            reason = f"declared size {size}, {end - position} bytes left"
            break
        if chunk[at + HEADER_UP_TO_MAGIC - 1] != MAGIC or size < HEADER_SIZE:
            outcome, reason = ScanEnd.CORRUPT, f"magic {chunk[at + HEADER_UP_TO_MAGIC - 1]}, size {size}"
            break
        descriptor = describe_header(chunk, at)
        if at + size > len(chunk) and (descriptor.is_control or check is BatchValidation.CRC):
            chunk = file.read(position=position, length=max(size, _CHUNK_BYTES))
            chunk_start, at = position, 0
            descriptor = describe_header(chunk, at)
        if check is BatchValidation.CRC:
            computed = crc_of(memoryview(chunk)[at : at + size])
            if computed != descriptor.crc:
                outcome, reason = ScanEnd.CORRUPT, f"CRC {descriptor.crc}, computed {computed}"
                break
        batches.append(descriptor)
        positions.append(position)
        position += size
    return SegmentScan(batches=batches, positions=positions, valid_bytes=position, end=outcome, reason=reason)
