"""Makes a served log from what storage found: trims and clamps (Kafka's ``LogLoader``, steps 5-7).

A checkpoint may be ahead of the log after page cache was lost, and may always be behind it, so each is checked.
"""

from laststand.emulator.core import effects, events, inputs
from laststand.emulator.core.broker.replicas.epoch_cache import LeaderEpochCache
from laststand.emulator.core.broker.replicas.log_writer import write_epochs
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import Offset, TopicId, TopicPartition


def open_log(turn: Turn, loaded: inputs.LoadedLog, topic_id: TopicId, *, switches: Switches) -> ReplicaLog:
    """Returns the log that serves a loaded one.

    Epoch entries that start at or above the log end are dropped, including a restarted leader's own empty epoch; of
    those that start below the log start checkpoint only the last is kept. The high watermark is clamped between log
    start and log end.
    """
    log = _empty_log(loaded.partition, topic_id, switches)
    log.load(
        loaded.batches,
        log_start_offset=loaded.log_start_offset,
        log_end_offset=loaded.log_end_offset,
        producers=loaded.producers,
        producers_offset=loaded.producers_offset,
        now_ms=turn.now_ms,
    )
    log.epochs = LeaderEpochCache(loaded.epochs)
    is_shorter = log.epochs.truncate_from_end(loaded.log_end_offset)
    if log.forget_epochs_below(loaded.log_start_checkpoint) or is_shorter:
        write_epochs(turn, log)  # a dropped entry must not return once the log is longer
    log.high_watermark = min(max(loaded.high_watermark_checkpoint, log.log_start_offset), log.log_end_offset)
    _record_opened(turn, log, loaded)
    return log


def create_log(turn: Turn, partition: TopicPartition, topic_id: TopicId, *, switches: Switches) -> ReplicaLog:
    """Makes a new, empty log."""
    log = _empty_log(partition, topic_id, switches)
    turn.write(effects.CreateLog(partition=partition, topic_id=topic_id))
    _record_opened(turn, log, loaded=None)
    return log


def _empty_log(partition: TopicPartition, topic_id: TopicId, switches: Switches) -> ReplicaLog:
    return ReplicaLog(
        partition,
        topic_id,
        keeps_epoch_when_empty=switches.empty_logs_keep_epoch,
        lower_start_is_durable=switches.lower_start_is_durable,
    )


def _record_opened(turn: Turn, log: ReplicaLog, loaded: inputs.LoadedLog | None) -> None:
    turn.record(
        events.LogOpened(
            cause_id=turn.cause_id,
            topic=log.partition.topic,
            partition=log.partition.partition,
            # The directory's topic id, which is another topic's if strays are left in place (S27).
            topic_id=log.topic_id if loaded is None else loaded.topic_id or log.topic_id,
            is_clean=loaded is None or loaded.is_clean,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
            recovery_point=Offset(0) if loaded is None else loaded.recovery_point,
            epochs=tuple((entry.leader_epoch, entry.start_offset) for entry in log.epochs.entries),
        )
    )
