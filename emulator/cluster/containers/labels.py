"""Labels of containers and networks: they name the harness, and so can be found after it was killed.

The harness holds a lock on a file in its run directory while it lives. A process that can take that lock knows that the
harness is gone, and may remove its leftovers. If the run directory was deleted, the harness's process is looked up.
"""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

RUN: Final = "org.laststand.run"
"""The run's id."""

LOCK: Final = "org.laststand.lock"
"""Path of the file that the harness holds locked."""

PROCESS: Final = "org.laststand.process"
"""The harness's process: its namespace, its id there and when it was started (``process_name``)."""

HARNESS: Final = "org.laststand.harness"
"""Id of the container in which the harness runs, if it runs in one."""

NODE: Final = "org.laststand.node"
"""A node's id, or ``toxiproxy``."""

LOCK_FILE: Final = ".harness.lock"

_START_FIELD: Final = 19
"""``starttime`` of ``/proc/PID/stat``, counted from the field behind the program's name, which is the state."""

_ENDED: Final = frozenset("ZX")
"""States of a process that has ended, and that its parent has not asked about yet."""


class HarnessLock:
    """A file that is locked from creation until ``release``, or until this process ends however it ends.

    Attributes:
        path: of the file.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOCK_FILE
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Releases the lock, and removes the file."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


def process_name(pid: int) -> str | None:
    """Returns a name that no other process on this machine has had since it was booted.

    Args:
        pid: process id, in this process's namespace.

    Returns:
        Inode of the namespace, id in it, and start in clock ticks since boot; ``None`` if there is no such process, or
        it has ended.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = status.rpartition(")")[2].split()
    if fields[0] in _ENDED:
        return None
    started = fields[_START_FIELD]
    return f"{Path('/proc/self/ns/pid').stat().st_ino}/{pid}/{started}"


def is_abandoned(labels: Mapping[str, str]) -> bool:
    """Returns whether the harness that created something is gone, as far as this process can see.

    A lock file in a directory that this process does not see proves nothing: it may be another container's.
    """
    lock = Path(labels.get(LOCK, "/nowhere/lock"))
    if not lock.parent.is_dir():
        return _is_gone(labels.get(PROCESS, ""))
    try:
        descriptor = os.open(lock, os.O_RDONLY)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _is_gone(process: str) -> bool:
    """Returns whether a process of this namespace has ended; ``False`` for another namespace, which is unknown."""
    namespace, pid, _ = process.split("/") if process else ("", "", "")
    return namespace == str(Path("/proc/self/ns/pid").stat().st_ino) and process_name(int(pid)) != process
