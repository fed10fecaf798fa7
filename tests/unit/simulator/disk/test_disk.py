"""The simulator's disk after a crash."""

from collections.abc import Callable

import pytest

from laststand.emulator.core import effects
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry
from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.types import BrokerEpoch, LeaderEpoch, Offset, TopicId, TopicPartition
from laststand.emulator.simulator.disk.disk import Disk, unsynced_batches

NAME = TopicPartition("orders", 0)


def batch(offset: int, *, epoch: int = 0, crc: int | None = None) -> BatchDescriptor:
    return BatchDescriptor(
        base_offset=Offset(offset),
        last_offset=Offset(offset),
        leader_epoch=LeaderEpoch(epoch),
        crc=offset if crc is None else crc,
        size=100,
        record_count=1,
    )


def disk_with(*, synced: int, unsynced: int) -> Disk:
    disk = Disk()
    disk.create(effects.CreateLog(partition=NAME, topic_id=TopicId("t")))
    for offset in range(synced + unsynced):
        if offset == synced:
            disk.sync()
        disk.append(effects.AppendToLog(partition=NAME, batches=(batch(offset),)))
    if not unsynced:
        disk.sync()
    return disk


@pytest.mark.parametrize(
    ("keep", "kept", "left"),
    [
        (Keep.NONE, 5, 2),
        (Keep.PREFIX, 0, 2),
        (Keep.PREFIX, 2, 4),
        (Keep.PREFIX, 9, 4),
        (Keep.PAGES, 1, 3),
        (Keep.TORN, 0, 4),
    ],
)
def test_power_loss_takes_at_least_one_unsynced_batch(keep: Keep, kept: int, left: int) -> None:
    disk = disk_with(synced=2, unsynced=3)
    assert unsynced_batches(disk) == 3
    disk.lose_power(keep, ExactLoss(kept=kept, truncation=TruncationFate.KEPT, names=NamesFate.KEPT))
    (log,) = disk.load()
    assert log.log_end_offset == left
    assert unsynced_batches(disk) == 0


def test_synced_data_stays() -> None:
    disk = disk_with(synced=3, unsynced=0)
    disk.lose_power(Keep.NONE, ExactLoss(kept=0, truncation=TruncationFate.UNDONE, names=NamesFate.KEPT))
    assert disk.load()[0].log_end_offset == 3


@pytest.mark.parametrize(("fate", "crcs"), [(TruncationFate.UNDONE, [0, 1, 2]), (TruncationFate.KEPT, [0])])
def test_a_truncation_that_was_not_synced(fate: TruncationFate, crcs: list[int]) -> None:
    disk = disk_with(synced=3, unsynced=0)
    disk.truncate(effects.TruncateLog(partition=NAME, offset=Offset(1)))
    disk.append(effects.AppendToLog(partition=NAME, batches=(batch(1, epoch=1, crc=77),)))
    disk.lose_power(Keep.NONE, ExactLoss(kept=0, truncation=fate, names=NamesFate.KEPT))
    assert [each.crc for each in disk.load()[0].batches] == crcs


@pytest.mark.parametrize("model", [DiskModel.EXT4, DiskModel.XFS])
def test_an_ordered_journal_brings_no_batch_back_and_loses_no_name(model: DiskModel) -> None:
    exact = ExactLoss(kept=0, truncation=TruncationFate.UNDONE, names=NamesFate.UNDONE)
    disk = disk_with(synced=3, unsynced=0)
    disk.truncate(effects.TruncateLog(partition=NAME, offset=Offset(1)))
    disk.append(effects.AppendToLog(partition=NAME, batches=(batch(1, epoch=1, crc=77),)))
    disk.lose_power(Keep.NONE, exact, model=model)
    assert [each.crc for each in disk.load()[0].batches] == [0]
    disk.restart(effects.RestartLog(partition=NAME, offset=Offset(9)))
    disk.lose_power(Keep.NONE, exact, model=model)
    assert disk.load()[0].log_start_offset == 9


@pytest.mark.parametrize(("names", "end"), [(NamesFate.KEPT, 9), (NamesFate.UNDONE, 2)])
def test_a_log_that_started_anew_may_lose_its_segment(names: NamesFate, end: int) -> None:
    disk = disk_with(synced=3, unsynced=0)
    disk.raise_log_start(effects.RaiseLogStart(partition=NAME, offset=Offset(2)))
    disk.write_checkpoints(effects.WriteLogCheckpoints())
    disk.restart(effects.RestartLog(partition=NAME, offset=Offset(9)))
    disk.append(effects.AppendToLog(partition=NAME, batches=(batch(9),)))
    disk.lose_power(Keep.NONE, ExactLoss(kept=0, truncation=TruncationFate.UNDONE, names=names))
    (log,) = disk.load()
    assert (log.log_start_offset, log.log_end_offset, log.batches) == (end, end, ())


def _write_epochs(disk: Disk) -> None:
    disk.write_epochs(effects.WriteEpochCheckpoint(partition=NAME, epochs=()))


def _load(disk: Disk) -> None:
    disk.load()


@pytest.mark.parametrize("sync", [Disk.sync, _write_epochs, _load])
def test_what_syncs_a_directory_makes_its_names_durable(sync: Callable[[Disk], None]) -> None:
    disk = disk_with(synced=3, unsynced=0)
    disk.restart(effects.RestartLog(partition=NAME, offset=Offset(9)))
    sync(disk)
    disk.lose_power(Keep.NONE, ExactLoss(kept=0, truncation=TruncationFate.UNDONE, names=NamesFate.UNDONE))
    assert disk.load()[0].log_end_offset == 9


def test_recovery_adds_only_epochs_above_the_newest() -> None:
    disk = disk_with(synced=1, unsynced=0)
    disk.append(effects.AppendToLog(partition=NAME, batches=(batch(1, epoch=2),)))
    assert disk.load()[0].epochs == (EpochEntry(LeaderEpoch(0), Offset(0)), EpochEntry(LeaderEpoch(2), Offset(1)))
    entries = (EpochEntry(LeaderEpoch(3), Offset(0)),)
    disk.write_epochs(effects.WriteEpochCheckpoint(partition=NAME, epochs=entries))
    assert disk.load()[0].epochs == entries


def test_the_proof_of_a_clean_shutdown_is_used_up_by_loading() -> None:
    disk = disk_with(synced=0, unsynced=1)
    disk.close(BrokerEpoch(7))
    assert disk.previous_broker_epoch() == 7
    assert disk.load()[0].is_clean
    assert disk.previous_broker_epoch() is None
    assert not disk.load()[0].is_clean


def test_a_replaced_disk_is_empty() -> None:
    disk = disk_with(synced=3, unsynced=0)
    disk.close(BrokerEpoch(7))
    disk.replace()
    assert disk.load() == ()
    assert disk.previous_broker_epoch() is None


def rolled_disk() -> Disk:
    """Returns a disk with two segments of two batches, of which one batch is synced."""
    disk = disk_with(synced=0, unsynced=0)
    disk.logs[NAME].segment_bytes = 250
    for offset in range(4):
        disk.append(effects.AppendToLog(partition=NAME, batches=(batch(offset),)))
        if offset == 0:
            disk.sync()
    return disk


@pytest.mark.parametrize(
    ("names", "holes_end_logs", "left"),
    [
        (NamesFate.KEPT, True, [0]),
        (NamesFate.KEPT, False, [0]),
        (NamesFate.UNDONE, False, [0]),
    ],
)
def test_a_power_loss_between_a_roll_and_its_sync(names: NamesFate, left: list[int], *, holes_end_logs: bool) -> None:
    disk = rolled_disk()
    exact = ExactLoss(kept=0, truncation=TruncationFate.KEPT, names=names)
    disk.lose_power(Keep.NONE, exact, holes_end_logs=holes_end_logs)
    (log,) = disk.load()
    assert [each.base_offset for each in log.batches] == left
    opens_across_the_hole = names is NamesFate.KEPT and not holes_end_logs
    assert log.log_end_offset == (2 if opens_across_the_hole else 1)
    assert disk.journal.marks["power_loss:hole" if names is NamesFate.KEPT else "power_loss:segment"] == 1


def test_segments_before_a_roll_are_synced_in_the_background_and_keep_their_names() -> None:
    disk = rolled_disk()
    log = disk.logs[NAME]
    log.sync_rolled(Offset(2))
    assert (log.recovery_point, unsynced_batches(disk)) == (2, 2)
    assert log.rolled_to is None, "nothing is left to be synced in the background"
    disk.lose_power(Keep.NONE, ExactLoss(kept=0, truncation=TruncationFate.KEPT, names=NamesFate.UNDONE))
    assert disk.load()[0].log_end_offset == 2


def test_an_ordered_journal_loses_a_new_segment_only_if_nothing_was_synced_since() -> None:
    exact = ExactLoss(kept=9, truncation=TruncationFate.KEPT, names=NamesFate.UNDONE)
    for is_synced, end in ((False, 1), (True, 3)):
        disk = rolled_disk()
        if is_synced:
            disk.write_high_watermarks(effects.WriteHighWatermarks(high_watermarks=()))
        disk.lose_power(Keep.PREFIX, exact, model=DiskModel.EXT4, holes_end_logs=False)
        assert disk.load()[0].log_end_offset == end
