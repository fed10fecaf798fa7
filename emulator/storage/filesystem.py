"""The seam between the emulator and the disk.

Two implementations keep the same promise about power loss, the one of ext4 and xfs that a careful program may rely on:

- bytes are durable once ``File.sync`` has returned, up to the length that the file had when it was called;
- ``File.sync`` also makes the file's own newest name durable, not the name of the directory that holds it;
- every other change of names (create, rename, unlink, mkdir, rmdir) is durable once ``sync_directory`` of the
  directory that holds the name has returned; a truncation once the file was synced;
- whatever is not durable may or may not survive a power loss, and a truncated or unlinked file may come back.

SIGKILL alone undoes no operation. Paths are strings; a failed operation raises ``StorageError``, after which the state
of the file is unknown and the process has to end (an fsync that failed once cannot be retried).
"""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes to be written; never kept or changed by the file system."""


class OpenMode(Enum):
    """The mode in which a file is opened."""

    READ = "read"
    """The file must exist."""

    APPEND = "append"
    """Read and append; created empty where it does not exist."""


class File(Protocol):
    """An open file. Appends and reads belong to one thread; ``sync`` may run beside them in another."""

    @property
    def path(self) -> str:
        """The path under which it was opened."""

    @property
    def size(self) -> int:
        """Current length in bytes."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Writes all buffers, in order, at the end of the file.

        Raises:
            StorageError: the write failed; a part of it may be in the file.
        """

    def read(self, *, position: int, length: int) -> bytes:
        """Returns up to ``length`` bytes from ``position`` on, fewer only at the end of the file.

        Raises:
            StorageError: the read failed.
        """

    def truncate(self, size: int) -> None:
        """Truncates the file to ``size`` bytes; no effect if it is not longer.

        Raises:
            StorageError: the truncation failed.
        """

    def sync(self) -> None:
        """Makes the bytes that the file has now, and its newest name, durable; no effect on a closed file.

        Raises:
            StorageError: the sync failed; it is unknown what is durable.
        """

    def close(self) -> None:
        """Closes the file without making anything durable; closing twice is allowed."""


class DirectoryLock(Protocol):
    """An exclusive lock, held until it is released or the process ends."""

    def release(self) -> None:
        """Releases the lock."""


class FileSystem(Protocol):
    """Names and files below the directories that a node owns."""

    def open(self, path: str, mode: OpenMode) -> File:
        """Opens a file.

        Raises:
            StorageError: missing with ``READ``, missing parent, or any failure below.
        """

    def exists(self, path: str) -> bool:
        """Returns whether a file or a directory has that name."""

    def is_directory(self, path: str) -> bool:
        """Returns whether that name is a directory's."""

    def list_directory(self, path: str) -> list[str]:
        """Returns the names in a directory, sorted.

        Raises:
            StorageError: no such directory.
        """

    def make_directory(self, path: str) -> None:
        """Creates a directory; its parent must exist and the name be free.

        Raises:
            StorageError: the directory cannot be created.
        """

    def remove_directory(self, path: str) -> None:
        """Removes an empty directory.

        Raises:
            StorageError: not empty, or no such directory.
        """

    def rename(self, source: str, target: str) -> None:
        """Renames atomically; a file of the target's name is replaced. Open files stay usable.

        Raises:
            StorageError: the source does not exist.
        """

    def unlink(self, path: str) -> None:
        """Removes a file's name. Open files stay usable.

        Raises:
            StorageError: no such file.
        """

    def sync_directory(self, path: str) -> None:
        """Makes all changes of names in that directory durable.

        Raises:
            StorageError: the sync failed; it is unknown what is durable.
        """

    def lock(self, path: str) -> DirectoryLock:
        """Takes an exclusive lock on the file ``path``, which is created where missing.

        Raises:
            StorageError: another process (or another holder in this process) has it.
        """


def read_file(filesystem: FileSystem, path: str) -> bytes:
    """Returns the whole content of a file.

    Raises:
        StorageError: missing or unreadable.
    """
    file = filesystem.open(path, OpenMode.READ)
    try:
        return file.read(position=0, length=file.size)
    finally:
        file.close()


def write_atomically(filesystem: FileSystem, path: str, content: bytes) -> None:
    """Replaces a file durably, such that a crash or a power loss leaves the old content or the new, never a mixture.

    Temporary file, fsync, rename, fsync of the directory (Kafka's ``CheckpointFile.write``).

    Raises:
        StorageError: a step failed.
    """
    temporary = path + ".tmp"
    if filesystem.exists(temporary):
        filesystem.unlink(temporary)
    file = filesystem.open(temporary, OpenMode.APPEND)
    try:
        file.append((content,))
        file.sync()
    finally:
        file.close()
    filesystem.rename(temporary, path)
    filesystem.sync_directory(parent_directory(path))


def parent_directory(path: str) -> str:
    """Returns the directory that holds a name; ``.`` for a bare name."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def file_name(path: str) -> str:
    """Returns the last component of a path."""
    return path.rpartition("/")[2]
