"""A broker's disk as the core sees it: batch descriptors with a synced part, checkpoints, the clean-shutdown file.

Appends and truncations reach the page cache; a sync makes the log as it is then durable. Checkpoints, directory names
and the clean-shutdown file are durable as soon as they are written, because ``laststand.emulator.storage`` syncs each
of them. One name is not: that of the segment with which a log starts again (``RestartLog``), until the log or its
directory is synced. So a power loss takes batches away, brings back those of a truncation, or leaves a log that has no
segment. A replaced disk is empty.

On a disk with an ordered journal (``DiskModel``) nothing is brought back and no name is lost: a cut and a log that
starts again are followed by a checkpoint of recovery points, and syncing that commits them, too.
"""

from typing import Final

from laststand.emulator.core import effects, inputs
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry, LogSpan
from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import BrokerEpoch, CauseId, Offset, TopicId, TopicPartition
from laststand.emulator.storage.recovery import with_found_epochs

_NEVER: Final = (1 << 63) - 1
"""Default of ``flush.messages``."""


class StoredLog:
    """One partition directory.

    Attributes:
        topic_id: in ``partition.metadata``.
        batches: as a reader sees them now.
        durable: those that survive any power loss. Not a prefix of ``batches`` after an unsynced truncation.
        synced: how many of ``batches``, from the first on, are among them; a batch that came again is not.
        recovery_point: everything below is synced.
        log_start_offset: as known to the process.
        log_start_checkpoint: as a successor will know it.
        segment_base: base offset of the segment file, where a log without batches ends.
        epochs: the leader epoch checkpoint.
        is_named: whether a power loss leaves the segment file its name.
        flush_messages: synced, within the append, after so many records (``flush.messages``).
    """

    __slots__ = (
        "batches",
        "durable",
        "epochs",
        "flush_messages",
        "is_named",
        "log_end_offset",
        "log_start_checkpoint",
        "log_start_offset",
        "recovery_point",
        "segment_base",
        "synced",
        "topic_id",
    )

    def __init__(self, topic_id: TopicId, *, base_offset: Offset) -> None:
        self.topic_id = topic_id
        self.batches: list[BatchDescriptor] = []
        self.durable: tuple[BatchDescriptor, ...] = ()
        self.synced = 0
        self.recovery_point = base_offset
        self.log_start_offset = base_offset
        self.log_start_checkpoint = Offset(0)
        self.log_end_offset = base_offset
        self.segment_base = base_offset
        self.epochs: tuple[EpochEntry, ...] = ()
        self.is_named = True
        self.flush_messages = _NEVER

    def truncate(self, offset: Offset) -> None:
        """Drops batches that reach ``offset``; the log ends there."""
        while self.batches and self.batches[-1].last_offset >= offset:
            self.batches.pop()
        self.synced = min(self.synced, len(self.batches))
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)

    def drop_oldest(self, count: int, *, base_offset: Offset) -> None:
        """Drops the first ``count`` batches; the oldest segment that is left starts at ``base_offset``."""
        dropped = {batch.base_offset for batch in self.batches[:count]}
        del self.batches[:count]
        self.synced = max(0, self.synced - count)
        self.durable = tuple(batch for batch in self.durable if batch.base_offset not in dropped)
        self.segment_base = base_offset
        self.recovery_point = max(self.recovery_point, base_offset)
        self.is_named = True

    def sync(self) -> None:
        """Makes the content that a reader sees durable."""
        self.durable = tuple(self.batches)
        self.synced = len(self.batches)
        self.recovery_point = self.log_end_offset
        self.is_named = True

    def lose_unsynced(self, keep: Keep, exact: ExactLoss, *, model: DiskModel) -> None:
        """Leaves what a power loss leaves, after recovery.

        Recovery drops a batch that was cut (``torn``), and ends at the first page that is missing (``pages``).
        """
        may_undo = not model.has_ordered_journal
        if may_undo and not self.is_named and exact.names is NamesFate.UNDONE:
            self.batches = []
            self.segment_base = self.log_start_checkpoint
        elif may_undo and self.synced < len(self.durable) and exact.truncation is TruncationFate.UNDONE:
            self.batches = list(self.durable)
        else:
            unsynced = len(self.batches) - self.synced
            survivors = {Keep.NONE: 0, Keep.TORN: unsynced - 1}.get(keep, min(exact.kept, unsynced - 1))
            del self.batches[self.synced + max(0, survivors) :]
        self.durable = tuple(self.batches)
        self.synced = len(self.batches)
        self.recover()

    def checkpoint_start(self) -> None:
        """Enters the log's start into the checkpoint, where its first segment does not say it already."""
        self.log_start_checkpoint = self.log_start_offset if self.log_start_offset > self.segment_base else Offset(0)

    def recover(self) -> None:
        """Finds the log's end from its batches, as opening the files does; a log that ends below its start is emptied.

        Opening a log after an unclean end syncs its directory.
        """
        self.is_named = True
        self.log_end_offset = self.batches[-1].next_offset if self.batches else self.segment_base
        if self.log_end_offset < self.log_start_checkpoint:
            self.batches, self.durable, self.synced = [], (), 0
            self.log_end_offset = self.segment_base = self.log_start_checkpoint
        self.log_start_offset = max(self.log_start_checkpoint, self.segment_base)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)


_WRITES: Final = (
    effects.CreateLog,
    effects.AppendToLog,
    effects.WriteEpochCheckpoint,
    effects.WriteHighWatermarks,
    effects.WriteLogCheckpoints,
)


class Disk:
    """Survives the process.

    Attributes:
        logs: partition directories.
        strays: those that were set aside.
        high_watermarks: ``replication-offset-checkpoint``.
        generation: rises when the disk is replaced.
        room: bytes that may still be written; ``None`` if that has no limit.
    """

    def __init__(self) -> None:
        self.room: int | None = None
        self.logs: dict[TopicPartition, StoredLog] = {}
        self.strays: dict[inputs.StrayLog, StoredLog] = {}
        self.high_watermarks: dict[TopicPartition, Offset] = {}
        self.generation = 0
        self._clean_epoch: BrokerEpoch | None = None
        self._is_clean = False
        self._was_clean = False

    def take_room(self, effect: effects.Effect) -> bool:
        """Takes up the bytes that an effect writes, if it writes any; returns whether there was room for them.

        A checkpoint takes the place of the one before: it needs room, and takes none up.
        """
        if self.room is None or not isinstance(effect, _WRITES):
            return True
        size = sum(batch.size for batch in effect.batches) if isinstance(effect, effects.AppendToLog) else 0
        has_room = max(size, 1) <= self.room
        self.room = self.room - size if has_room else 0
        return has_room

    # --- Effects of the core ----------------------------------------------------------------------------------------

    def create(self, effect: effects.CreateLog) -> None:
        """Makes a partition directory."""
        self.logs[effect.partition] = StoredLog(effect.topic_id, base_offset=Offset(0))

    def delete(self, effect: effects.DeleteLog) -> None:
        """Removes a partition directory."""
        del self.logs[effect.partition]

    def rename_stray(self, effect: effects.RenameStrayLog) -> None:
        """Sets a partition directory aside."""
        log = self.logs.pop(effect.partition)
        self.strays[inputs.StrayLog(partition=effect.partition, topic_id=log.topic_id)] = log

    def delete_stray(self, effect: effects.DeleteStrayLog) -> None:
        """Removes a stray log."""
        self.strays.pop(inputs.StrayLog(partition=effect.partition, topic_id=effect.topic_id), None)

    def append(self, effect: effects.AppendToLog) -> None:
        """Appends to the page cache."""
        log = self.logs[effect.partition]
        if log.batches and effect.batches[0].base_offset < log.batches[-1].next_offset:
            raise InvariantError(f"{effect} goes below the end {log.log_end_offset} of the file")
        log.batches.extend(effect.batches)
        log.log_end_offset = effect.batches[-1].next_offset
        if log.log_end_offset - log.recovery_point >= log.flush_messages:
            log.sync()

    def truncate(self, effect: effects.TruncateLog) -> None:
        """Cuts a log in the page cache."""
        self.logs[effect.partition].truncate(effect.offset)

    def restart(self, effect: effects.RestartLog) -> None:
        """Replaces a log's segments by an empty one. Those that went are gone for good; the new one may go, too."""
        old = self.logs[effect.partition]
        new = self.logs[effect.partition] = StoredLog(old.topic_id, base_offset=effect.offset)
        new.epochs = old.epochs
        new.flush_messages = old.flush_messages
        new.is_named = False
        new.log_start_checkpoint = old.log_start_checkpoint

    def recover(self, effect: effects.RecoverLog) -> inputs.LogRecovered:
        """Reads a log through from its recovery point on; what a disk has here is never bad."""
        log = self.logs[effect.partition]
        scanned = [batch for batch in log.batches if batch.last_offset >= log.recovery_point]
        return inputs.LogRecovered(
            cause_id=CauseId("recover"),
            partition=effect.partition,
            leader_epoch=effect.leader_epoch,
            scanned_from=min(log.recovery_point, log.log_end_offset),
            batch_count=len(scanned),
            bad_offset=None,
        )

    def write_epochs(self, effect: effects.WriteEpochCheckpoint) -> None:
        """Rewrites a leader epoch checkpoint, which syncs the directory."""
        log = self.logs[effect.partition]
        log.epochs = effect.epochs
        log.is_named = True

    def raise_log_start(self, effect: effects.RaiseLogStart) -> None:
        """Notes that records below an offset are deleted; the segment stays."""
        log = self.logs[effect.partition]
        log.log_start_offset = effect.offset
        log.recovery_point = max(log.recovery_point, effect.offset)

    def write_high_watermarks(self, effect: effects.WriteHighWatermarks) -> None:
        """Rewrites the high-watermark checkpoint."""
        self.high_watermarks = dict(effect.high_watermarks)

    def write_checkpoints(self, _: effects.WriteLogCheckpoints) -> None:
        """Rewrites the log-start checkpoint; recovery points are kept exact here."""
        for log in self.logs.values():
            log.checkpoint_start()

    # --- Life of the process ----------------------------------------------------------------------------------------

    def load(self, *, trims_epochs: bool = False) -> tuple[inputs.LoadedLog, ...]:
        """Deletes the clean-shutdown file, recovers the logs and returns them.

        Args:
            trims_epochs: as the switch ``recovery_trims_epochs``.
        """
        was_clean, self._is_clean = self._is_clean, False
        self._was_clean = was_clean
        loaded = []
        for partition, log in sorted(self.logs.items()):
            log.recover()
            if not was_clean:
                log.epochs = with_found_epochs(log.epochs, log.batches, trims_first=trims_epochs)
            loaded.append(
                inputs.LoadedLog(
                    partition=partition,
                    topic_id=log.topic_id,
                    is_clean=was_clean,
                    batches=tuple(log.batches),
                    log_start_offset=log.log_start_offset,
                    log_end_offset=log.log_end_offset,
                    epochs=log.epochs,
                    log_start_checkpoint=log.log_start_checkpoint,
                    high_watermark_checkpoint=self.high_watermarks.get(partition, Offset(0)),
                    recovery_point=log.recovery_point,
                )
            )
        return tuple(loaded)

    def previous_broker_epoch(self) -> BrokerEpoch | None:
        """Returns the broker epoch that the clean-shutdown file proves."""
        return self._clean_epoch if self._is_clean else None

    @property
    def is_clean(self) -> bool:
        """The clean-shutdown file exists."""
        return self._is_clean

    def sync(self) -> None:
        """Writes the page cache back, as the kernel does now and then."""
        for log in self.logs.values():
            log.sync()

    def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Syncs everything and writes the clean-shutdown file."""
        self.sync()
        for log in self.logs.values():
            log.checkpoint_start()
        self._clean_epoch = broker_epoch
        self._is_clean = True

    def renew_proof(self, broker_epoch: BrokerEpoch) -> None:
        """Writes another epoch into the clean-shutdown file, which must be there or have been when logs were loaded."""
        assert self._is_clean or self._was_clean
        self._clean_epoch = broker_epoch
        self._is_clean = True

    def lose_power(self, keep: Keep, exact: ExactLoss, *, model: DiskModel = DiskModel.POSIX) -> None:
        """Loses what is not synced of every log."""
        for log in self.logs.values():
            log.lose_unsynced(keep, exact, model=model)

    def replace(self) -> None:
        """Puts an empty disk in its place."""
        self.logs = {}
        self.strays = {}
        self.high_watermarks = {}
        self.room = None
        self.generation += 1
        self._clean_epoch = None
        self._is_clean = False

    def read(self, partition: TopicPartition, span: LogSpan | None) -> tuple[BatchDescriptor, ...]:
        """Returns the batches that a span names."""
        if span is None:
            return ()
        batches = self.logs[partition].batches
        first = len(batches)
        while first > 0 and batches[first - 1].base_offset >= span.base_offset:
            first -= 1
        return tuple(batch for batch in batches[first:] if batch.base_offset < span.end_offset)


def unsynced_batches(disk: Disk) -> int:
    """Returns the most batches that a power loss could take from one log."""
    return max((len(log.batches) - log.synced for log in disk.logs.values()), default=0)
