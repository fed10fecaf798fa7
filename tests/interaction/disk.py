"""A broker's disk as the core sees it: batch descriptors with a synced mark, checkpoints, the clean-shutdown file.

Checkpoints are synced when they are written; batches only by a clean close. So a power loss keeps of each log what was
there at the last one.
"""

from enum import Enum

import msgspec

from emulator.core.batch import BatchDescriptor, EpochEntry, LogSpan
from emulator.core.effects import (
    AppendToLog,
    CreateLog,
    DeleteLog,
    RaiseLogStart,
    RenameStrayLog,
    RestartLog,
    TruncateLog,
    WriteEpochCheckpoint,
    WriteHighWatermarks,
)
from emulator.core.inputs import LoadedLog
from emulator.core.types import BrokerEpoch, Offset, TopicId, TopicPartition


class CrashMode(Enum):
    """What a crash leaves."""

    KILL = "kill"
    """The page cache survives."""

    POWER_LOSS = "power_loss"
    """Everything that was not synced is gone."""


class StoredLog(msgspec.Struct):
    """One partition directory."""

    topic_id: TopicId
    batches: list[BatchDescriptor] = msgspec.field(default_factory=list)
    log_start_offset: Offset = Offset(0)
    log_end_offset: Offset = Offset(0)
    synced_end_offset: Offset = Offset(0)
    epochs: tuple[EpochEntry, ...] = ()

    def cut(self, offset: Offset) -> None:
        """Drops batches that reach ``offset``; the log ends there."""
        while self.batches and self.batches[-1].last_offset >= offset:
            self.batches.pop()
        self.log_end_offset = offset
        self.synced_end_offset = min(self.synced_end_offset, offset)


class Disk:
    """Survives the process."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, StoredLog] = {}
        self.high_watermarks: dict[TopicPartition, Offset] = {}
        self.clean_epoch: BrokerEpoch | None = None
        self.is_clean = False
        self.set_aside: list[TopicPartition] = []

    def write(
        self,
        effect: AppendToLog
        | CreateLog
        | DeleteLog
        | RenameStrayLog
        | TruncateLog
        | RestartLog
        | WriteEpochCheckpoint
        | RaiseLogStart
        | WriteHighWatermarks,
    ) -> None:
        """Executes a file effect."""
        match effect:
            case CreateLog(partition=partition, topic_id=topic_id):
                self.logs[partition] = StoredLog(topic_id)
            case DeleteLog(partition=partition) | RenameStrayLog(partition=partition):
                del self.logs[partition]
                self.set_aside.append(partition)
            case AppendToLog(partition=partition, batches=batches):
                self.logs[partition].batches.extend(batches)
                self.logs[partition].log_end_offset = batches[-1].next_offset
            case TruncateLog(partition=partition, offset=offset):
                self.logs[partition].cut(offset)
            case RestartLog(partition=partition, offset=offset):
                self.logs[partition] = StoredLog(
                    self.logs[partition].topic_id, log_start_offset=offset, log_end_offset=offset
                )
            case WriteEpochCheckpoint(partition=partition, epochs=epochs):
                self.logs[partition].epochs = epochs
            case RaiseLogStart(partition=partition, offset=offset):
                log = self.logs[partition]
                log.log_start_offset = offset
                log.log_end_offset = max(log.log_end_offset, offset)
                log.batches = [batch for batch in log.batches if batch.last_offset >= offset]
            case WriteHighWatermarks(high_watermarks=high_watermarks):
                self.high_watermarks = dict(high_watermarks)

    def load(self) -> tuple[LoadedLog, ...]:
        """Deletes the clean-shutdown file and returns what is there."""
        was_clean, self.is_clean = self.is_clean, False
        return tuple(
            LoadedLog(
                partition=partition,
                topic_id=log.topic_id,
                is_clean=was_clean,
                batches=tuple(log.batches),
                log_start_offset=log.log_start_offset,
                log_end_offset=log.log_end_offset,
                epochs=log.epochs,
                log_start_checkpoint=log.log_start_offset,
                high_watermark_checkpoint=self.high_watermarks.get(partition, Offset(0)),
                recovery_point=log.synced_end_offset,
            )
            for partition, log in sorted(self.logs.items())
        )

    def previous_broker_epoch(self) -> BrokerEpoch | None:
        """Returns what the clean-shutdown file proves."""
        return self.clean_epoch if self.is_clean else None

    def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Syncs everything and writes the clean-shutdown file."""
        for log in self.logs.values():
            log.synced_end_offset = log.log_end_offset
        self.clean_epoch = broker_epoch
        self.is_clean = True

    def crash(self, mode: CrashMode) -> None:
        """Loses what the mode says."""
        if mode is CrashMode.POWER_LOSS:
            for log in self.logs.values():
                log.cut(log.synced_end_offset)

    def read(self, partition: TopicPartition, span: LogSpan | None) -> tuple[BatchDescriptor, ...]:
        """Returns the batches that a span names."""
        if span is None:
            return ()
        return tuple(
            batch for batch in self.logs[partition].batches if span.base_offset <= batch.base_offset < span.end_offset
        )
