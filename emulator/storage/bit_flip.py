"""Damages a stored batch: one bit of its last byte, which its CRC covers."""

import os
from pathlib import Path
from typing import Final, NamedTuple

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import StorageError
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, scan_batches
from laststand.emulator.storage.record_batch import crc_of

_SUFFIX: Final = "*.log"


class FlippedBit(NamedTuple):
    """A bit that was flipped.

    Attributes:
        batch: its header, which is unchanged.
        damaged_crc: CRC of the damaged content.
        is_detectable: whether a reader that checks CRCs stops at that batch now.
    """

    batch: BatchDescriptor
    damaged_crc: int
    is_detectable: bool


def flip_last_batch(partition_directory: Path) -> FlippedBit | None:
    """Flips a bit in the last whole and intact batch of a log; ``None`` if there is none.

    A process that has the log open reads the damaged bytes from then on.

    Raises:
        StorageError: a file cannot be read or written.
    """
    try:
        for path in sorted(partition_directory.glob(_SUFFIX), reverse=True):
            scan = scan_batches(BytesFile(path.read_bytes()), check=BatchValidation.CRC)
            if scan.batches:
                _flip(path, scan.valid_bytes - 1)
                content = path.read_bytes()
                again = scan_batches(BytesFile(content), check=BatchValidation.CRC)
                position = scan.positions[-1]
                damaged = memoryview(content)[position : scan.valid_bytes]
                return FlippedBit(scan.batches[-1], crc_of(damaged), again.valid_bytes == position)
    except OSError as error:
        raise StorageError(path=str(partition_directory), reason=error.strerror or str(error)) from error
    return None


def _flip(path: Path, position: int) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        (byte,) = os.pread(descriptor, 1, position)
        os.pwrite(descriptor, bytes([byte ^ 1]), position)
    finally:
        os.close(descriptor)
