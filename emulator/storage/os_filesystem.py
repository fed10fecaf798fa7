"""The real disk, with a sync ledger beside it.

Every operation is the usual system call, with additional bookkeeping for those that change the outcome of a power loss:
fsync (a ledger line after it), and unlink, replacement and truncation of something durable (a hard link or the cut
bytes, before it). Appends go straight to ``writev``.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Final

from laststand.emulator.core.errors import StorageError
from laststand.emulator.storage.disk_faults import FaultyDisk
from laststand.emulator.storage.filesystem import Buffer, DirectoryLock, OpenMode, file_name, parent_directory
from laststand.emulator.storage.sync_ledger import SyncLedger

_MAX_BUFFERS: Final = 1024
"""Linux' IOV_MAX: buffers in one ``writev``."""


@contextlib.contextmanager
def _mapped(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(path=path, reason=error.strerror or str(error)) from error


class _Names:
    """The present places of opened files: (inode of the directory, name); an unlinked file has none."""

    def __init__(self) -> None:
        self.of_inode: dict[int, tuple[int, str]] = {}


class OsFile:
    """An open file; see ``filesystem.File``."""

    def __init__(
        self,
        path: str,
        descriptor: int,
        *,
        is_new: bool,
        ledger: SyncLedger,
        names: _Names,
        names_lock: threading.RLock,
        disk: FaultyDisk,
    ) -> None:
        status = os.fstat(descriptor)
        self._path = path
        self._descriptor = descriptor
        self._inode = status.st_ino
        self._size = status.st_size
        self._is_dirty = not is_new  # what was written or cut before it was opened may not be synced
        self._ledger = ledger
        self._names = names
        self._names_lock = names_lock
        self._disk = disk
        self._sync_lock = threading.Lock()  # keeps a truncation out of the time between a length and its fsync

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return self._size

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Writes at the end; see ``filesystem.File``."""
        total = sum(map(len, buffers))
        try:
            if self._disk.is_failing:
                self._disk.suffer_write(total)
            written = os.writev(self._descriptor, buffers) if len(buffers) <= _MAX_BUFFERS else 0
            if written != total:
                self._append_rest(b"".join(buffers)[written:])
        except OSError as error:
            raise StorageError(path=self._path, reason=error.strerror or str(error)) from error
        # In this order: a sync in another thread that records the new size must not find the file clean.
        self._is_dirty = True
        self._size += total

    def _append_rest(self, rest: bytes) -> None:
        view = memoryview(rest)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def read(self, *, position: int, length: int) -> bytes:
        """Reads bytes; see ``filesystem.File``."""
        with _mapped(self._path):
            if self._disk.is_failing:
                self._disk.suffer_read()
            content = os.pread(self._descriptor, length, position)
            if len(content) == length or position + len(content) >= self._size:
                return content
            parts = [content]  # Linux reads at most 2 GiB at once
            while content:
                position += len(content)
                length -= len(content)
                content = os.pread(self._descriptor, length, position)
                parts.append(content)
            return b"".join(parts)

    def truncate(self, size: int) -> None:
        """Truncates the file; see ``filesystem.File``."""
        if size >= self._size:
            return
        with _mapped(self._path), self._sync_lock, self._names_lock:
            covered = self._ledger.coverage.get(self._inode)
            if covered is not None and size < covered.intact_length:
                cut = os.pread(self._descriptor, covered.intact_length - size, size)
                self._ledger.record_truncation(inode=self._inode, size=size, read_cut=cut)
            os.ftruncate(self._descriptor, size)
            self._size = size
            self._is_dirty = True

    def sync(self) -> None:
        """Makes the bytes durable; see ``filesystem.File``."""
        with _mapped(self._path), self._sync_lock:
            if self._descriptor < 0:
                return
            length = self._size
            is_dirty, self._is_dirty = self._is_dirty, False
            with self._names_lock:
                seen = self._ledger.length
                place = self._names.of_inode.get(self._inode)
            try:
                if place is None or self._ledger.is_name_durable(inode=self._inode, directory=place[0], name=place[1]):
                    if is_dirty:
                        os.fdatasync(self._descriptor)
                else:
                    os.fsync(self._descriptor)
                is_durable = self._disk.suffer_sync()
            except OSError:
                self._is_dirty = True
                raise
            if not is_durable:
                return
            with self._names_lock:
                directory, name = (0, None) if place is None else place
                self._ledger.record_sync(inode=self._inode, length=length, directory=directory, name=name, seen=seen)

    def close(self) -> None:
        """Closes the file; see ``filesystem.File``."""
        with self._sync_lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1


class OsLock:
    """An flock on a file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Releases the lock."""
        os.close(self._descriptor)


class OsFileSystem:
    """The machine's file system; see ``filesystem.FileSystem``.

    Thread-safe for different files; one file's appends belong to one thread.

    Attributes:
        disk: makes syncs suffer from the faults that are armed.
    """

    def __init__(self, *, ledger_folder: str) -> None:
        """Opens the ledger.

        Args:
            ledger_folder: outside all data directories, on the same disk; one per node, used by one process at a time.

        Raises:
            StorageError: the ledger cannot be used.
        """
        self._ledger = SyncLedger(ledger_folder)
        self._names = _Names()
        self._lock = threading.RLock()
        self.disk = FaultyDisk(ledger_folder)

    def close(self) -> None:
        """Closes the ledger."""
        self._ledger.close()

    def open(self, path: str, mode: OpenMode) -> OsFile:
        """Opens a file; see ``filesystem.FileSystem``."""
        with _mapped(path), self._lock:
            descriptor, is_new = (
                (os.open(path, os.O_RDONLY), False) if mode is OpenMode.READ else self._open_or_create(path)
            )
            file = OsFile(
                path,
                descriptor,
                is_new=is_new,
                ledger=self._ledger,
                names=self._names,
                names_lock=self._lock,
                disk=self.disk,
            )
            place = (os.stat(parent_directory(path)).st_ino, file_name(path))
            self._names.of_inode[os.fstat(descriptor).st_ino] = place
            return file

    def _open_or_create(self, path: str) -> tuple[int, bool]:
        """Returns a descriptor, and whether the file is new."""
        flags = os.O_RDWR | os.O_APPEND
        try:
            return os.open(path, flags), False
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            self._record_creation(path, os.fstat(descriptor).st_ino)
            return descriptor, True

    def exists(self, path: str) -> bool:
        """Returns whether a file or directory has that name."""
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        """Returns whether that name is a directory's."""
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        """Lists; see ``filesystem.FileSystem``."""
        with _mapped(path):
            return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        """Creates a directory; see ``filesystem.FileSystem``."""
        with _mapped(path), self._lock:
            os.mkdir(path)
            self._record_creation(path, os.stat(path).st_ino)

    def remove_directory(self, path: str) -> None:
        """Removes a directory; see ``filesystem.FileSystem``."""
        with _mapped(path), self._lock:
            inode = os.stat(path).st_ino
            if not self._ledger.has_durable_name(inode):
                os.rmdir(path)
            elif os.listdir(path):
                raise StorageError(path=path, reason="directory not empty")
            else:
                os.rename(path, self._ledger.kept_path(inode))
            self._ledger.record_no_name(inode)

    def rename(self, source: str, target: str) -> None:
        """Renames; see ``filesystem.FileSystem``."""
        with _mapped(source), self._lock:
            inode = os.stat(source).st_ino
            self._retain(target)
            os.rename(source, target)
            directory, name = os.stat(parent_directory(target)).st_ino, file_name(target)
            self._ledger.record_name(inode, directory=directory, name=name)
            if inode in self._names.of_inode:
                self._names.of_inode[inode] = (directory, name)

    def unlink(self, path: str) -> None:
        """Unlinks; see ``filesystem.FileSystem``."""
        with _mapped(path), self._lock:
            inode = os.stat(path).st_ino
            self._retain(path)
            os.unlink(path)
            self._ledger.record_no_name(inode)

    def sync_directory(self, path: str) -> None:
        """Makes names durable; see ``filesystem.FileSystem``."""
        with _mapped(path), self._lock:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                directory = os.fstat(descriptor).st_ino
                seen = self._ledger.length
                with os.scandir(path) as entries:
                    listing = {entry.name: entry.inode() for entry in entries}
                os.fsync(descriptor)
                is_durable = self.disk.suffer_sync()
            finally:
                os.close(descriptor)
            if is_durable:
                self._ledger.record_directory_sync(directory=directory, listing=listing, seen=seen)

    def lock(self, path: str) -> DirectoryLock:
        """Locks; see ``filesystem.FileSystem``."""
        with _mapped(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(descriptor)
                raise StorageError(path=path, reason="locked by another process") from error
            return OsLock(descriptor)

    def _record_creation(self, path: str, inode: int) -> None:
        directory = os.stat(parent_directory(path)).st_ino
        self._ledger.record_creation(inode, directory=directory, name=file_name(path))

    def _retain(self, path: str) -> None:
        """Holds on to the file that is about to lose the name ``path``, if a power loss could bring it back."""
        try:
            inode = os.lstat(path).st_ino
        except FileNotFoundError:
            return
        self._names.of_inode.pop(inode, None)
        if self._ledger.has_durable_name(inode):
            with contextlib.suppress(FileExistsError):  # an earlier process was killed between the link and the unlink
                os.link(path, self._ledger.kept_path(inode))
        elif inode in self._ledger.coverage:
            self._ledger.record_forget(inode)
