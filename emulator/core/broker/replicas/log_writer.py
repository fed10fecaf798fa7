"""Changes of a replica's log, each with the file effect and the event that belong to it.

The index in memory, the effect that the driver executes and the line of the event log are made here together, so that
they cannot disagree.
"""

from enum import Enum

from laststand.emulator.core import effects, events
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.types import BrokerId, LeaderEpoch, Offset, RequestId, TruncationReason


class CutDurability(Enum):
    """The durability of a truncation: whether a power loss may undo it."""

    SYNCED = "synced"
    """The log is synced before anything else is written about it."""

    CACHED = "cached"
    """It is synced with what is appended next, if at all (Kafka's ``LocalLog.truncateTo``): S35."""


def write_epochs(turn: Turn, log: ReplicaLog) -> None:
    """Rewrites the leader epoch checkpoint."""
    turn.write(effects.WriteEpochCheckpoint(partition=log.partition, epochs=log.epochs.entries))


def append_batches(
    turn: Turn,
    log: ReplicaLog,
    batches: tuple[BatchDescriptor, ...],
    *,
    role: events.AppendRole,
    current_leader_epoch: LeaderEpoch,
    contents: tuple[bytes, ...] | None = None,
    request_id: RequestId | None = None,
) -> None:
    """Appends batches that have been checked, entering new leader epochs before the batch that starts them.

    ``contents`` and ``request_id`` locate the bytes of batches that did not come with the step's input, as in
    ``effects.AppendToLog``.
    """
    partition = log.partition
    epochs_changed = False
    for batch in batches:
        if batch.leader_epoch != log.epochs.latest_epoch:
            epochs_changed |= log.epochs.assign(batch.leader_epoch, batch.base_offset)
        log.append(batch, now_ms=turn.now_ms)
        turn.record(
            events.BatchAppended(
                cause_id=turn.cause_id,
                topic=partition.topic,
                partition=partition.partition,
                topic_id=log.topic_id,
                role=role,
                base_offset=batch.base_offset,
                last_offset=batch.last_offset,
                leader_epoch=batch.leader_epoch,
                current_leader_epoch=current_leader_epoch,
                crc=batch.crc,
                record_count=batch.record_count,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
            )
        )
    turn.write(effects.AppendToLog(partition=partition, batches=batches, contents=contents, request_id=request_id))
    if epochs_changed:
        write_epochs(turn, log)
    turn.grown[partition] = None


def truncate_log(
    turn: Turn,
    log: ReplicaLog,
    offset: Offset,
    *,
    reason: TruncationReason,
    leader: BrokerId | None,
    leader_epoch: LeaderEpoch,
    durability: CutDurability,
) -> None:
    """Cuts the log at ``offset``, or restarts it there where that is below its start."""
    old_end_offset, high_watermark = log.log_end_offset, log.high_watermark
    restarts = offset < log.log_start_offset
    epochs_changed = log.truncate_to(offset, now_ms=turn.now_ms)
    if log.log_end_offset != old_end_offset:
        effect = effects.RestartLog if restarts else effects.TruncateLog
        turn.write(effect(partition=log.partition, offset=offset))
        if durability is CutDurability.SYNCED:
            turn.write(effects.SyncLog(partition=log.partition))
        if restarts:
            _write_lower_start(turn, log)
        _record_truncation(
            turn,
            log,
            reason=reason,
            old_end_offset=old_end_offset,
            high_watermark=high_watermark,
            leader=leader,
            leader_epoch=leader_epoch,
        )
    if epochs_changed:
        write_epochs(turn, log)


def restart_log(
    turn: Turn, log: ReplicaLog, offset: Offset, *, leader: BrokerId | None, leader_epoch: LeaderEpoch
) -> None:
    """Drops everything and starts again, empty, at ``offset``."""
    old_end_offset, high_watermark = log.log_end_offset, log.high_watermark
    is_lower = offset < log.log_start_offset
    epochs_changed = log.restart_at(offset)
    turn.write(effects.RestartLog(partition=log.partition, offset=offset))
    if is_lower:
        _write_lower_start(turn, log)
    _record_truncation(
        turn,
        log,
        reason=TruncationReason.RESTARTED,
        old_end_offset=old_end_offset,
        high_watermark=high_watermark,
        leader=leader,
        leader_epoch=leader_epoch,
    )
    if epochs_changed:
        write_epochs(turn, log)


def _write_lower_start(turn: Turn, log: ReplicaLog) -> None:
    """Writes the log start checkpoint before the epochs: a killed process would reopen with the old start (S51)."""
    if log.lower_start_is_durable:
        turn.write(effects.WriteLogCheckpoints())


def raise_log_start(turn: Turn, log: ReplicaLog, offset: Offset) -> None:
    """Raises the log start to ``offset``, so that the records below are deleted."""
    turn.write(effects.RaiseLogStart(partition=log.partition, offset=offset))
    follow_segments(turn, log, offset)


def follow_segments(turn: Turn, log: ReplicaLog, offset: Offset) -> None:
    """Raises the log start to ``offset``, as storage has deleted the segments below."""
    old = log.log_start_offset
    if log.raise_log_start(offset):
        write_epochs(turn, log)
    turn.record(
        events.LogStartOffsetRaised(
            cause_id=turn.cause_id,
            topic=log.partition.topic,
            partition=log.partition.partition,
            topic_id=log.topic_id,
            old=old,
            new=log.log_start_offset,
        )
    )


def _record_truncation(
    turn: Turn,
    log: ReplicaLog,
    *,
    reason: TruncationReason,
    old_end_offset: Offset,
    high_watermark: Offset,
    leader: BrokerId | None,
    leader_epoch: LeaderEpoch,
) -> None:
    turn.record(
        events.LogTruncated(
            cause_id=turn.cause_id,
            topic=log.partition.topic,
            partition=log.partition.partition,
            topic_id=log.topic_id,
            reason=reason,
            old_end_offset=old_end_offset,
            new_end_offset=log.log_end_offset,
            high_watermark=high_watermark,
            leader=leader,
            leader_epoch=leader_epoch,
        )
    )
