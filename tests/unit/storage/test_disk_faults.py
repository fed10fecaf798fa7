"""Faults that the harness arms beside a node's ledger, and how the node's file system suffers from them."""

import time
from pathlib import Path

import pytest

from laststand.emulator.core.disk import DiskOperation, Keep
from laststand.emulator.core.errors import StorageError
from laststand.emulator.storage.disk_faults import FaultyDisk, arm, seen_generation
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.power_loss import lose_power


def test_every_fsync_waits_for_as_long_as_is_armed_and_the_node_says_what_it_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    ledger = tmp_path / "ledger"
    filesystem = OsFileSystem(ledger_folder=str(ledger))
    data = tmp_path / "data"
    filesystem.make_directory(str(data))
    file = filesystem.open(str(data / "log"), OpenMode.APPEND)
    file.sync()
    assert (waits, seen_generation(ledger)) == ([], 0)
    arm(ledger, sync_delay_ms=200)
    file.append([b"x"])
    file.sync()
    filesystem.sync_directory(str(data))
    assert (waits, seen_generation(ledger)) == ([0.2, 0.2], 1)
    arm(ledger, sync_delay_ms=0)
    file.sync()
    assert (waits, seen_generation(ledger)) == ([0.2, 0.2], 2)
    file.close()
    filesystem.close()


def test_the_operation_that_is_armed_fails_and_no_other(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    filesystem = OsFileSystem(ledger_folder=str(ledger))
    file = filesystem.open(str(tmp_path / "log"), OpenMode.APPEND)
    arm(ledger, failing=DiskOperation.WRITE, at=2)
    filesystem.disk.notice()
    file.append([b"first"])
    with pytest.raises(StorageError, match="Input/output error"):
        file.append([b"second"])
    arm(ledger, failing=DiskOperation.READ, at=1)
    filesystem.disk.notice()
    file.append([b"third"])
    with pytest.raises(StorageError, match="Input/output error"):
        file.read(position=0, length=5)
    arm(ledger, failing=DiskOperation.SYNC)
    with pytest.raises(StorageError, match="Input/output error"):
        file.sync()
    arm(ledger, failing=None)
    file.sync()
    assert file.read(position=0, length=10) == b"firstthird"
    file.close()
    filesystem.close()


def test_a_full_disk_takes_what_fits(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    arm(ledger, bytes_left=10)
    filesystem = OsFileSystem(ledger_folder=str(ledger))
    file = filesystem.open(str(tmp_path / "log"), OpenMode.APPEND)
    file.append([b"12345", b"67"])
    with pytest.raises(StorageError, match="No space left on device"):
        file.append([b"8901"])
    file.append([b"890"])
    assert file.size == 10
    file.close()
    filesystem.close()


def test_what_a_lying_disk_synced_is_lost_with_the_power(tmp_path: Path) -> None:
    for lies, kept in ((True, None), (False, b"synced")):
        ledger, data = tmp_path / f"ledgers-{lies}" / "ledger", tmp_path / f"data-{lies}"
        data.mkdir()
        arm(ledger, are_syncs_lost=lies)
        filesystem = OsFileSystem(ledger_folder=str(ledger))
        file = filesystem.open(str(data / "log"), OpenMode.APPEND)
        file.append([b"synced"])
        file.sync()
        filesystem.sync_directory(str(data))
        file.close()
        filesystem.close()
        lose_power([str(data)], ledger_folder=str(ledger), keep=Keep.NONE, seed=1)
        found = (data / "log").read_bytes() if (data / "log").exists() else None
        assert found == kept
        assert seen_generation(ledger) == 1


def test_a_process_that_starts_finds_what_is_armed(tmp_path: Path) -> None:
    arm(tmp_path / "ledger", failing=DiskOperation.READ)
    assert FaultyDisk(str(tmp_path / "ledger")).is_failing
