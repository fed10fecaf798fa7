"""Replicas seen through their files: what is there, and how much of it a power loss would leave."""

import random
from pathlib import Path

from laststand.emulator.core.disk import Keep
from laststand.emulator.core.types import Offset, TopicPartition
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.power_loss import lose_power, scan_log_end
from laststand.emulator.storage.replica_view import view_replica
from laststand.emulator.storage.sync_ledger import SyncLedger, durable_prefixes
from tests.unit.storage.log_fixtures import make_batch

PARTITION = TopicPartition("orders", 0)
SEGMENT = "00000000000000000000.log"


def a_replica(tmp_path: Path, *, synced: int, unsynced: int) -> tuple[Path, Path]:
    """A partition directory whose first batches are durable; returns data and ledger directories."""
    data, ledger = tmp_path / "data", tmp_path / "ledger"
    data.mkdir()
    filesystem = OsFileSystem(ledger_folder=str(ledger))
    filesystem.make_directory(f"{data}/{PARTITION}")
    filesystem.sync_directory(str(data))
    file = filesystem.open(f"{data}/{PARTITION}/{SEGMENT}", OpenMode.APPEND)
    for base in range(synced + unsynced):
        if base == synced:
            file.sync()
        file.append((make_batch(base, leader_epoch=base // 2)[1],))
    if not unsynced:
        file.sync()
    file.close()
    filesystem.close()
    return data, ledger


def test_a_replica_is_seen_as_recovery_and_power_loss_would_have_it(tmp_path: Path) -> None:
    data, ledger = a_replica(tmp_path, synced=3, unsynced=2)
    view = view_replica(data, ledger, PARTITION)
    assert view is not None
    assert (view.log_start_offset, view.log_end_offset, view.flushed_end_offset) == (0, 5, 3)
    assert view.unflushed_bytes == 2 * make_batch(0)[0].size
    assert view.last_written_leader_epoch == 2
    assert [(entry.leader_epoch, entry.start_offset) for entry in view.epochs] == [(0, 0), (1, 2), (2, 4)]
    assert view.high_watermark is None
    before = (data / str(PARTITION) / SEGMENT).read_bytes()
    assert before
    lose_power([str(data)], ledger_folder=str(ledger), keep=Keep.NONE, seed=1)
    assert scan_log_end(str(data / str(PARTITION))) == view.flushed_end_offset
    after = view_replica(data, ledger, PARTITION)
    assert after is not None
    assert (after.log_end_offset, after.flushed_end_offset, after.unflushed_bytes) == (3, 3, 0)


def test_checkpoints_say_where_readers_may_begin_and_end(tmp_path: Path) -> None:
    data, ledger = a_replica(tmp_path, synced=4, unsynced=0)
    (data / "replication-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    (data / "log-start-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    view = view_replica(data, ledger, PARTITION)
    assert view is not None
    assert (view.log_start_offset, view.high_watermark, view.unflushed_bytes) == (1, 3, 0)


def test_a_torn_tail_and_a_missing_log_are_no_records(tmp_path: Path) -> None:
    data, ledger = a_replica(tmp_path, synced=2, unsynced=0)
    with (data / str(PARTITION) / SEGMENT).open("ab") as file:
        file.write(make_batch(2)[1][:-5])
    view = view_replica(data, ledger, PARTITION)
    assert view is not None
    assert view.log_end_offset == Offset(2)
    assert view_replica(data, ledger, TopicPartition("orders", 7)) is None


def test_looking_on_finds_what_the_ledger_itself_knows(tmp_path: Path) -> None:
    """Random appends, syncs, truncations and removals; the looker's prefixes are those of a ledger that is opened."""
    chance = random.Random(7)
    data, ledger = tmp_path / "data", tmp_path / "ledger"
    data.mkdir()
    filesystem = OsFileSystem(ledger_folder=str(ledger))
    sizes = dict.fromkeys("abc", 0)
    for _ in range(300):
        name = chance.choice(sorted(sizes))
        path = f"{data}/{name}"
        match chance.choice(["append", "append", "sync", "truncate", "unlink", "directory"]):
            case "append":
                file = filesystem.open(path, OpenMode.APPEND)
                file.append((bytes(chance.randrange(1, 50)),))
                sizes[name] = file.size
                file.close()
            case "sync" if Path(path).exists():
                file = filesystem.open(path, OpenMode.APPEND)
                file.sync()
                file.close()
            case "truncate" if sizes[name]:
                file = filesystem.open(path, OpenMode.APPEND)
                file.truncate(chance.randrange(sizes[name]))
                sizes[name] = file.size
                file.close()
            case "unlink" if Path(path).exists():
                filesystem.unlink(path)
                sizes[name] = 0
            case "directory":
                filesystem.sync_directory(str(data))
            case _:
                pass
    looked = durable_prefixes(str(ledger))
    filesystem.close()
    opened = SyncLedger(str(ledger))
    assert looked == {inode: covered.intact_length for inode, covered in opened.coverage.items()}
    assert any(looked.values())
    opened.close()
    assert durable_prefixes(str(tmp_path / "nowhere")) == {}
