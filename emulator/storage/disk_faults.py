"""Faults of a node's disk, armed from outside the process.

The harness writes ``disk-faults.json`` beside the sync ledger, so that the faults outlive a process, as those of a real
disk do. A node reads it when it starts, at each sync, and when it gets SIGUSR1. When a fault has had an effect, the
node writes that into ``disk-faults.seen``, with the generation of the faults; a failed operation ends the process.
"""

import errno
import os
import time
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.disk import DiskOperation

_FAULTS: Final = "disk-faults.json"
_SEEN: Final = "disk-faults.seen"
_MS_PER_S: Final = 1000


class DiskFaults(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of a disk.

    Attributes:
        generation: number of the present faults, by which a node reports which faults it saw.
        sync_delay_ms: delay of every fsync.
        are_syncs_lost: whether fsync returns although nothing is durable.
        failing: the operation that fails with EIO; ``None`` for none.
        at: number of the operation that fails, counted from 1.
        bytes_left: number of bytes that may still be written; ``None`` for no limit.
    """

    generation: int
    sync_delay_ms: int = 0
    are_syncs_lost: bool = False
    failing: DiskOperation | None = None
    at: int = 1
    bytes_left: int | None = None


_DECODER: Final = msgspec.json.Decoder(DiskFaults)
_WHOLE: Final = DiskFaults(generation=0)


def read_faults(ledger_folder: str | Path) -> DiskFaults:
    """Returns the faults that are armed for the disk of a ledger."""
    try:
        return _DECODER.decode(Path(ledger_folder).with_name(_FAULTS).read_bytes())
    except FileNotFoundError:
        return _WHOLE


def arm(ledger_folder: str | Path, **changes: object) -> int:
    """Changes the armed faults; they apply at once to every later fsync.

    Args:
        ledger_folder: of the node.
        **changes: attributes of ``DiskFaults``.

    Returns:
        The generation of the armed faults.
    """
    path = Path(ledger_folder).with_name(_FAULTS)
    armed = read_faults(ledger_folder)
    faults = msgspec.structs.replace(armed, **{**changes, "generation": armed.generation + 1})
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(faults))
    fresh.replace(path)
    return faults.generation


def seen_generation(ledger_folder: str | Path) -> int:
    """Returns the newest generation that acted on a node; 0 before the first."""
    try:
        return int(Path(ledger_folder).with_name(_SEEN).read_text())
    except FileNotFoundError:
        return 0


class FaultyDisk:
    """A node's side: applies the armed faults to its files.

    Args:
        ledger_folder: of the node.

    Attributes:
        is_failing: whether some write or read may fail.
    """

    def __init__(self, ledger_folder: str) -> None:
        self.is_failing = False
        self._folder = ledger_folder
        self._path = str(Path(ledger_folder).with_name(_FAULTS))
        self._version: tuple[int, int] | None = None
        self._faults = _WHOLE
        self._left = 0
        self._bytes_left: int | None = None
        self._reported = 0
        self._check()

    def notice(self) -> None:
        """Reads the armed faults, and delays once like an fsync: the harness need not wait for the next fsync."""
        self._check()
        self._wait()
        if not self._faults.are_syncs_lost:
            self._report()

    def suffer_sync(self) -> bool:
        """Waits for the delay of the armed faults; returns whether the fsync makes anything durable.

        Raises:
            OSError: the armed fault makes it fail.
        """
        self._check()
        self._wait()
        self._report()
        self._count(DiskOperation.SYNC)
        return not self._faults.are_syncs_lost

    def suffer_write(self, size: int) -> None:
        """Counts bytes that are about to be written, unless an armed fault makes the write fail.

        Raises:
            OSError: the write fails, or there is no room.
        """
        self._count(DiskOperation.WRITE)
        if self._bytes_left is not None:
            if size > self._bytes_left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._bytes_left -= size

    def suffer_read(self) -> None:
        """Does nothing, unless an armed fault makes the read fail.

        Raises:
            OSError: the armed fault makes it fail.
        """
        self._count(DiskOperation.READ)

    def _check(self) -> None:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return
        version = (status.st_ino, status.st_mtime_ns)
        if version == self._version:
            return
        self._version, self._faults = version, read_faults(self._folder)
        self._left, self._bytes_left = self._faults.at, self._faults.bytes_left
        self.is_failing = self._faults.failing is not None or self._bytes_left is not None

    def _wait(self) -> None:
        if self._faults.sync_delay_ms:
            time.sleep(self._faults.sync_delay_ms / _MS_PER_S)

    def _report(self) -> None:
        if self._reported != self._faults.generation:
            self._reported = self._faults.generation
            path = Path(self._folder).with_name(_SEEN)
            fresh = path.with_suffix(".new-seen")  # never half written for whoever looks
            fresh.write_text(str(self._reported))
            fresh.replace(path)

    def _count(self, operation: DiskOperation) -> None:
        if self._faults.failing is not operation:
            return
        self._left -= 1
        if self._left <= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
