"""The memory file system and the real one agree: same operations, same loss, same files."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laststand.emulator.core.disk import Keep
from laststand.emulator.core.errors import StorageError
from laststand.emulator.storage.filesystem import FileSystem, OpenMode, read_file
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.power_loss import lose_power
from tests.memory_filesystem import MemoryFileSystem

FILES = ("a", "b", "d/a", "d/b")
DIRECTORIES = ("", "d", "e")

file_names = st.sampled_from(FILES)
operations = st.one_of(
    st.tuples(st.just("append"), file_names, st.integers(1, 9000)),
    st.tuples(st.just("truncate"), file_names, st.integers(0, 9000)),
    st.tuples(st.just("sync"), file_names, st.just(0)),
    st.tuples(st.just("unlink"), file_names, st.just(0)),
    st.tuples(st.just("rename"), file_names, st.integers(0, len(FILES) - 1)),
    st.tuples(st.just("sync_directory"), st.sampled_from(DIRECTORIES), st.just(0)),
    st.tuples(st.just("make_directory"), st.sampled_from(DIRECTORIES[1:]), st.just(0)),
    st.tuples(st.just("remove_directory"), st.sampled_from(DIRECTORIES[1:]), st.just(0)),
    st.tuples(st.just("rename_directory"), st.sampled_from(DIRECTORIES[1:]), st.just(0)),
    st.tuples(st.just("restart"), st.just(""), st.just(0)),
    st.tuples(st.just("lose_power"), st.sampled_from([keep.value for keep in Keep]), st.integers(0, 1000)),
)


class _Real:
    def __init__(self, folder: Path) -> None:
        self.root = str(folder / "data")
        self._ledger = str(folder / "ledger")
        (folder / "data").mkdir()
        self.filesystem = OsFileSystem(ledger_folder=self._ledger)

    def restart(self) -> None:
        self.filesystem.close()
        self.filesystem = OsFileSystem(ledger_folder=self._ledger)

    def lose_power(self, keep: Keep, seed: int) -> None:
        self.filesystem.close()
        lose_power([self.root], ledger_folder=self._ledger, keep=keep, seed=seed)
        self.filesystem = OsFileSystem(ledger_folder=self._ledger)


class _Memory:
    root = "/data"

    def __init__(self) -> None:
        self.filesystem = MemoryFileSystem()
        self.filesystem.make_directory(self.root)
        self.filesystem.sync_directory("/")

    def restart(self) -> None:
        self.filesystem.restart()

    def lose_power(self, keep: Keep, seed: int) -> None:
        self.filesystem.lose_power(keep=keep, seed=seed)
        self.filesystem.restart()


def _apply(disk: _Real | _Memory, operation: tuple[str, str, int], count: int) -> str:
    """Plays one operation; returns whether it was possible."""
    filesystem: FileSystem = disk.filesystem
    kind, name, number = operation
    path = f"{disk.root}/{name}".rstrip("/")
    try:
        match kind:
            case "append":
                file = filesystem.open(path, OpenMode.APPEND)
                file.append((bytes([count % 255 + 1]) * number, b"|"))
                file.close()
            case "truncate" | "sync":
                if not filesystem.exists(path):
                    return "missing"
                file = filesystem.open(path, OpenMode.APPEND)
                if kind == "truncate":
                    file.truncate(number)
                else:
                    file.sync()
                file.close()
            case "unlink":
                filesystem.unlink(path)
            case "rename":
                target = f"{disk.root}/{FILES[number]}"
                # Only within a directory: nothing here moves a file between two.
                if path == target or path.rpartition("/")[0] != target.rpartition("/")[0]:
                    return "skipped"
                filesystem.rename(path, target)
            case "rename_directory":
                if filesystem.exists(path + "-delete"):
                    return "skipped"
                filesystem.rename(path, path + "-delete")
            case "sync_directory":
                filesystem.sync_directory(path)
            case "make_directory":
                filesystem.make_directory(path)
            case "remove_directory":
                filesystem.remove_directory(path)
            case "restart":
                disk.restart()
            case "lose_power":
                disk.lose_power(Keep(name), number)
    except StorageError:
        return "failed"
    return "done"


def _tree(filesystem: FileSystem, path: str) -> dict[str, object]:
    return {
        name: _tree(filesystem, f"{path}/{name}")
        if filesystem.is_directory(f"{path}/{name}")
        else read_file(filesystem, f"{path}/{name}")
        for name in filesystem.list_directory(path)
    }


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(operations, max_size=30), st.sampled_from(Keep), st.integers(0, 1000))
def test_both_file_systems_agree(script: list[tuple[str, str, int]], keep: Keep, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        real, memory = _Real(Path(folder)), _Memory()
        for count, operation in enumerate([*script, ("lose_power", keep.value, seed)]):
            assert _apply(real, operation, count) == _apply(memory, operation, count), operation
            assert _tree(real.filesystem, real.root) == _tree(memory.filesystem, memory.root), operation
        real.filesystem.close()
