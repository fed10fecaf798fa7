"""A program under the shim: after a power loss what it synced is there, and what it did not is not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from laststand.emulator.cluster import sync_shim
from laststand.emulator.cluster.sync_shim import find_sync_shim, sync_shim_environment
from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.errors import MissingToolError
from laststand.emulator.storage.power_loss import PowerLossReport, count_as_durable, lose_power
from laststand.emulator.storage.sync_ledger import unnoted_names

HELPERS = """\
import mmap, os

def make(name, content, flags=os.O_APPEND):
    fd = os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o644)
    os.write(fd, content)
    return fd

def sync_directory(name):
    fd = os.open(name, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)

"""


class Disk:
    """The directory of programs that run one after the other, and its ledger."""

    def __init__(self, folder: Path, library: Path, notes: Path | None = None) -> None:
        self.data, self.ledger = folder / "data", folder / "ledger"
        self.environment = sync_shim_environment(library, data=self.data, ledger=self.ledger, notes=notes)
        self.data.mkdir()
        (self.data / "before").write_bytes(b"before")
        count_as_durable(str(self.data), ledger_folder=str(self.ledger))

    def run(self, program: str) -> None:
        """Runs a program, which ends as if it was killed."""
        command = (sys.executable, "-I", "-S", "-c", f"{HELPERS}{program}\nos.kill(os.getpid(), 9)\n")
        ended = subprocess.run(
            command, cwd=self.data, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False
        )
        assert ended.returncode == -9, ended.stderr

    def lose_power(
        self, keep: Keep = Keep.NONE, exact: ExactLoss | None = None, *, disk: DiskModel = DiskModel.POSIX
    ) -> PowerLossReport:
        ledger = str(self.ledger)
        return lose_power([str(self.data)], ledger_folder=ledger, keep=keep, seed=1, disk=disk, exact=exact)

    def files(self) -> dict[str, bytes]:
        """Returns all files but the one that was there before."""
        found = {str(path.relative_to(self.data)): path.read_bytes() for path in self.data.rglob("*") if path.is_file()}
        assert found.pop("before", None) == b"before"
        return found


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        try:
            return find_sync_shim()
        except MissingToolError as error:
            pytest.skip(str(error))


@pytest.fixture
def disk(tmp_path: Path, library: Path) -> Disk:
    return Disk(tmp_path, library)


@pytest.fixture
def disk_with_notes(tmp_path: Path, library: Path) -> Disk:
    """A disk that knows the bytes that were changed in place, too."""
    notes = tmp_path / "notes"
    notes.touch()
    return Disk(tmp_path, library, notes)


@pytest.mark.parametrize("sync", ["fsync", "fdatasync"])
def test_bytes_are_there_as_far_as_they_were_synced(disk: Disk, sync: str) -> None:
    disk.run(f"fd = make('log', b'synced'); os.{sync}(fd); os.write(fd, b' and not'); make('other', b'never')")
    report = disk.lose_power()
    assert disk.files() == {"log": b"synced"}
    assert [(loss.length_before, loss.length_after) for loss in report.lost_bytes] == [(14, 6)]


@pytest.mark.parametrize("keep", [Keep.PREFIX, Keep.TORN, Keep.PAGES])
def test_each_shape_spares_what_was_synced(disk: Disk, keep: Keep) -> None:
    disk.run("fd = make('log', b's' * 5000); os.fsync(fd); os.write(fd, b'u' * 9000)")
    disk.lose_power(keep, ExactLoss(kept=0, truncation=TruncationFate.KEPT, names=NamesFate.KEPT))
    content = disk.files()["log"]
    assert content[:5000] == b"s" * 5000
    assert content != b"s" * 5000 + b"u" * 9000


def test_memory_maps_are_synced(disk: Disk) -> None:
    disk.run(
        "for name in ('index', 'unsynced'):\n"
        "    fd = make(name, bytes(8192), 0)\n"
        "    memory = mmap.mmap(fd, 8192)\n"
        "    memory[:4] = b'0123'\n"
        "    if name == 'index': memory.flush()"
    )
    disk.lose_power()
    assert disk.files() == {"index": b"0123" + bytes(8188)}


@pytest.mark.parametrize(("fate", "content"), [(TruncationFate.UNDONE, b"0123456789"), (TruncationFate.KEPT, b"0123")])
def test_a_truncation_that_was_not_synced_may_be_undone(disk: Disk, fate: TruncationFate, content: bytes) -> None:
    disk.run(
        "fd = make('log', b'0123456789'); os.fsync(fd); os.write(fd, b'unsynced')\n"
        "os.ftruncate(fd, 8); os.ftruncate(fd, 4); os.write(fd, b'new')"
    )
    disk.lose_power(exact=ExactLoss(kept=0, truncation=fate))
    assert disk.files() == {"log": content}


def test_a_truncation_that_was_synced_stays(disk: Disk) -> None:
    disk.run("fd = make('log', b'0123456789'); os.fsync(fd); os.ftruncate(fd, 4); os.write(fd, b'new'); os.fsync(fd)")
    disk.lose_power()
    assert disk.files() == {"log": b"0123new"}


def test_a_file_that_was_opened_to_be_written_anew_may_be_as_before(disk: Disk) -> None:
    disk.run("os.fsync(make('log', b'old')); make('log', b'the new one', os.O_TRUNC)")
    disk.lose_power()
    assert disk.files() == {"log": b"old"}


def test_a_cut_of_megabytes_that_were_never_written_takes_no_room(disk: Disk) -> None:
    disk.run("fd = make('index', b'entry'); os.ftruncate(fd, 10 << 20); os.fsync(fd); os.ftruncate(fd, 5)")
    (kept,) = (disk.ledger / "kept").iterdir()
    assert kept.stat().st_size == (10 << 20) - 5
    assert kept.stat().st_blocks * 512 < 1 << 20
    disk.lose_power()
    assert disk.files() == {"index": b"entry" + bytes((10 << 20) - 5)}


def test_names_are_durable_once_their_directory_was_synced(disk: Disk) -> None:
    disk.run(
        "for name in ('replaced', 'removed', 'moved'): os.fsync(make(name, name.encode()))\n"
        "sync_directory('.')\n"
        "os.fsync(make('replaced.tmp', b'new')); os.rename('replaced.tmp', 'replaced')\n"
        "os.unlink('removed'); os.rename('moved', 'elsewhere')"
    )
    disk.lose_power()
    assert disk.files() == {
        "replaced": b"replaced",
        "replaced.tmp": b"new",
        "removed": b"removed",
        "moved": b"moved",
    }


def test_changes_of_names_that_were_synced_stay(disk: Disk) -> None:
    disk.run(
        "for name in ('replaced', 'removed'): os.fsync(make(name, name.encode()))\n"
        "sync_directory('.')\n"
        "os.fsync(make('replaced.tmp', b'new')); os.rename('replaced.tmp', 'replaced')\n"
        "os.unlink('removed'); sync_directory('.')"
    )
    disk.lose_power()
    assert disk.files() == {"replaced": b"new"}


def test_a_directory_that_was_removed_may_come_back(disk: Disk) -> None:
    disk.run(
        "os.mkdir('orders-0'); os.fsync(make('orders-0/log', b'synced')); sync_directory('orders-0')\n"
        "try: os.rmdir('orders-0')\n"
        "except OSError: pass\n"
        "os.unlink('orders-0/log'); os.rmdir('orders-0')"
    )
    assert not (disk.data / "orders-0").exists()
    disk.lose_power()
    assert disk.files() == {"orders-0/log": b"synced"}


def test_a_second_process_goes_on_with_the_ledger_of_the_first(disk: Disk) -> None:
    disk.run("fd = make('log', b'0123456789'); os.fsync(fd); os.ftruncate(fd, 6)")
    disk.run("fd = make('log', b''); os.ftruncate(fd, 2); os.fsync(make('other', b'synced'))")
    disk.lose_power()
    assert disk.files() == {"log": b"0123456789", "other": b"synced"}
    disk.run("os.write(make('log', b''), b'unsynced')")
    disk.lose_power()
    assert disk.files() == {"log": b"0123456789", "other": b"synced"}


CHANGES_BEFORE_A_SYNC = """\
os.mkdir('orders-0')
for name in ('cut', 'removed', 'moved', 'replaced'): os.fsync(make(name, name.encode()))
sync_directory('.')
os.ftruncate(make('cut', b''), 1); os.unlink('removed'); os.rename('moved', 'elsewhere'); os.mkdir('made')
os.fsync(make('replaced.tmp', b'new')); os.rename('replaced.tmp', 'replaced'); os.rmdir('orders-0')
"""


@pytest.mark.parametrize("model", [DiskModel.EXT4, DiskModel.XFS])
def test_an_ordered_journal_is_committed_with_any_file_that_is_synced(disk: Disk, model: DiskModel) -> None:
    disk.run(f"{CHANGES_BEFORE_A_SYNC}os.fsync(make('another', b'synced')); os.unlink('elsewhere')")
    disk.lose_power(disk=model)
    expected = {"cut": b"c", "elsewhere": b"moved", "replaced": b"new", "another": b"synced"}
    assert disk.files() == expected
    assert (disk.data / "made").is_dir()
    assert not (disk.data / "orders-0").exists()


def test_a_sync_that_has_nothing_to_commit_commits_nothing(disk: Disk) -> None:
    disk.run(
        "os.fsync(make('cut', b'0123')); os.ftruncate(make('cut', b''), 1); os.fsync(os.open('before', os.O_RDWR))"
    )
    disk.lose_power(disk=DiskModel.EXT4)
    assert disk.files() == {"cut": b"0123"}


def test_btrfs_syncs_a_file_alone(disk: Disk) -> None:
    disk.run(f"{CHANGES_BEFORE_A_SYNC}os.fsync(make('another', b'synced'))")
    disk.lose_power(disk=DiskModel.BTRFS)
    assert disk.files() == {
        "cut": b"cut",
        "removed": b"removed",
        "moved": b"moved",
        "replaced": b"replaced",
        "replaced.tmp": b"new",
        "another": b"synced",
    }
    assert (disk.data / "orders-0").is_dir()


def test_bytes_that_were_changed_in_place_are_as_before(disk_with_notes: Disk) -> None:
    disk_with_notes.run(
        "fd = make('log', b'0123456789', 0); os.fsync(fd)\n"
        "os.pwrite(fd, b'ab', 2); os.pwrite(fd, b'c', 3); os.pwrite(fd, b'new', 9)"
    )
    report = disk_with_notes.lose_power()
    assert disk_with_notes.files() == {"log": b"0123456789"}
    assert [loss.restored for loss in report.lost_bytes] == [((2, 4), (9, 10))]


def test_bytes_that_were_changed_in_place_and_synced_stay(disk_with_notes: Disk) -> None:
    disk_with_notes.run("fd = make('log', b'0123456789', 0); os.fsync(fd); os.pwrite(fd, b'ab', 2); os.fdatasync(fd)")
    disk_with_notes.lose_power()
    assert disk_with_notes.files() == {"log": b"01ab456789"}


@pytest.mark.parametrize("keep", [Keep.PREFIX, Keep.TORN, Keep.PAGES])
def test_each_shape_takes_from_what_was_changed_in_place(disk_with_notes: Disk, keep: Keep) -> None:
    disk_with_notes.run(
        "fd = make('log', b's' * 9000, 0); os.fsync(fd); os.pwrite(fd, b'u' * 8000, 0); os.pwrite(fd, b'u', 8500)"
    )
    disk_with_notes.lose_power(keep)
    content = disk_with_notes.files()["log"]
    assert len(content) == 9000
    assert content.count(b"u") < 8001
    assert set(content) <= set(b"su")


def test_bytes_that_are_written_synchronously_are_durable_alone(disk_with_notes: Disk) -> None:
    disk_with_notes.run(
        "fd = make('log', b'0123456789', 0); os.fsync(fd); os.pwrite(fd, b'ab', 0)\n"
        "os.pwrite(os.open('log', os.O_RDWR | os.O_DSYNC), b'cd', 4)\n"
        "late = make('late', b'', 0); os.pwrite(late, b'xx', 0)\n"
        "os.pwrite(os.open('late', os.O_RDWR | os.O_DSYNC), b'yy', 2)"
    )
    disk_with_notes.lose_power()
    assert disk_with_notes.files() == {"log": b"0123cd6789", "late": bytes(2) + b"yy"}


def test_names_that_another_way_than_the_c_librarys_has_changed_are_found(disk: Disk) -> None:
    disk.run(
        "os.mkdir('made'); make('made/log', b''); os.rename('made/log', 'log'); make('gone', b''); os.unlink('gone')"
    )
    assert unnoted_names(str(disk.data), folder=str(disk.ledger)) == set()
    (disk.data / "stranger").touch()
    (disk.data / "log").unlink()
    assert unnoted_names(str(disk.data), folder=str(disk.ledger)) == {str(disk.data / "stranger"), "log"}


def test_without_a_compiler_the_reason_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"a C compiler was not found; expected cc on PATH: .* power loss"):
        find_sync_shim()


def test_a_compiler_that_fails_is_named_with_its_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("#error not today\n", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sync_shim, "_SOURCE", broken)
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    with pytest.raises(MissingToolError, match="a C compiler was not found; expected one that builds"):
        find_sync_shim()
