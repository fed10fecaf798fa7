"""Each shape takes effect, what was synced survives, names vanish and come back: on real files and in memory alike."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from laststand.emulator.core.disk import Keep
from laststand.emulator.core.types import Offset
from laststand.emulator.storage.filesystem import FileSystem, OpenMode, read_file, write_atomically
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.power_loss import lose_power, scan_log_end
from laststand.emulator.storage.power_loss_plan import PAGE_BYTES, ByteLoss, NameFate, NameLoss
from tests.memory_filesystem import MemoryFileSystem
from tests.unit.storage.log_fixtures import make_batch

SEEDS = range(12)
LOSSY = (Keep.PREFIX, Keep.TORN, Keep.PAGES)


class Disk:
    """A file system with one durable directory, that can lose power."""

    def __init__(self, filesystem: FileSystem, directory: str, lose: Callable[[Keep, int], None]) -> None:
        self.filesystem = filesystem
        self.directory = directory
        self.lose = lose
        self.lost_bytes: tuple[ByteLoss, ...] = ()
        self.lost_names: tuple[NameLoss, ...] = ()

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def append(self, name: str, content: bytes, *, synced: bytes = b"") -> None:
        file = self.filesystem.open(self.path(name), OpenMode.APPEND)
        if synced:
            file.append((synced,))
            file.sync()
        if content:
            file.append((content,))
        file.close()

    def content(self, name: str) -> bytes | None:
        path = self.path(name)
        return read_file(self.filesystem, path) if self.filesystem.exists(path) else None


class Disks:
    """Makes disks of one sort."""

    def __init__(self, sort: str, folder: Path) -> None:
        self.sort = sort
        self.folder = folder
        self.count = 0

    def make(self) -> Disk:
        self.count += 1
        return self._make_memory() if self.sort == "memory" else self._make_os()

    def _make_memory(self) -> Disk:
        filesystem = MemoryFileSystem()
        filesystem.make_directory("/data")
        filesystem.sync_directory("/")

        def lose(keep: Keep, seed: int) -> None:
            plan = filesystem.lose_power(keep=keep, seed=seed)
            filesystem.restart()
            disk.lost_bytes, disk.lost_names = plan.lost_bytes, plan.lost_names

        disk = Disk(filesystem, "/data", lose)
        return disk

    def _make_os(self) -> Disk:
        folder = self.folder / str(self.count)
        data, ledger = folder / "data", str(folder / "ledger")
        data.mkdir(parents=True)

        def lose(keep: Keep, seed: int) -> None:
            filesystem = disk.filesystem
            assert isinstance(filesystem, OsFileSystem)
            filesystem.close()
            report = lose_power([str(data)], ledger_folder=ledger, keep=keep, seed=seed)
            disk.filesystem = OsFileSystem(ledger_folder=ledger)
            disk.lost_bytes, disk.lost_names = report.lost_bytes, report.lost_names

        disk = Disk(OsFileSystem(ledger_folder=ledger), str(data), lose)
        return disk


@pytest.fixture(params=["memory", "os"])
def disks(request: pytest.FixtureRequest, tmp_path: Path) -> Disks:
    return Disks(str(request.param), tmp_path)


def test_none_leaves_exactly_what_was_synced(disks: Disks) -> None:
    disk = disks.make()
    disk.append("log", b"y" * 9000, synced=b"x" * 5000)
    disk.lose(Keep.NONE, 1)
    assert disk.content("log") == b"x" * 5000
    (loss,) = disk.lost_bytes
    assert (loss.length_before, loss.length_after, loss.synced_length) == (14000, 5000, 5000)


@pytest.mark.parametrize("keep", LOSSY)
def test_each_shape_bites_and_spares_what_was_synced(disks: Disks, keep: Keep) -> None:
    for seed in SEEDS:
        disk = disks.make()
        synced, tail = os.urandom(5000), bytes(range(1, 256)) * 200
        disk.append("log", tail, synced=synced)
        disk.lose(keep, seed)
        after = disk.content("log")
        assert after is not None
        assert after[:5000] == synced
        assert after != synced + tail
        assert len(after) <= len(synced + tail)
        assert [loss.path.endswith("/log") for loss in disk.lost_bytes] == [True]


def test_prefix_keeps_a_part_from_the_front(disks: Disks) -> None:
    lengths = set()
    for seed in SEEDS:
        disk = disks.make()
        tail = os.urandom(3000)
        disk.append("log", tail, synced=b"x")
        disk.lose(Keep.PREFIX, seed)
        after = disk.content("log")
        assert after is not None
        assert (b"x" + tail).startswith(after)
        lengths.add(len(after))
    assert len(lengths) > 3


def test_torn_cuts_inside_the_last_batch_only(disks: Disks) -> None:
    first, second = make_batch(0, 3)[1], make_batch(3, 3)[1]
    for seed in SEEDS:
        disk = disks.make()
        disk.append("00000000000000000000.log", first + second, synced=make_batch(0)[1])
        disk.lose(Keep.TORN, seed)
        after = disk.content("00000000000000000000.log")
        assert after is not None
        kept = len(after) - len(make_batch(0)[1])
        assert len(first) < kept < len(first + second)


def test_pages_leave_zeros_between_whole_pages(disks: Disks) -> None:
    has_hole = False
    for seed in SEEDS:
        disk = disks.make()
        disk.append("log", b"y" * 12 * PAGE_BYTES, synced=b"x" * 100)
        disk.lose(Keep.PAGES, seed)
        after = disk.content("log")
        assert after is not None
        for start in range(100, len(after), PAGE_BYTES):
            page_end = (start // PAGE_BYTES + 1) * PAGE_BYTES
            assert len(set(after[start:page_end])) == 1
        has_hole = has_hole or 0 in after
    assert has_hole


def test_new_name_vanishes_unless_something_synced_it(disks: Disks) -> None:
    disk = disks.make()
    disk.append("never", b"content")
    disk.append("file", b"", synced=b"content")
    disk.append("directory", b"content")
    disk.filesystem.sync_directory(disk.directory)
    disk.append("later", b"content")
    disk.lose(Keep.NONE, 1)
    assert disk.content("never") == b""  # its name was covered by the directory's sync, its bytes by nothing
    assert disk.content("file") == b"content"
    assert disk.content("directory") == b""
    assert disk.content("later") is None
    assert NameLoss(path=disk.path("later"), fate=NameFate.VANISHED) in disk.lost_names


def test_unlinked_file_comes_back_until_the_directory_is_synced(disks: Disks) -> None:
    disk = disks.make()
    for name in ("undone", "done"):
        disk.append(name, b"", synced=b"content")
    disk.filesystem.unlink(disk.path("done"))
    disk.filesystem.sync_directory(disk.directory)
    disk.filesystem.unlink(disk.path("undone"))
    disk.lose(Keep.NONE, 1)
    assert disk.content("undone") == b"content"
    assert disk.content("done") is None


@pytest.mark.parametrize("keep", LOSSY)
def test_names_may_go_either_way_where_chance_decides(disks: Disks, keep: Keep) -> None:
    seen = set()
    for seed in SEEDS:
        disk = disks.make()
        disk.append("old", b"", synced=b"content")
        disk.filesystem.unlink(disk.path("old"))
        disk.append("new", b"")
        disk.lose(keep, seed)
        seen.add((disk.content("old") is not None, disk.content("new") is not None))
    assert seen == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize("keep", Keep)
def test_rename_over_a_file_leaves_the_old_content_or_the_new(disks: Disks, keep: Keep) -> None:
    seen = set()
    for seed in SEEDS:
        disk = disks.make()
        disk.append("target", b"", synced=b"old")
        disk.append("source", b"", synced=b"new")
        disk.filesystem.rename(disk.path("source"), disk.path("target"))
        disk.lose(keep, seed)
        state = (disk.content("source"), disk.content("target"))
        assert state in {(b"new", b"old"), (None, b"new")}
        seen.add(state)
    assert len(seen) == (1 if keep is Keep.NONE else 2)


def test_sync_of_a_renamed_file_makes_the_rename_durable(disks: Disks) -> None:
    disk = disks.make()
    disk.append("source", b"", synced=b"content")
    file = disk.filesystem.open(disk.path("source"), OpenMode.APPEND)
    disk.filesystem.rename(disk.path("source"), disk.path("target"))
    file.sync()
    file.close()
    disk.lose(Keep.NONE, 1)
    assert disk.content("source") is None
    assert disk.content("target") == b"content"


@pytest.mark.parametrize("keep", Keep)
def test_atomic_write_survives_whole(disks: Disks, keep: Keep) -> None:
    for seed in SEEDS:
        disk = disks.make()
        for version in (b"one", b"two"):
            write_atomically(disk.filesystem, disk.path("checkpoint"), version)
        disk.lose(keep, seed)
        assert disk.content("checkpoint") == b"two"


def test_truncation_is_undone_until_the_file_is_synced(disks: Disks) -> None:
    disk = disks.make()
    file = disk.filesystem.open(disk.path("log"), OpenMode.APPEND)
    file.append((b"0123456789",))
    file.sync()
    file.truncate(8)
    file.append((b"abc",))
    file.truncate(5)
    file.append((b"de",))
    file.close()
    disk.lose(Keep.NONE, 1)
    assert disk.content("log") == b"0123456789"
    assert disk.lost_bytes[0].truncation_undone

    file = disk.filesystem.open(disk.path("log"), OpenMode.APPEND)
    file.truncate(5)
    file.append((b"de",))
    file.sync()
    file.append((b"f",))
    file.close()
    disk.lose(Keep.NONE, 1)
    assert disk.content("log") == b"01234de"


def test_removed_directory_comes_back_with_its_files(disks: Disks) -> None:
    disk = disks.make()
    disk.filesystem.make_directory(disk.path("orders-0"))
    disk.append("orders-0/log", b"", synced=b"content")
    disk.filesystem.sync_directory(disk.directory)
    disk.filesystem.rename(disk.path("orders-0"), disk.path("orders-0-delete"))
    disk.filesystem.unlink(disk.path("orders-0-delete/log"))
    disk.filesystem.remove_directory(disk.path("orders-0-delete"))
    disk.lose(Keep.NONE, 1)
    assert disk.content("orders-0/log") == b"content"
    assert disk.content("orders-0-delete/log") is None


def test_new_directory_takes_its_synced_files_with_it(disks: Disks) -> None:
    disk = disks.make()
    disk.filesystem.make_directory(disk.path("orders-0"))
    disk.append("orders-0/log", b"", synced=b"content")
    disk.lose(Keep.NONE, 1)
    assert not disk.filesystem.exists(disk.path("orders-0"))


@pytest.mark.parametrize("keep", Keep)
def test_data_that_is_left_by_a_power_loss_is_durable(disks: Disks, keep: Keep) -> None:
    disk = disks.make()
    disk.append("log", b"y" * 9000, synced=b"x" * 5000)
    disk.append("new", b"content")
    disk.lose(keep, 3)
    before = (disk.content("log"), disk.content("new"))
    disk.lose(Keep.NONE, 4)
    assert (disk.content("log"), disk.content("new")) == before
    assert (disk.lost_bytes, disk.lost_names) == ((), ())


@pytest.mark.parametrize("keep", Keep)
def test_the_seed_decides(disks: Disks, keep: Keep) -> None:
    def played(seed: int) -> tuple[bytes | None, ...]:
        disk = disks.make()
        for name in ("a", "b", "c"):
            disk.append(name, b"y" * 50_000, synced=b"x")
            disk.append(name + "-new", b"")
        disk.lose(keep, seed)
        return tuple(disk.content(name) for name in ("a", "b", "c", "a-new", "b-new", "c-new"))

    assert played(7) == played(7)
    if keep is not Keep.NONE:
        assert len({played(seed) for seed in SEEDS}) > 3


def test_ledger_outlives_the_process(tmp_path: Path) -> None:
    data, ledger = tmp_path / "data", str(tmp_path / "ledger")
    data.mkdir()
    filesystem = OsFileSystem(ledger_folder=ledger)
    disk = Disk(filesystem, str(data), lambda keep, seed: None)
    disk.append("log", b"lost", synced=b"first")
    disk.append("gone", b"", synced=b"back")
    filesystem.unlink(disk.path("gone"))
    cut = filesystem.open(disk.path("log"), OpenMode.APPEND)
    cut.truncate(3)
    filesystem.close()  # the page cache survives this, as it survives SIGKILL
    second = OsFileSystem(ledger_folder=ledger)
    assert read_file(second, disk.path("log")) == b"fir"
    second.close()
    lose_power([str(data)], ledger_folder=ledger, keep=Keep.NONE, seed=1)
    assert (data / "log").read_bytes() == b"first"
    assert (data / "gone").read_bytes() == b"back"


def test_reused_inode_number_inherits_nothing(tmp_path: Path) -> None:
    data, ledger = tmp_path / "data", str(tmp_path / "ledger")
    data.mkdir()
    filesystem = OsFileSystem(ledger_folder=ledger)
    disk = Disk(filesystem, str(data), lambda keep, seed: None)
    for round_number in range(50):
        name = f"file-{round_number}"
        disk.append(name, b"", synced=b"x" * 100)
        filesystem.unlink(disk.path(name))
        filesystem.sync_directory(str(data))
    disk.append("last", b"y" * 100)
    filesystem.sync_directory(str(data))
    filesystem.close()
    assert os.listdir(f"{ledger}/kept") == []
    lose_power([str(data)], ledger_folder=ledger, keep=Keep.NONE, seed=1)
    assert (data / "last").read_bytes() == b""


def test_ledger_folder_and_neighbours_are_never_touched(tmp_path: Path) -> None:
    data, ledger = tmp_path / "data", str(tmp_path / "ledger")
    data.mkdir()
    events = tmp_path / "events.jsonl"
    events.write_bytes(b"never synced")
    OsFileSystem(ledger_folder=ledger).close()
    (data / "log").write_bytes(b"never synced")
    report = lose_power([str(data)], ledger_folder=ledger, keep=Keep.NONE, seed=1)
    assert report.has_losses
    assert not (data / "log").exists()
    assert events.read_bytes() == b"never synced"
    assert (tmp_path / "ledger" / "ledger.jsonl").exists()


def test_scan_log_end_reads_up_to_the_first_bad_batch(tmp_path: Path) -> None:
    first, second, third = (make_batch(base, 2)[1] for base in (0, 2, 4))
    (tmp_path / "00000000000000000000.log").write_bytes(first + second)
    (tmp_path / "00000000000000000004.log").write_bytes(third)
    assert scan_log_end(str(tmp_path)) == Offset(6)
    (tmp_path / "00000000000000000000.log").write_bytes(first + second[:-1])
    assert scan_log_end(str(tmp_path)) == Offset(2)
    assert scan_log_end(str(tmp_path / "missing")) == Offset(0)
