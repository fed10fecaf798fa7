"""The simulated disk against real storage on a simulated file system: the same life, the same death, the same findings.

A power loss draws which unsynced batches survive where files are real, and is told where they are not: so what real
storage finds must be one of the things that the simulated disk may be told to find.
"""

from collections.abc import Iterator
from typing import Final

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from emulator.core.batch import EpochEntry
from emulator.core.broker.epoch_cache import LeaderEpochCache
from emulator.core.effects import (
    AppendToLog,
    CreateLog,
    RaiseLogStart,
    TruncateLog,
    WriteEpochCheckpoint,
    WriteHighWatermarks,
    WriteLogCheckpoints,
)
from emulator.core.inputs import LoadedLog
from emulator.core.types import BrokerEpoch, LeaderEpoch, Offset
from emulator.simulator.disk import Disk, TruncationFate
from emulator.simulator.disk import Keep as SimulatedKeep
from emulator.storage.log_directory import LogDirectory
from emulator.storage.partition_log import LogSettings
from emulator.storage.power_loss_plan import Keep
from tests.unit.storage.log_fixtures import PARTITION, TOPIC_ID, durable_directory, make_batch

ROOT: Final = "/data"
BATCH: Final = len(make_batch(0)[1])

OPERATIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("new_epoch"), st.just(0)),
    st.tuples(st.just("truncate"), st.integers(0, 8)),
    st.tuples(st.just("flush"), st.just(0)),
    st.tuples(st.just("delete_records"), st.integers(1, 3)),
    st.tuples(st.just("high_watermark"), st.integers(0, 1)),
    st.tuples(st.just("checkpoint"), st.just(0)),
)


class BothDisks:
    """One log on either disk, and an epoch cache as the core would keep it."""

    def __init__(self, *, segment_batches: int) -> None:
        self._settings = LogSettings(segment_bytes=segment_batches * BATCH)
        self.filesystem = durable_directory(ROOT)
        self.directory = LogDirectory.open(self.filesystem, ROOT)
        self.directory.load_logs(lambda _: self._settings)
        self.log = self.directory.create_log(PARTITION, TOPIC_ID, self._settings)
        self.disk = Disk()
        self.disk.create(CreateLog(partition=PARTITION, topic_id=TOPIC_ID))
        self.disk.load()  # takes the clean-shutdown file away, as real storage has
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
            case ("delete_records", distance):
                offset = Offset(min(self.log.log_start_offset + distance, self._high_watermark))
                if offset > self.log.log_start_offset:
                    self.log.raise_log_start(offset)
                    self.disk.raise_log_start(RaiseLogStart(partition=PARTITION, offset=offset))
            case ("high_watermark", distance):
                behind = Offset(self.log.log_end_offset - distance)
                self._high_watermark = max(self.log.log_start_offset, min(behind, self.log.log_end_offset))
                self.directory.write_high_watermarks({PARTITION: self._high_watermark})
                self.disk.write_high_watermarks(
                    WriteHighWatermarks(high_watermarks=((PARTITION, self._high_watermark),))
                )
            case ("checkpoint", _):
                self.directory.write_recovery_points()
                self.directory.write_log_starts()
                self.disk.write_checkpoints(WriteLogCheckpoints())
            case unknown:
                raise AssertionError(unknown)

    def _append(self) -> None:
        descriptor, content = make_batch(self.log.log_end_offset, leader_epoch=self._epoch)
        self.log.append([descriptor], [content])
        self.disk.append(AppendToLog(partition=PARTITION, batches=(descriptor,)))
        if self._epochs.assign(LeaderEpoch(self._epoch), descriptor.base_offset):
            self._write_epochs()

    def _truncate(self, offset: Offset) -> None:
        if offset >= self.log.log_end_offset:
            return
        self.log.truncate_to(offset)
        self.directory.write_recovery_points()
        self.disk.truncate(TruncateLog(partition=PARTITION, offset=offset))
        self._high_watermark = min(self._high_watermark, offset)
        if self._epochs.truncate_from_end(offset):
            self._write_epochs()

    def _write_epochs(self) -> None:
        entries: tuple[EpochEntry, ...] = self._epochs.entries
        self.log.write_epochs(entries)
        self.disk.write_epochs(WriteEpochCheckpoint(partition=PARTITION, epochs=entries))

    def found(self) -> LoadedLog:
        """Returns what a new process of real storage finds."""
        self.filesystem.restart()
        (loaded,) = LogDirectory.open(self.filesystem, ROOT).load_logs(lambda _: self._settings)
        return loaded

    def found_after(self, keep: SimulatedKeep) -> Iterator[LoadedLog]:
        """Yields what a new process of the simulated disk may find after such a power loss."""
        (log,) = self.disk.logs.values()
        batches, durable, synced = list(log.batches), log.durable, log.synced
        point, base = log.recovery_point, log.segment_base
        for fate in TruncationFate:
            for kept in range(len(batches) + 1):
                log.batches, log.durable, log.synced = list(batches), durable, synced
                log.recovery_point, log.segment_base = point, base
                self.disk.lose_power(keep, kept=kept, truncation=fate)
                yield from self.disk.load()


def essence(loaded: LoadedLog) -> tuple[object, ...]:
    """Returns what the core goes by; recovery points are exact on one side and checkpoints on the other."""
    epochs = LeaderEpochCache(loaded.epochs)
    epochs.truncate_from_end(loaded.log_end_offset)
    epochs.truncate_from_start(loaded.log_start_checkpoint)
    high_watermark = min(max(loaded.high_watermark_checkpoint, loaded.log_start_offset), loaded.log_end_offset)
    shown = tuple((batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc) for batch in loaded.batches)
    return shown, loaded.log_start_offset, loaded.log_end_offset, epochs.entries, high_watermark, loaded.is_clean


LIVES = st.lists(OPERATIONS, max_size=14)
QUICKLY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(life=LIVES, segment_batches=st.integers(2, 40))
@QUICKLY
def test_a_killed_process_leaves_the_same(life: list[tuple[str, int]], segment_batches: int) -> None:
    disks = BothDisks(segment_batches=segment_batches)
    for operation in life:
        disks.do(operation)
    (loaded,) = disks.disk.load()
    assert essence(disks.found()) == essence(loaded)


@given(life=LIVES)
@QUICKLY
def test_an_orderly_end_leaves_the_same(life: list[tuple[str, int]]) -> None:
    disks = BothDisks(segment_batches=40)
    for operation in life:
        disks.do(operation)
    disks.directory.close_logs(BrokerEpoch(7))
    disks.disk.close(BrokerEpoch(7))
    (loaded,) = disks.disk.load()
    assert essence(disks.found()) == essence(loaded)


@given(life=LIVES, keep=st.sampled_from(Keep), seed=st.integers(0, 1000))
@QUICKLY
def test_what_a_power_loss_leaves_is_what_the_simulator_knows(
    life: list[tuple[str, int]], keep: Keep, seed: int
) -> None:
    disks = BothDisks(segment_batches=40)
    for operation in life:
        disks.do(operation)
    known = [essence(loaded) for loaded in disks.found_after(SimulatedKeep(keep.value))]
    disks.filesystem.lose_power(keep=keep, seed=seed)
    assert essence(disks.found()) in known
