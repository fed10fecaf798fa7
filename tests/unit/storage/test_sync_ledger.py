"""The ledger's folder: its files, none of which stays longer than a power loss could want it back."""

import os
from pathlib import Path

import pytest

from laststand.emulator.core.disk import DiskModel, Keep
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.power_loss import lose_power
from laststand.emulator.storage.sync_ledger import SyncLedger


def write_durably(filesystem: OsFileSystem, path: str, content: bytes) -> None:
    file = filesystem.open(path, OpenMode.APPEND)
    file.append((content,))
    file.sync()
    file.close()


def kept(tmp_path: Path) -> list[str]:
    return os.listdir(tmp_path / "ledger" / "kept")


def test_a_durably_removed_directory_leaves_nothing_behind(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    os.mkdir(data)
    filesystem = OsFileSystem(ledger_folder=str(tmp_path / "ledger"))
    filesystem.make_directory(f"{data}/orders-0")
    write_durably(filesystem, f"{data}/orders-0/log", b"records")
    filesystem.sync_directory(data)
    filesystem.unlink(f"{data}/orders-0/log")
    filesystem.remove_directory(f"{data}/orders-0")
    assert len(kept(tmp_path)) == 2, "a power loss could bring both back"
    filesystem.sync_directory(data)
    assert kept(tmp_path) == []
    filesystem.close()
    ledger = SyncLedger(str(tmp_path / "ledger"))
    assert ledger.coverage == {}
    assert [listing for listing in ledger.names.values() if listing] == []
    ledger.close()


def test_a_replaced_file_is_kept_until_the_directory_is_synced(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    os.mkdir(data)
    filesystem = OsFileSystem(ledger_folder=str(tmp_path / "ledger"))
    write_durably(filesystem, f"{data}/checkpoint", b"old")
    write_durably(filesystem, f"{data}/checkpoint.tmp", b"new")
    filesystem.rename(f"{data}/checkpoint.tmp", f"{data}/checkpoint")
    (name,) = kept(tmp_path)
    assert (tmp_path / "ledger" / "kept" / name).read_bytes() == b"old"
    filesystem.sync_directory(data)
    assert kept(tmp_path) == []
    filesystem.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take something of another user's node")
def test_a_power_loss_keeps_the_owner_of_the_sync_ledger(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    os.mkdir(data)
    filesystem = OsFileSystem(ledger_folder=str(tmp_path / "ledger"))
    write_durably(filesystem, f"{data}/log", b"records")
    filesystem.close()
    os.chown(tmp_path / "ledger", 10001, 10002)
    lose_power([data], ledger_folder=str(tmp_path / "ledger"), keep=Keep.NONE, seed=1)
    ledger = (tmp_path / "ledger" / "ledger.jsonl").stat()
    assert (ledger.st_uid, ledger.st_gid) == (10001, 10002)


ORDERED = [DiskModel.EXT4, DiskModel.XFS]


class Changed:
    """A directory in which a file was cut, one moved and one removed, and nothing synced since."""

    def __init__(self, folder: Path) -> None:
        self.data, self._ledger = folder / "data", str(folder / "ledger")
        self.data.mkdir()
        self.filesystem = OsFileSystem(ledger_folder=self._ledger)
        for name in ("cut", "moved", "removed"):
            write_durably(self.filesystem, self.path(name), name.encode())
        self.filesystem.sync_directory(str(self.data))
        cut = self.filesystem.open(self.path("cut"), OpenMode.APPEND)
        cut.truncate(1)
        cut.close()
        self.filesystem.rename(self.path("moved"), self.path("elsewhere"))
        self.filesystem.unlink(self.path("removed"))

    def path(self, name: str) -> str:
        return f"{self.data}/{name}"

    def left_by(self, disk: DiskModel, keep: Keep = Keep.NONE, *, seed: int = 1) -> dict[str, bytes]:
        """Returns the files that a power loss leaves."""
        self.filesystem.close()
        lose_power([str(self.data)], ledger_folder=self._ledger, keep=keep, seed=seed, disk=disk)
        return {path.name: path.read_bytes() for path in self.data.iterdir()}


UNDONE = {"cut": b"cut", "moved": b"moved", "removed": b"removed"}
KEPT = {"cut": b"c", "elsewhere": b"moved"}


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    return Changed(tmp_path)


@pytest.mark.parametrize("disk", ORDERED)
def test_syncing_another_file_commits_an_ordered_journal(changed: Changed, disk: DiskModel) -> None:
    write_durably(changed.filesystem, changed.path("another"), b"synced")
    assert changed.left_by(disk) == {**KEPT, "another": b"synced"}


@pytest.mark.parametrize("disk", [DiskModel.POSIX, DiskModel.BTRFS])
def test_syncing_another_file_commits_nothing_else_elsewhere(changed: Changed, disk: DiskModel) -> None:
    write_durably(changed.filesystem, changed.path("another"), b"synced")
    assert changed.left_by(disk) == {**UNDONE, "another": b"synced"}


@pytest.mark.parametrize("disk", DiskModel)
def test_what_nothing_was_synced_after_may_be_undone_on_any_disk(changed: Changed, disk: DiskModel) -> None:
    assert changed.left_by(disk) == UNDONE


def test_a_sync_commits_what_came_before_it_and_no_more(changed: Changed) -> None:
    write_durably(changed.filesystem, changed.path("another"), b"synced")
    changed.filesystem.rename(changed.path("elsewhere"), changed.path("moved"))
    assert changed.left_by(DiskModel.EXT4) == {**KEPT, "another": b"synced"}


def test_what_changed_while_a_sync_ran_is_not_committed_by_it(
    changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def rename_meanwhile(descriptor: int) -> None:
        changed.filesystem.rename(changed.path("elsewhere"), changed.path("moved"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", rename_meanwhile)
    write_durably(changed.filesystem, changed.path("another"), b"synced")
    assert changed.left_by(DiskModel.EXT4) == {**KEPT, "another": b"synced"}


def test_a_sync_without_anything_new_commits_nothing(changed: Changed) -> None:
    changed.filesystem.rename(changed.path("elsewhere"), changed.path("moved"))
    file = changed.filesystem.open(changed.path("moved"), OpenMode.APPEND)
    file.sync()
    file.close()
    assert changed.left_by(DiskModel.EXT4) == UNDONE


def test_a_process_that_was_killed_leaves_the_order_to_the_next(changed: Changed) -> None:
    write_durably(changed.filesystem, changed.path("another"), b"synced")
    changed.filesystem.close()
    ledger = changed.data.parent / "ledger" / "ledger.jsonl"
    with ledger.open("ab") as file:
        file.write(b'["name",1')  # a line that was not written to its end
    changed.filesystem = OsFileSystem(ledger_folder=str(ledger.parent))
    write_durably(changed.filesystem, changed.path("next"), b"synced")
    assert changed.left_by(DiskModel.EXT4) == {**KEPT, "another": b"synced", "next": b"synced"}


def test_one_draw_decides_all_where_the_journal_is_ordered(tmp_path: Path) -> None:
    outcomes = []
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcomes.append(Changed(folder).left_by(DiskModel.XFS, Keep.PREFIX, seed=seed))
    assert UNDONE in outcomes
    assert KEPT in outcomes
    assert all(outcome in (UNDONE, KEPT) for outcome in outcomes)
