"""Syncs that may leave the disk alone: only those of a file of which everything is durable."""

import errno
import os
from pathlib import Path

import pytest

from laststand.emulator.core.disk import DiskOperation
from laststand.emulator.core.errors import StorageError
from laststand.emulator.storage.disk_faults import arm
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.os_filesystem import OsFile, OsFileSystem


class Syncs:
    """The sizes at which files were synced to the disk; ``error`` is raised instead by the next sync."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.error: OSError | None = None

    def sync(self, descriptor: int) -> None:
        if (error := self.error) is not None:
            self.error = None
            raise error
        self.sizes.append(os.fstat(descriptor).st_size)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    observed = Syncs()
    monkeypatch.setattr(os, "fdatasync", observed.sync)
    monkeypatch.setattr(os, "fsync", observed.sync)
    return observed


@pytest.fixture
def filesystem(tmp_path: Path) -> OsFileSystem:
    return OsFileSystem(ledger_folder=str(tmp_path / "ledger"))


@pytest.fixture
def file(filesystem: OsFileSystem, tmp_path: Path, syncs: Syncs) -> OsFile:
    """A file that is durable with its name."""
    made = filesystem.open(str(tmp_path / "log"), OpenMode.APPEND)
    made.append([b"durable"])
    made.sync()
    syncs.sizes.clear()
    return made


def test_a_file_that_has_not_changed_is_not_synced_again(file: OsFile, syncs: Syncs) -> None:
    file.sync()
    assert syncs.sizes == []
    file.append([b"12345"])
    file.sync()
    file.sync()
    assert syncs.sizes == [12]


def test_a_sync_that_failed_is_done_again(file: OsFile, syncs: Syncs) -> None:
    file.append([b"12345"])
    syncs.error = OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(StorageError):
        file.sync()
    file.sync()
    assert syncs.sizes == [12]


def test_a_sync_that_an_armed_fault_failed_is_done_again(file: OsFile, syncs: Syncs, tmp_path: Path) -> None:
    file.append([b"12345"])
    arm(tmp_path / "ledger", failing=DiskOperation.SYNC)
    with pytest.raises(StorageError):
        file.sync()
    arm(tmp_path / "ledger", failing=None)
    file.sync()
    assert syncs.sizes == [12, 12]


def test_a_sync_beside_an_append_records_no_size_that_the_disk_lacks(
    file: OsFile, syncs: Syncs, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(OsFile):
        """Another thread syncs as soon as the size has grown."""

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_size":
                self.sync()

    monkeypatch.setattr(file, "__class__", Interrupted)
    file.append([b"12345"])
    assert syncs.sizes == [12]


def test_a_truncation_before_the_file_was_opened_is_synced(
    filesystem: OsFileSystem, file: OsFile, syncs: Syncs
) -> None:
    file.truncate(0)
    file.close()
    filesystem.open(file.path, OpenMode.APPEND).sync()
    assert syncs.sizes == [0]


def test_a_new_file_whose_name_is_durable_has_nothing_to_sync(
    filesystem: OsFileSystem, syncs: Syncs, tmp_path: Path
) -> None:
    file = filesystem.open(str(tmp_path / "new"), OpenMode.APPEND)
    filesystem.sync_directory(str(tmp_path))
    syncs.sizes.clear()
    file.sync()
    assert syncs.sizes == []
