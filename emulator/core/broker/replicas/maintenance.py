"""Periodic work of a broker, from the first applied difference on.

The tasks remove lagging members from ISRs, write high watermarks and log checkpoints, and expire idle producers. Each
is due again one interval after it ran (Kafka's ``ReplicaManager`` and ``LogManager`` schedule them).
"""

from enum import Enum
from typing import Final, assert_never

from laststand.emulator.core import effects
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.isr_changes import maybe_shrink_isr
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import Offset, TopicPartition

_PRODUCER_EXPIRATION_CHECK_MS: Final = 600_000


class _Task(Enum):
    SHRINK_ISR = "shrink_isr"
    CHECKPOINT_HIGH_WATERMARKS = "checkpoint_high_watermarks"
    CHECKPOINT_LOGS = "checkpoint_logs"
    EXPIRE_PRODUCERS = "expire_producers"


class Maintenance:
    """The periodic tasks of one broker.

    Attributes:
        timers: when each task is due; empty before ``start``.
    """

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions) -> None:
        self._properties = config.properties
        self._hosted = hosted
        self.timers: TimerQueue[_Task] = TimerQueue()
        self._checkpointed: tuple[tuple[TopicPartition, Offset], ...] = ()

    def start(self, turn: Turn) -> None:
        """Schedules all tasks, each for the first time after one interval."""
        for task in _Task:
            self.timers.set(task, at_ms=turn.now_ms + self._interval_ms(task))

    def _interval_ms(self, task: _Task) -> int:
        match task:
            case _Task.SHRINK_ISR:
                return max(1, self._properties.replica_lag_time_max_ms // 2)
            case _Task.CHECKPOINT_HIGH_WATERMARKS:
                return self._properties.replica_high_watermark_checkpoint_interval_ms
            case _Task.CHECKPOINT_LOGS:
                return self._properties.log_flush_offset_checkpoint_interval_ms
            case _Task.EXPIRE_PRODUCERS:
                return _PRODUCER_EXPIRATION_CHECK_MS

    def handle_timer(self, turn: Turn) -> None:
        """Handles each timer that is due."""
        for task in self.timers.pop_due(now_ms=turn.now_ms):
            self._do(turn, task)
            self.timers.set(task, at_ms=turn.now_ms + self._interval_ms(task))

    def _do(self, turn: Turn, task: _Task) -> None:
        match task:
            case _Task.SHRINK_ISR:
                self._shrink_isrs(turn)
            case _Task.CHECKPOINT_HIGH_WATERMARKS:
                self.checkpoint_high_watermarks(turn)
            case _Task.CHECKPOINT_LOGS:
                turn.write(effects.WriteLogCheckpoints())
            case _Task.EXPIRE_PRODUCERS:
                expiration_ms = self._properties.producer_id_expiration_ms
                for partition in self._hosted:
                    partition.log.producers.expire(now_ms=turn.now_ms, expiration_ms=expiration_ms)
            case _:
                assert_never(task)

    def _shrink_isrs(self, turn: Turn) -> None:
        for partition in self._hosted:
            maybe_shrink_isr(turn, partition)
            if partition.is_leader:
                # Only time ends the wait for a replica outside the ISR that has stopped to fetch.
                partition.advance_high_watermark(turn)

    def checkpoint_high_watermarks(self, turn: Turn) -> None:
        """Writes the high watermark checkpoint, unless no high watermark changed since the last write."""
        high_watermarks = tuple(sorted((partition.name, partition.log.high_watermark) for partition in self._hosted))
        if high_watermarks != self._checkpointed:
            self._checkpointed = high_watermarks
            turn.write(effects.WriteHighWatermarks(high_watermarks=high_watermarks))
