"""What the ledger's folder holds, and that nothing stays in it longer than a power loss could want it back."""

import os
from pathlib import Path

from emulator.storage.filesystem import OpenMode
from emulator.storage.os_filesystem import OsFileSystem
from emulator.storage.sync_ledger import SyncLedger


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
