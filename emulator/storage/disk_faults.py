"""Faults of a node's disk, armed from outside the process.

The harness leaves ``disk-faults.json`` beside the sync ledger, so that they outlive a process, as those of a real disk
do. A node looks for it whenever it syncs. When a fault has acted, the node says so in ``disk-faults.seen``, with the
generation that it saw.
"""

import os
import time
from pathlib import Path
from typing import Final

import msgspec

_FAULTS: Final = "disk-faults.json"
_SEEN: Final = "disk-faults.seen"
_MS_PER_S: Final = 1000


class DiskFaults(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a disk.

    Attributes:
        generation: counts what was armed, so that a node can say which it saw.
        sync_delay_ms: how much longer every fsync takes.
    """

    generation: int
    sync_delay_ms: int = 0

    def following(self, *, sync_delay_ms: int) -> "DiskFaults":
        """Returns what may be armed next."""
        return DiskFaults(generation=self.generation + 1, sync_delay_ms=sync_delay_ms)


_DECODER: Final = msgspec.json.Decoder(DiskFaults)
_WHOLE: Final = DiskFaults(generation=0)


def read_faults(ledger_folder: str | Path) -> DiskFaults:
    """Returns what is armed for the disk of a ledger."""
    try:
        return _DECODER.decode(Path(ledger_folder).with_name(_FAULTS).read_bytes())
    except FileNotFoundError:
        return _WHOLE


def arm(ledger_folder: str | Path, faults: DiskFaults) -> None:
    """Replaces what is armed, at once for every later fsync."""
    path = Path(ledger_folder).with_name(_FAULTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(faults))
    fresh.replace(path)


def seen_generation(ledger_folder: str | Path) -> int:
    """Returns the newest generation that acted on a node; 0 before the first."""
    try:
        return int(Path(ledger_folder).with_name(_SEEN).read_text())
    except FileNotFoundError:
        return 0


class FaultyDisk:
    """A node's side: makes its syncs suffer from what is armed.

    Args:
        ledger_folder: of the node.
    """

    def __init__(self, ledger_folder: str) -> None:
        self._folder = ledger_folder
        self._path = str(Path(ledger_folder).with_name(_FAULTS))
        self._version: tuple[int, int] | None = None
        self._faults = _WHOLE
        self._reported = 0

    def suffer_sync(self) -> None:
        """Takes the time that is added to an fsync now.

        A process also does so when it gets SIGUSR1, so that whoever arms a fault need not wait for the next fsync.
        """
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return
        version = (status.st_ino, status.st_mtime_ns)
        if version != self._version:
            self._version, self._faults = version, read_faults(self._folder)
        if self._faults.sync_delay_ms:
            time.sleep(self._faults.sync_delay_ms / _MS_PER_S)
        if self._reported != self._faults.generation:
            self._reported = self._faults.generation
            Path(self._folder).with_name(_SEEN).write_text(str(self._reported))
