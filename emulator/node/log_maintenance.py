"""Maintains loaded logs from time to time: due flushes, which are reported, delayed deletions, retention.

Retention drops segments between two turns. The core gets that input before any other one, as it could otherwise offer
records that are gone.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from laststand.emulator.core import events, inputs
from laststand.emulator.core.broker.kraft.broker import Broker
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import Offset, TopicPartition
from laststand.emulator.node.broker_files import BrokerFiles
from laststand.emulator.node.cause_ids import CauseIds
from laststand.emulator.node.turn_loop import monotonic_ms

if TYPE_CHECKING:
    from laststand.emulator.core.broker.zookeeper.broker import ZooKeeperBroker

INTERVAL_S: Final = 0.25
"""Resolution of ``flush.ms``, of what is recorded of flushes, and of delayed deletions."""


class LogMaintenance:
    """Periodic work on a broker's logs.

    Args:
        files: the logs.
        broker: its high watermarks limit retention.
        properties: of the node.
        enqueue_first: adds inputs about deleted segments, ahead of the waiting ones.
        record: writes an event.
    """

    def __init__(
        self,
        files: BrokerFiles,
        broker: "Broker | ZooKeeperBroker",
        properties: NodeProperties,
        *,
        enqueue_first: Callable[[inputs.SegmentsDeleted], None],
        record: Callable[[events.LogFlushed], None],
    ) -> None:
        self._files = files
        self._broker = broker
        self._properties = properties
        self._enqueue_first = enqueue_first
        self._record = record

    async def run(self, causes: CauseIds) -> None:
        """Works until it is cancelled.

        Raises:
            StorageError: the process has to end.
        """
        next_retention_ms = monotonic_ms() + self._properties.log_retention_check_interval_ms
        while True:
            await asyncio.sleep(INTERVAL_S)
            now_ms = monotonic_ms()
            self._files.flush_due(now_ms=now_ms)
            for log, work in self._files.pop_flush_works():
                await asyncio.to_thread(work.run)  # a rolled segment may be large
                log.complete_flush(work)
            self._record_flushes(causes)
            self._files.delete_due(now_ms=now_ms)
            if now_ms >= next_retention_ms:
                next_retention_ms = now_ms + self._properties.log_retention_check_interval_ms
                self._apply_retention(causes)

    def _record_flushes(self, causes: CauseIds) -> None:
        for log, recovery_point in self._files.pop_risen_recovery_points():
            if log.topic_id is not None:
                flushed = events.LogFlushed(
                    cause_id=causes.timer(),
                    topic=log.partition.topic,
                    partition=log.partition.partition,
                    topic_id=log.topic_id,
                    recovery_point=recovery_point,
                )
                self._record(flushed)

    def _apply_retention(self, causes: CauseIds) -> None:
        # Records are dated by the calendar, not by the machine's monotonic clock.
        wall_ms = time.time_ns() // 1_000_000
        for partition, log_start_offset in self._files.apply_retention(self._high_watermark_of, now_ms=wall_ms):
            deleted = inputs.SegmentsDeleted(
                cause_id=causes.timer(), partition=partition, log_start_offset=log_start_offset
            )
            self._enqueue_first(deleted)

    def _high_watermark_of(self, partition: TopicPartition) -> Offset:
        hosted = self._broker.partition(partition)
        # Of a log that its leader reads through nothing is taken away meanwhile.
        return Offset(0) if hosted is None or hosted.is_recovering else hosted.log.high_watermark
