"""Faults that the harness arms beside a node's ledger, and how the node's file system suffers from them."""

import time
from pathlib import Path

import pytest

from emulator.storage.disk_faults import arm, read_faults, seen_generation
from emulator.storage.filesystem import OpenMode
from emulator.storage.os_filesystem import OsFileSystem


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
    arm(ledger, read_faults(ledger).following(sync_delay_ms=200))
    file.append([b"x"])
    file.sync()
    filesystem.sync_directory(str(data))
    assert (waits, seen_generation(ledger)) == ([0.2, 0.2], 1)
    arm(ledger, read_faults(ledger).following(sync_delay_ms=0))
    file.sync()
    assert (waits, seen_generation(ledger)) == ([0.2, 0.2], 2)
    file.close()
    filesystem.close()
