"""A disk in memory, which can be crashed at any operation and can lose power.

It keeps every promise of ``filesystem`` and no more: it has the present and the durable content of each file, and the
present and the durable names in each directory. Operations that change something are numbered from 1; ``crash_at``
names one of them and its outcome, after which the process is dead: every further call raises ``SimulatedCrashError``.
``restart`` gives the next process the same disk with its page cache, ``lose_power`` takes unsynced data, by the same
plan as on real files.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from random import Random

import msgspec

from laststand.emulator.core.disk import ExactLoss, Keep
from laststand.emulator.core.errors import StorageError
from laststand.emulator.storage.batch_scan import BatchValidation, scan_batches
from laststand.emulator.storage.filesystem import Buffer, DirectoryLock, OpenMode, file_name, parent_directory
from laststand.emulator.storage.power_loss_plan import (
    ContentSource,
    FileView,
    PowerLossPlan,
    VolumeView,
    plan_power_loss,
)


class FaultOutcome(Enum):
    """The outcome of the operation at which a fault strikes."""

    DONE = "done"
    """Done, but the process dies before it learns so."""

    NOT_DONE = "not_done"
    """The process dies before it is done."""

    FAILED = "failed"
    """Not done; the process lives and gets a ``StorageError``."""


class CrashPoint(msgspec.Struct, frozen=True, kw_only=True):
    """An operation, by its number from 1 on, and its outcome."""

    operation: int
    outcome: FaultOutcome


class SimulatedCrashError(BaseException):
    """The process is dead. Derives from ``BaseException`` so that no handler of the code under test revives it."""


class _FileNode:
    def __init__(self, number: int) -> None:
        self.number = number
        self.content = bytearray()
        self.durable = b""
        self.intact_length = 0
        self.name: tuple[_DirectoryNode, str] | None = None

    def view(self) -> FileView:
        return FileView(length=len(self.content), intact_length=self.intact_length, durable_length=len(self.durable))


class _DirectoryNode:
    def __init__(self, number: int) -> None:
        self.number = number
        self.names: dict[str, _FileNode | _DirectoryNode] = {}
        self.durable: dict[str, _FileNode | _DirectoryNode] = {}


class MemoryFile:
    """An open file; see ``filesystem.File``."""

    def __init__(self, filesystem: "MemoryFileSystem", path: str, node: _FileNode, *, process: int) -> None:
        self._filesystem = filesystem
        self._path = path
        self._node = node
        self._process = process
        self._is_closed = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return len(self._node.content)

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Writes at the end; see ``filesystem.File``."""
        content = b"".join(buffers)

        def operation() -> None:
            self._node.content += content

        self._filesystem.perform(f"append {self._path}", operation, process=self._process)

    def read(self, *, position: int, length: int) -> bytes:
        """Reads bytes; see ``filesystem.File``."""
        return bytes(self._node.content[position : position + length])

    def truncate(self, size: int) -> None:
        """Truncates the file; see ``filesystem.File``."""
        if size >= len(self._node.content):
            return

        def operation() -> None:
            del self._node.content[size:]
            self._node.intact_length = min(self._node.intact_length, size)

        self._filesystem.perform(f"truncate {self._path}", operation, process=self._process)

    def sync(self) -> None:
        """Makes the bytes durable; see ``filesystem.File``."""
        if self._is_closed:
            return

        def operation() -> None:
            node = self._node
            node.durable = bytes(node.content)
            node.intact_length = len(node.durable)
            if node.name is not None:
                directory, name = node.name
                _forget_durable_names(self._filesystem.root, node)
                directory.durable[name] = node

        self._filesystem.perform(f"sync {self._path}", operation, process=self._process)

    def close(self) -> None:
        """Closes the file; see ``filesystem.File``."""
        self._is_closed = True


class MemoryLock:
    """A lock without contenders: one process at a time uses a memory file system."""

    def release(self) -> None:
        """Releases the lock."""


class MemoryFileSystem:
    """A file system in memory; see ``filesystem.FileSystem``. Paths are absolute; ``/`` exists."""

    def __init__(self) -> None:
        self._next_number = 1
        self.root = _DirectoryNode(0)
        self.operations: list[str] = []
        """Operations since the last ``restart`` that changed something, in words; the n-th is operation n."""
        self._crash_at: CrashPoint | None = None
        self._process = 0
        self._is_dead = False

    # --- Faults ---------------------------------------------------------------------------------------------------

    def restart(self, *, crash_at: CrashPoint | None = None) -> None:
        """Lets the next process use the disk; files opened by the last one are dead. Operations count from 1 again."""
        self._process += 1
        self._is_dead = False
        self.operations = []
        self._crash_at = crash_at

    def lose_power(self, *, keep: Keep, seed: int, exact: ExactLoss | None = None) -> PowerLossPlan:
        """Takes the unsynced content; the process is dead until ``restart``.

        Args:
            keep: shape of the loss.
            seed: of all random choices.
            exact: the loss, if it is not random.

        Returns:
            The outcome of the random choices.
        """
        self._is_dead = True
        nodes: dict[int, _FileNode | _DirectoryNode] = {}
        pending: list[_FileNode | _DirectoryNode] = [self.root]
        while pending:
            node = pending.pop()
            if node.number in nodes:
                continue
            nodes[node.number] = node
            if isinstance(node, _DirectoryNode):
                pending += [*node.names.values(), *node.durable.values()]
        directories = [node for node in nodes.values() if isinstance(node, _DirectoryNode)]
        files = {node.number: node for node in nodes.values() if isinstance(node, _FileNode)}

        def batch_starts(number: int) -> Sequence[int]:
            scan = scan_batches(
                MemoryFile(self, "", files[number], process=self._process), check=BatchValidation.HEADERS
            )
            return scan.positions

        plan = plan_power_loss(
            VolumeView(
                roots={"": self.root.number},
                present={node.number: _numbers(node.names) for node in directories},
                durable={node.number: _numbers(node.durable) for node in directories},
                files={number: node.view() for number, node in files.items()},
            ),
            keep=keep,
            random=Random(seed),
            batch_starts=batch_starts,
            exact=exact,
        )
        for number, content in plan.contents.items():
            file = files[number]
            source = file.durable if content.source is ContentSource.DURABLE else file.content
            file.content = bytearray(source[: content.length])
            for start, end in content.zeroed:
                file.content[start:end] = bytes(end - start)
            file.durable = bytes(file.content)
            file.intact_length = len(file.durable)
        for number, listing in plan.names.items():
            directory = nodes[number]
            assert isinstance(directory, _DirectoryNode)
            directory.names = {name: nodes[child] for name, child in listing.items()}
            directory.durable = dict(directory.names)
            for name, child in directory.names.items():
                if isinstance(child, _FileNode):
                    child.name = (directory, name)
        return plan

    def perform(self, description: str, operation: Callable[[], None], *, process: int) -> None:
        """Counts an operation and performs it, unless the crash happens at it or has happened.

        Raises:
            SimulatedCrashError: the process died, now or earlier.
            StorageError: the operation is to fail.
        """
        if self._is_dead or process != self._process:
            raise SimulatedCrashError(description)
        self.operations.append(description)
        if self._crash_at is None or len(self.operations) != self._crash_at.operation:
            operation()
            return
        match self._crash_at.outcome:
            case FaultOutcome.FAILED:
                raise StorageError(path=description, reason="input/output error")
            case FaultOutcome.DONE:
                operation()
            case FaultOutcome.NOT_DONE:
                pass
        self._is_dead = True
        raise SimulatedCrashError(description)

    # --- FileSystem -----------------------------------------------------------------------------------------------

    def open(self, path: str, mode: OpenMode) -> MemoryFile:
        """Opens a file; see ``filesystem.FileSystem``."""
        node = self._find(path)
        if isinstance(node, _DirectoryNode):
            raise StorageError(path=path, reason="is a directory")
        if node is None:
            if mode is OpenMode.READ:
                raise StorageError(path=path, reason="no such file")
            node = self._new_file(path)
        return MemoryFile(self, path, node, process=self._process)

    def _new_file(self, path: str) -> _FileNode:
        directory = self._directory(parent_directory(path))
        node = _FileNode(self._next_number)
        self._next_number += 1

        def operation() -> None:
            directory.names[file_name(path)] = node
            node.name = (directory, file_name(path))

        self.perform(f"create {path}", operation, process=self._process)
        return node

    def exists(self, path: str) -> bool:
        """Returns whether a file or directory has that name."""
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        """Returns whether that name is a directory's."""
        return isinstance(self._find(path), _DirectoryNode)

    def list_directory(self, path: str) -> list[str]:
        """Lists a directory; see ``filesystem.FileSystem``."""
        return sorted(self._directory(path).names)

    def make_directory(self, path: str) -> None:
        """Creates a directory; see ``filesystem.FileSystem``."""
        if self.exists(path):
            raise StorageError(path=path, reason="exists")
        directory = self._directory(parent_directory(path))
        node = _DirectoryNode(self._next_number)
        self._next_number += 1

        def operation() -> None:
            directory.names[file_name(path)] = node

        self.perform(f"mkdir {path}", operation, process=self._process)

    def remove_directory(self, path: str) -> None:
        """Removes a directory; see ``filesystem.FileSystem``."""
        if self._directory(path).names:
            raise StorageError(path=path, reason="directory not empty")
        directory = self._directory(parent_directory(path))

        def operation() -> None:
            del directory.names[file_name(path)]

        self.perform(f"rmdir {path}", operation, process=self._process)

    def rename(self, source: str, target: str) -> None:
        """Renames; see ``filesystem.FileSystem``."""
        node = self._find(source)
        if node is None:
            raise StorageError(path=source, reason="no such file or directory")
        old, new = self._directory(parent_directory(source)), self._directory(parent_directory(target))

        def operation() -> None:
            replaced = new.names.get(file_name(target))
            if isinstance(replaced, _FileNode):
                replaced.name = None
            del old.names[file_name(source)]
            new.names[file_name(target)] = node
            if isinstance(node, _FileNode):
                node.name = (new, file_name(target))

        self.perform(f"rename {source} {target}", operation, process=self._process)

    def unlink(self, path: str) -> None:
        """Unlinks; see ``filesystem.FileSystem``."""
        node = self._find(path)
        if not isinstance(node, _FileNode):
            raise StorageError(path=path, reason="no such file")
        directory = self._directory(parent_directory(path))

        def operation() -> None:
            del directory.names[file_name(path)]
            node.name = None

        self.perform(f"unlink {path}", operation, process=self._process)

    def sync_directory(self, path: str) -> None:
        """Makes names durable; see ``filesystem.FileSystem``."""
        directory = self._directory(path)

        def operation() -> None:
            for node in directory.names.values():
                _forget_durable_names(self.root, node)
            directory.durable = dict(directory.names)

        self.perform(f"sync directory {path}", operation, process=self._process)

    def lock(self, path: str) -> DirectoryLock:
        """Locks; see ``filesystem.FileSystem``."""
        self.open(path, OpenMode.APPEND)
        return MemoryLock()

    def _find(self, path: str) -> _FileNode | _DirectoryNode | None:
        if self._is_dead:
            raise SimulatedCrashError(path)
        node: _FileNode | _DirectoryNode | None = self.root
        for name in path.split("/"):
            if name:
                node = node.names.get(name) if isinstance(node, _DirectoryNode) else None
        return node

    def _directory(self, path: str) -> _DirectoryNode:
        node = self._find(path)
        if not isinstance(node, _DirectoryNode):
            raise StorageError(path=path, reason="no such directory")
        return node


def _numbers(names: dict[str, _FileNode | _DirectoryNode]) -> dict[str, int]:
    return {name: node.number for name, node in names.items()}


def _forget_durable_names(root: _DirectoryNode, node: _FileNode | _DirectoryNode) -> None:
    """Removes a file's older durable names: a file has one at most."""
    pending = [root]
    seen: set[int] = set()
    while pending:
        directory = pending.pop()
        if directory.number in seen:
            continue
        seen.add(directory.number)
        for name in [name for name, known in directory.durable.items() if known is node]:
            del directory.durable[name]
        pending += [
            child
            for child in (*directory.names.values(), *directory.durable.values())
            if isinstance(child, _DirectoryNode)
        ]
