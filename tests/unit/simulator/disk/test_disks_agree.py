"""The simulated disk against real storage on a simulated file system: the same life, the same death, the same findings.

A power loss draws which unsynced batches and names survive where files are real, and is told where they are not: so
what real storage finds must be one of the things that the simulated disk may be told to find. An exact loss is the same
on both, segment by segment.
"""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Final, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings

from laststand.emulator.core import effects, inputs
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.types import BrokerEpoch, LeaderEpoch, Offset, TopicId
from laststand.emulator.simulator.disk.disk import Disk
from laststand.emulator.storage.log_directory import LogDirectory
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.partition_log import LogSettings
from laststand.emulator.storage.power_loss import lose_power
from tests.memory_filesystem import MemoryLock
from tests.unit.storage.log_fixtures import PARTITION, TOPIC_ID, durable_directory, make_batch

ROOT: Final = "/data"
BATCH: Final = len(make_batch(0)[1])
TOPIC_IDS: Final = (TOPIC_ID, TopicId("BAAAAAAAAAAAAAAAAAAAAQ"))

OPERATIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("new_epoch"), st.just(0)),
    st.tuples(st.just("truncate"), st.integers(0, 8)),
    st.tuples(st.just("flush"), st.just(0)),
    st.tuples(st.just("background"), st.just(0)),
    st.tuples(st.just("delete_records"), st.integers(1, 3)),
    st.tuples(st.just("high_watermark"), st.integers(0, 1)),
    st.tuples(st.just("checkpoint"), st.just(0)),
    st.tuples(st.just("restart"), st.integers(-2, 3)),
    st.tuples(st.just("restart_and_die"), st.integers(-2, 3)),
    st.tuples(st.just("delete"), st.integers(0, 1)),
    st.tuples(st.just("stray"), st.integers(0, 1)),
    st.tuples(st.just("delete_stray"), st.integers(0, 1)),
)


class Found(NamedTuple):
    """Logs and strays that a new process finds."""

    logs: tuple[inputs.LoadedLog, ...]
    strays: frozenset[inputs.StrayLog]


class BothDisks:
    """One log on either disk, and an epoch cache as the core would keep it."""

    def __init__(self, *, segment_batches: int, holes_end_logs: bool = False) -> None:
        self._settings = LogSettings(segment_bytes=segment_batches * BATCH, holes_end_logs=holes_end_logs)
        self.filesystem = durable_directory(ROOT)
        self.directory = LogDirectory.open(self.filesystem, ROOT)
        self.directory.load_logs(lambda _: self._settings)
        self.disk = Disk()
        self._create(TOPIC_ID)

    def _create(self, topic_id: TopicId) -> None:
        self.log = self.directory.create_log(PARTITION, topic_id, self._settings)
        self.directory.sync_names()
        self.disk.create(effects.CreateLog(partition=PARTITION, topic_id=topic_id))
        self.disk.logs[PARTITION].segment_bytes = self._settings.segment_bytes
        self._epochs = LeaderEpochCache()
        self._epoch = 0
        self._high_watermark = Offset(0)

    def do(self, operation: tuple[str, int]) -> None:
        """Does the same to both."""
        match operation:
            case ("append", count):
                for _ in range(count):
                    self._append()
            case ("new_epoch", _):
                self._epoch += 1
            case ("truncate", distance):
                self._truncate(Offset(max(self.log.log_start_offset, self.log.log_end_offset - distance)))
            case ("flush", _):
                self.log.flush()
                self.disk.sync()
            case ("background", _):
                if (work := self.log.pop_flush_work()) is not None:
                    work.run()
                    self.log.complete_flush(work)
                if (rolled_to := self.disk.logs[PARTITION].rolled_to) is not None:
                    self.disk.logs[PARTITION].sync_rolled(rolled_to)
            case ("delete_records", distance):
                offset = Offset(min(self.log.log_start_offset + distance, self._high_watermark))
                if offset > self.log.log_start_offset:
                    self.log.raise_log_start(offset)
                    self.disk.raise_log_start(effects.RaiseLogStart(partition=PARTITION, offset=offset))
            case ("high_watermark", distance):
                behind = Offset(self.log.log_end_offset - distance)
                self._high_watermark = max(self.log.log_start_offset, min(behind, self.log.log_end_offset))
                self.directory.write_high_watermarks({PARTITION: self._high_watermark})
                self.disk.write_high_watermarks(
                    effects.WriteHighWatermarks(high_watermarks=((PARTITION, self._high_watermark),))
                )
            case ("checkpoint", _):
                self.directory.write_recovery_points()
                self.directory.write_log_starts()
                self.disk.write_checkpoints(effects.WriteLogCheckpoints())
            case ("restart", distance):
                self._restart(distance)
                if self._epochs.clear():
                    self._write_epochs()
            case ("restart_and_die", distance):
                self._restart(distance)  # what follows it in a step never happens
            case ("delete", which):
                self.directory.delete_log(PARTITION, now_ms=0, delay_ms=1)
                self.disk.delete(effects.DeleteLog(partition=PARTITION))
                self._create(TOPIC_IDS[which])
            case ("stray", which):
                self.directory.rename_stray_log(PARTITION)
                self.disk.rename_stray(effects.RenameStrayLog(partition=PARTITION))
                self._create(TOPIC_IDS[which])
            case ("delete_stray", which):
                self.directory.delete_strays(inputs.StrayLog(partition=PARTITION, topic_id=TOPIC_IDS[which]))
                self.disk.delete_stray(effects.DeleteStrayLog(partition=PARTITION, topic_id=TOPIC_IDS[which]))
            case unknown:
                raise AssertionError(unknown)

    def _append(self) -> None:
        descriptor, content = make_batch(self.log.log_end_offset, leader_epoch=self._epoch)
        self.log.append([descriptor], [content])
        self.disk.append(effects.AppendToLog(partition=PARTITION, batches=(descriptor,)))
        if self._epochs.assign(LeaderEpoch(self._epoch), descriptor.base_offset):
            self._write_epochs()

    def _truncate(self, offset: Offset) -> None:
        if offset >= self.log.log_end_offset:
            return
        self.log.truncate_to(offset)
        self.directory.write_recovery_points()
        self.disk.truncate(effects.TruncateLog(partition=PARTITION, offset=offset))
        self._high_watermark = min(self._high_watermark, offset)
        if self._epochs.truncate_from_end(offset):
            self._write_epochs()

    def _restart(self, distance: int) -> None:
        offset = Offset(max(0, self.log.log_end_offset + distance))
        self.log.restart_at(offset)
        self.directory.write_recovery_points()
        self.disk.restart(effects.RestartLog(partition=PARTITION, offset=offset))
        self._high_watermark = offset

    def _write_epochs(self) -> None:
        entries: tuple[EpochEntry, ...] = self._epochs.entries
        self.log.write_epochs(entries)
        self.disk.write_epochs(effects.WriteEpochCheckpoint(partition=PARTITION, epochs=entries))

    def found(self) -> Found:
        """Returns what a new process of real storage finds."""
        self.filesystem.restart()
        directory = LogDirectory.open(self.filesystem, ROOT)
        return Found(directory.load_logs(lambda _: self._settings), frozenset(directory.strays))

    def found_after(self, keep: Keep) -> Iterator[Found]:
        """Yields what a new process of the simulated disk may find after such a power loss."""
        most = max((len(log.batches) for log in self.disk.logs.values()), default=0)
        for truncation in TruncationFate:
            for names in NamesFate:
                for kept in range(most + 1 if keep in (Keep.PREFIX, Keep.PAGES) else 1):
                    disk = deepcopy(self.disk)
                    disk.lose_power(keep, ExactLoss(kept=kept, truncation=truncation, names=names))
                    yield found_on(disk)


def found_on(disk: Disk) -> Found:
    """Returns what a new process of the simulated disk finds."""
    return Found(disk.load(), frozenset(disk.strays))


def essence(found: Found) -> tuple[object, ...]:
    """Returns what the core goes by."""
    return found.strays, tuple(log_essence(loaded) for loaded in found.logs)


def log_essence(loaded: inputs.LoadedLog) -> tuple[object, ...]:
    """Returns what the core goes by of one log; recovery points are exact on one side and checkpoints on the other."""
    epochs = LeaderEpochCache(loaded.epochs)
    epochs.truncate_from_end(loaded.log_end_offset)
    epochs.truncate_from_start(loaded.log_start_checkpoint)
    high_watermark = min(max(loaded.high_watermark_checkpoint, loaded.log_start_offset), loaded.log_end_offset)
    shown = tuple((batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc) for batch in loaded.batches)
    ends = (loaded.topic_id, loaded.log_start_offset, loaded.log_end_offset)
    return shown, ends, epochs.entries, high_watermark, loaded.is_clean


LIVES = st.lists(OPERATIONS, max_size=14)
QUICKLY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


A_NAME_USED_AGAIN: Final = [
    ("append", 4),
    ("high_watermark", 0),
    ("delete_records", 3),
    ("checkpoint", 0),
    ("delete", 1),
    ("append", 2),
]


@given(life=LIVES, segment_batches=st.integers(2, 40))
@example(life=A_NAME_USED_AGAIN, segment_batches=40)
@QUICKLY
def test_a_killed_process_leaves_the_same(life: list[tuple[str, int]], segment_batches: int) -> None:
    disks = BothDisks(segment_batches=segment_batches)
    for operation in life:
        disks.do(operation)
    assert essence(disks.found()) == essence(found_on(disks.disk))


@given(life=LIVES)
@QUICKLY
def test_an_orderly_end_leaves_the_same(life: list[tuple[str, int]]) -> None:
    disks = BothDisks(segment_batches=40)
    for operation in life:
        disks.do(operation)
    disks.directory.close_logs(BrokerEpoch(7))
    disks.disk.close(BrokerEpoch(7))
    assert essence(disks.found()) == essence(found_on(disks.disk))


@given(life=LIVES, keep=st.sampled_from(Keep), seed=st.integers(0, 1000))
@QUICKLY
def test_what_a_power_loss_leaves_is_what_the_simulator_knows(
    life: list[tuple[str, int]], keep: Keep, seed: int
) -> None:
    disks = BothDisks(segment_batches=40)
    for operation in life:
        disks.do(operation)
    known = [essence(found) for found in disks.found_after(keep)]
    disks.filesystem.lose_power(keep=keep, seed=seed)
    assert essence(disks.found()) in known


@given(
    life=LIVES,
    keep=st.sampled_from(Keep),
    exact=st.builds(
        ExactLoss, kept=st.integers(0, 3), truncation=st.sampled_from(TruncationFate), names=st.sampled_from(NamesFate)
    ),
    segment_batches=st.integers(1, 4),
    holes_end_logs=st.booleans(),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_exact_power_loss_leaves_the_same_of_each_segment(
    life: list[tuple[str, int]], keep: Keep, exact: ExactLoss, segment_batches: int, *, holes_end_logs: bool
) -> None:
    disks = BothDisks(segment_batches=segment_batches, holes_end_logs=holes_end_logs)
    for operation in life:
        disks.do(operation)
    disks.filesystem.lose_power(keep=keep, seed=1, exact=exact)
    disks.disk.lose_power(keep, exact, holes_end_logs=holes_end_logs)
    assert essence(disks.found()) == essence(found_on(disks.disk))


class _OfManyProcesses(OsFileSystem):
    """The file system of one process after another, though all of them are this one."""

    def lock(self, path: str) -> MemoryLock:
        return MemoryLock()


@pytest.mark.parametrize(
    ("model", "epochs"),
    [(DiskModel.POSIX, [0, 0]), (DiskModel.BTRFS, [0, 0]), (DiskModel.EXT4, []), (DiskModel.XFS, [])],
)
def test_which_disks_bring_back_what_a_follower_has_cut(model: DiskModel, epochs: list[int], tmp_path: Path) -> None:
    """S35: records of epoch 0 were synced, and cut for those of epoch 1, whose start was synced and they were not."""
    data, ledger = tmp_path / "data", str(tmp_path / "ledger")
    data.mkdir()
    filesystem = _OfManyProcesses(ledger_folder=ledger)
    directory = LogDirectory.open(filesystem, str(data))
    directory.load_logs(lambda _: LogSettings())
    log, disk = directory.create_log(PARTITION, TOPIC_ID, LogSettings()), Disk()
    directory.sync_names()
    disk.create(effects.CreateLog(partition=PARTITION, topic_id=TOPIC_ID))

    def append(leader_epoch: int) -> None:
        starts = (EpochEntry(leader_epoch=LeaderEpoch(leader_epoch), start_offset=Offset(0)),)
        log.write_epochs(starts)
        disk.write_epochs(effects.WriteEpochCheckpoint(partition=PARTITION, epochs=starts))
        for base_offset in range(2):
            descriptor, content = make_batch(base_offset, leader_epoch=leader_epoch)
            log.append([descriptor], [content])
            disk.append(effects.AppendToLog(partition=PARTITION, batches=(descriptor,)))

    append(0)
    log.flush()
    disk.sync()
    log.truncate_to(Offset(0))
    directory.write_recovery_points()
    disk.truncate(effects.TruncateLog(partition=PARTITION, offset=Offset(0)))
    append(1)
    filesystem.close()
    exact = ExactLoss(kept=0, truncation=TruncationFate.UNDONE)
    lose_power([str(data)], ledger_folder=ledger, keep=Keep.NONE, seed=1, disk=model, exact=exact)
    disk.lose_power(Keep.NONE, exact, model=model)

    directory = LogDirectory.open(_OfManyProcesses(ledger_folder=ledger), str(data))
    (found,) = directory.load_logs(lambda _: LogSettings())
    assert [batch.leader_epoch for batch in found.batches] == epochs
    assert essence(Found((found,), frozenset())) == essence(found_on(disk))
