"""A broker's disk as the core sees it: batch descriptors with a synced part, checkpoints, the clean-shutdown file.

A log has segment files, rolled by ``segment.bytes``. Appends and truncations reach the page cache; a sync makes the log
as it then is durable, and a roll has the earlier segments synced in the background. Checkpoints, directory names and
the clean-shutdown file are durable as soon as they are written, because ``laststand.emulator.storage`` syncs each of
them. The name of a new segment (after a roll, or after ``RestartLog``) is not durable until the log is synced beyond
it, or its directory is synced. So a power loss may remove batches from the end of each segment, bring back truncated
ones, leave a hole before an existing segment, remove the newest segments, or leave a log without segments. A replaced
disk is empty.

On a disk with an ordered journal (``DiskModel``) no truncation is undone: a checkpoint of recovery points follows a
truncation, and its sync commits the truncation, too. A name is lost there only if nothing at all was synced since.
"""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core import effects, inputs
from laststand.emulator.core.batch import BatchDescriptor, EpochEntry, LogSpan
from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import BrokerEpoch, CauseId, Offset, TopicId, TopicPartition
from laststand.emulator.storage.recovery import with_found_epochs
from laststand.emulator.storage.segment_rules import has_hole, is_segment_full

_NEVER: Final = (1 << 63) - 1
"""Default of ``flush.messages``."""

_LARGEST_SEGMENT: Final = 1 << 30
"""Default of ``segment.bytes``."""


class Journal:
    """The journal of a disk's file system, and counts of events of segments; shared by all logs of the disk.

    Attributes:
        commits: number of commits of the journal so far, each by a sync of any file.
        marks: how often each event happened to a segment.
    """

    __slots__ = ("commits", "marks")

    def __init__(self) -> None:
        self.commits = 0
        self.marks: dict[str, int] = {}

    def mark(self, name: str) -> None:
        """Counts an event of a segment."""
        self.marks[name] = self.marks.get(name, 0) + 1


class SegmentFile:
    """One segment file of a log.

    Attributes:
        base_offset: offset in the segment's name.
        count: number of the log's batches in the segment.
        size: their bytes.
        durable: batches that survive any power loss. Not its first ones after an unsynced truncation.
        synced: number of its batches, from the first on, that are among ``durable``; a batch appended again is not.
        is_named: whether the file's name survives a power loss.
        made_at: commits of the journal when the file was created.
    """

    __slots__ = ("base_offset", "count", "durable", "is_named", "made_at", "size", "synced")

    def __init__(self, base_offset: Offset, *, made_at: int, is_named: bool) -> None:
        self.base_offset = base_offset
        self.count = 0
        self.size = 0
        self.durable: tuple[BatchDescriptor, ...] = ()
        self.synced = 0
        self.is_named = is_named
        self.made_at = made_at

    def lost_name(self, journal: Journal, *, model: DiskModel) -> bool:
        """Returns whether a power loss that undoes changes of names removes the file."""
        return not self.is_named and not (model.has_ordered_journal and journal.commits > self.made_at)


class StoredLog:
    """One partition directory.

    Attributes:
        topic_id: in ``partition.metadata``.
        batches: the batches of all segments, as a reader sees them now.
        segments: in the order of their base offsets; at least one.
        recovery_point: everything below this offset is synced.
        log_start_offset: the log start offset that the process knows.
        log_start_checkpoint: the log start offset that the next process will read.
        epochs: the leader epoch checkpoint.
        flush_messages: number of records after which an append syncs (``flush.messages``).
        segment_bytes: a segment is rolled before it grows past this (``segment.bytes``).
        rolled_to: the base offset of the newest segment, if those before it are still to be synced in the background.
    """

    __slots__ = (
        "_journal",
        "batches",
        "epochs",
        "flush_messages",
        "log_end_offset",
        "log_start_checkpoint",
        "log_start_offset",
        "recovery_point",
        "rolled_to",
        "segment_bytes",
        "segments",
        "topic_id",
    )

    def __init__(self, topic_id: TopicId, journal: Journal, *, base_offset: Offset, is_named: bool = True) -> None:
        self.topic_id = topic_id
        self._journal = journal
        self.batches: list[BatchDescriptor] = []
        self.segments = [SegmentFile(base_offset, made_at=journal.commits, is_named=is_named)]
        self.recovery_point = base_offset
        self.log_start_offset = base_offset
        self.log_start_checkpoint = Offset(0)
        self.log_end_offset = base_offset
        self.epochs: tuple[EpochEntry, ...] = ()
        self.flush_messages = _NEVER
        self.segment_bytes = _LARGEST_SEGMENT
        self.rolled_to: Offset | None = None

    @property
    def segment_base(self) -> Offset:
        """Base offset of the oldest segment, where a log without batches starts."""
        return self.segments[0].base_offset

    @property
    def synced(self) -> int:
        """The number of batches, from the first on, that survive any power loss."""
        count = 0
        for segment in self.segments:
            count += segment.synced
            if segment.synced < segment.count:
                break
        return count

    @property
    def unsynced(self) -> int:
        """Batches that a power loss could take."""
        return sum(segment.count - segment.synced for segment in self.segments)

    def pieces(self) -> Iterator[tuple[SegmentFile, list[BatchDescriptor]]]:
        """Yields every segment with its batches, which are not to be changed."""
        if len(self.segments) == 1:
            yield self.segments[0], self.batches
            return
        first = 0
        for segment in self.segments:
            yield segment, self.batches[first : first + segment.count]
            first += segment.count

    # --- Changes ----------------------------------------------------------------------------------------------------

    def append(self, batches: tuple[BatchDescriptor, ...]) -> None:
        """Appends to the page cache; to a new segment if the newest is full."""
        active = self.segments[-1]
        size = batches[0].size if len(batches) == 1 else sum(batch.size for batch in batches)
        if active.size + size <= self.segment_bytes:
            active.count += len(batches)
            active.size += size
        else:
            for batch in batches:
                self._append_rolling(batch)
        self.batches.extend(batches)
        self.log_end_offset = batches[-1].next_offset
        if self.log_end_offset - self.recovery_point >= self.flush_messages:
            self.sync()

    def _append_rolling(self, batch: BatchDescriptor) -> None:
        active = self.segments[-1]
        if is_segment_full(active.size, batch.size, segment_bytes=self.segment_bytes):
            active = self.roll(batch.base_offset)
        active.count += 1
        active.size += batch.size

    def roll(self, base_offset: Offset) -> SegmentFile:
        """Begins a segment, whose name is not durable; the earlier ones are synced in the background."""
        self._journal.mark("segment:rolled")
        self.rolled_to = base_offset
        self.segments.append(SegmentFile(base_offset, made_at=self._journal.commits, is_named=False))
        return self.segments[-1]

    def sync_rolled(self, end_offset: Offset) -> None:
        """Syncs the segments below ``end_offset``, as the background does after a roll; a synced file keeps its name.

        No effect if the log was truncated, or begun again, since.
        """
        if self.rolled_to is None or self.rolled_to < end_offset:
            return
        if self.rolled_to == end_offset:
            self.rolled_to = None
        for segment, batches in self.pieces():
            if segment.base_offset < end_offset:
                segment.durable, segment.synced, segment.is_named = tuple(batches), segment.count, True
        self._journal.commits += 1
        self.recovery_point = max(self.recovery_point, end_offset)

    def truncate(self, offset: Offset) -> None:
        """Drops batches that reach ``offset``; the log ends there. Removed segments are gone for good."""
        if offset < self.segment_base:
            self.batches = []
            self.segments = [SegmentFile(offset, made_at=self._journal.commits, is_named=False)]
        while self.segments[-1].base_offset > offset:
            del self.batches[len(self.batches) - self.segments.pop().count :]
            self.keep_names()
        active = self.segments[-1]
        while active.count and self.batches[-1].last_offset >= offset:
            active.size -= self.batches.pop().size
            active.count -= 1
        active.synced = min(active.synced, active.count)
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.rolled_to = None
        self._journal.commits += 1  # a checkpoint of recovery points follows

    def drop_oldest(self, count: int) -> None:
        """Drops the first ``count`` segments, for good; the newest is rolled before it goes."""
        if count == len(self.segments):
            self.roll(self.log_end_offset)
        self._journal.mark("segment:expired")
        del self.batches[: sum(segment.count for segment in self.segments[:count])]
        del self.segments[:count]
        self.recovery_point = max(self.recovery_point, self.segment_base)
        self.keep_names()

    def sync(self) -> None:
        """Makes the content that a reader sees durable, and the names of segments that are newer than the last sync."""
        if self.segments[-1].base_offset >= self.recovery_point:
            self.keep_names()
        for segment, batches in self.pieces():
            if segment.synced < segment.count or len(segment.durable) != segment.count:
                segment.durable, segment.synced = tuple(batches), segment.count
        self._journal.commits += 1
        self.recovery_point = self.log_end_offset
        self.rolled_to = None

    def keep_names(self) -> None:
        """Makes the names of all segments durable, as syncing the directory does."""
        self._journal.commits += 1
        for segment in self.segments:
            segment.is_named = True

    # --- After the end of the process ------------------------------------------------------------------------------

    def lose_unsynced(self, keep: Keep, exact: ExactLoss, *, model: DiskModel, holes_end_logs: bool) -> None:
        """Leaves what a power loss leaves of each segment by itself, after recovery.

        Recovery drops an incomplete batch (``torn``), ends a file at the first missing page (``pages``), and drops the
        segments after a file that it shortened. ``holes_end_logs`` decides what happens if a segment lost whole
        batches.
        """
        loses_names = exact.names is NamesFate.UNDONE
        left: list[tuple[SegmentFile, list[BatchDescriptor]]] = []
        is_cut = False
        for segment, batches in self.pieces():
            if loses_names and segment.lost_name(self._journal, model=model):
                self._journal.mark("power_loss:segment")
                continue
            if left and _has_hole(*left[-1], segment.base_offset):
                if is_cut:
                    break
                self._journal.mark("power_loss:hole")
                if holes_end_logs:
                    break
            survivors, is_cut = _surviving_batches(segment, batches, keep, exact, model=model)
            left.append((segment, survivors))
        self.segments = [segment for segment, _ in left]
        self.batches = [batch for _, survivors in left for batch in survivors]
        for segment, survivors in left:
            segment.count = segment.synced = len(survivors)
            segment.size = sum(batch.size for batch in survivors)
            segment.durable = tuple(survivors)
        if not self.segments:
            self.segments = [SegmentFile(self.log_start_checkpoint, made_at=self._journal.commits, is_named=True)]
        self.recover()

    def checkpoint_start(self) -> None:
        """Writes the log start into the checkpoint if it lies above the base offset of the first segment."""
        self.log_start_checkpoint = self.log_start_offset if self.log_start_offset > self.segment_base else Offset(0)

    def recover(self) -> None:
        """Finds the log's end in its newest segment, as opening the files does.

        A log that ends below its start is emptied. Opening a log after an unclean end syncs its directory.
        """
        self.keep_names()
        newest = self.segments[-1]
        self.log_end_offset = self.batches[-1].next_offset if newest.count else newest.base_offset
        if self.log_end_offset < self.log_start_checkpoint:
            self.batches = []
            self.segments = [SegmentFile(self.log_start_checkpoint, made_at=self._journal.commits, is_named=True)]
            self.log_end_offset = self.log_start_checkpoint
        self.log_start_offset = max(self.log_start_checkpoint, self.segment_base)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.rolled_to = None


def _surviving_batches(
    segment: SegmentFile, batches: list[BatchDescriptor], keep: Keep, exact: ExactLoss, *, model: DiskModel
) -> tuple[list[BatchDescriptor], bool]:
    """Returns the batches of one file that are complete after a power loss, and whether bytes follow them."""
    may_undo = not model.has_ordered_journal and exact.truncation is TruncationFate.UNDONE
    if may_undo and segment.synced < len(segment.durable):
        return list(segment.durable), False
    unsynced = segment.count - segment.synced
    if unsynced == 0:
        return batches, False
    survivors = {Keep.NONE: 0, Keep.TORN: unsynced - 1}.get(keep, min(exact.kept, unsynced - 1))
    return batches[: segment.synced + max(0, survivors)], keep in (Keep.TORN, Keep.PAGES)


def _has_hole(segment: SegmentFile, batches: list[BatchDescriptor], next_base: Offset) -> bool:
    return has_hole(batches[-1].next_offset if batches else segment.base_offset, next_base)


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
        journal: of its file system.
        room: bytes that may still be written; ``None`` if that has no limit.
    """

    def __init__(self) -> None:
        self.journal = Journal()
        self.room: int | None = None
        self.logs: dict[TopicPartition, StoredLog] = {}
        self.strays: dict[inputs.StrayLog, StoredLog] = {}
        self.high_watermarks: dict[TopicPartition, Offset] = {}
        self.generation = 0
        self._clean_epoch: BrokerEpoch | None = None
        self._is_clean = False
        self._was_clean = False

    def take_room(self, effect: effects.Effect) -> bool:
        """Uses the room for the bytes that an effect writes, if any; returns whether there was enough room.

        A checkpoint replaces the previous one: it needs room while it is written, but uses none afterwards.
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
        self.logs[effect.partition] = StoredLog(effect.topic_id, self.journal, base_offset=Offset(0))
        self.journal.commits += 1

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
        log.append(effect.batches)

    def truncate(self, effect: effects.TruncateLog) -> None:
        """Truncates a log in the page cache."""
        self.logs[effect.partition].truncate(effect.offset)

    def restart(self, effect: effects.RestartLog) -> None:
        """Replaces a log's segments by an empty one. The old ones are gone for good; the new one may be lost, too."""
        old = self.logs[effect.partition]
        new = self.logs[effect.partition] = StoredLog(
            old.topic_id, self.journal, base_offset=effect.offset, is_named=False
        )
        new.epochs = old.epochs
        new.flush_messages = old.flush_messages
        new.segment_bytes = old.segment_bytes
        new.log_start_checkpoint = old.log_start_checkpoint
        self.journal.commits += 1  # a checkpoint of recovery points follows

    def recover(self, effect: effects.RecoverLog) -> inputs.LogRecovered:
        """Reads a log from its recovery point on; this disk has no damaged batches."""
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
        log.keep_names()

    def raise_log_start(self, effect: effects.RaiseLogStart) -> None:
        """Raises the log start: records below it are deleted, though their segment stays."""
        log = self.logs[effect.partition]
        log.log_start_offset = effect.offset
        log.recovery_point = max(log.recovery_point, effect.offset)

    def write_high_watermarks(self, effect: effects.WriteHighWatermarks) -> None:
        """Rewrites the high-watermark checkpoint."""
        self.high_watermarks = dict(effect.high_watermarks)
        self.journal.commits += 1

    def write_checkpoints(self, _: effects.WriteLogCheckpoints) -> None:
        """Rewrites the log-start checkpoint; recovery points are kept exact here."""
        self.journal.commits += 1
        for log in self.logs.values():
            log.checkpoint_start()

    # --- Life of the process ----------------------------------------------------------------------------------------

    def load(self, *, trims_epochs: bool = False) -> tuple[inputs.LoadedLog, ...]:
        """Deletes the clean-shutdown file, recovers the logs and returns them.

        Args:
            trims_epochs: value of the switch ``recovery_trims_epochs``.
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
        """Writes another epoch into the clean-shutdown file, which exists, or existed when logs were loaded."""
        assert self._is_clean or self._was_clean
        self._clean_epoch = broker_epoch
        self._is_clean = True

    def lose_power(
        self,
        keep: Keep,
        exact: ExactLoss,
        *,
        model: DiskModel = DiskModel.POSIX,
        holes_end_logs: bool = True,
    ) -> None:
        """Loses the unsynced data of every log, and recovers the logs.

        Args:
            keep: shape of the loss.
            exact: the loss.
            model: the file system.
            holes_end_logs: value of the switch of that name.
        """
        for log in self.logs.values():
            log.lose_unsynced(keep, exact, model=model, holes_end_logs=holes_end_logs)

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
    """Returns the largest number of batches that a power loss could take from one log."""
    return max((log.unsynced for log in disk.logs.values()), default=0)
