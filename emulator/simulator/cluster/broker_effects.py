"""Effects of a broker other than messages: on its disk, its metadata stream, retention, and its own end.

A disk takes no virtual time, but the result of loading or recovery is a separate input, after everything else at that
instant. A process that has ended by then does not get the input.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from laststand.emulator.core import effects, events, inputs, messages
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import CauseId, Offset, TopicPartition
from laststand.emulator.simulator.disk.disk import Disk, StoredLog
from laststand.emulator.simulator.disk.retention import RETENTION, apply_retention
from laststand.emulator.simulator.network.streams import Streams
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import BrokerNode
from laststand.emulator.storage.coordinator_records import decode_log
from laststand.emulator.storage.record_batch import stamp

ROLLED_SYNCED_MS: Final = 250
"""After how long the segments before a roll are synced: processes look after their logs as often."""


class BrokerEffects:
    """Executes the effects of all brokers of a cluster.

    Args:
        queue: virtual time.
        streams: of metadata.
        retention_check_interval_ms: by a broker's process, from its start on.
        trims_epochs: when a broker recovers logs, as its switch ``recovery_trims_epochs``.
        step: hands an input to a broker.
        end: ends a broker's process.
        write: writes an event of a broker.

    Attributes:
        contents: batches that brokers made themselves, by checksum.
    """

    def __init__(
        self,
        queue: EventQueue,
        streams: Streams,
        *,
        retention_check_interval_ms: int,
        trims_epochs: Callable[[BrokerNode], bool],
        step: Callable[[BrokerNode, inputs.BrokerInput], None],
        end: Callable[[BrokerNode, events.IncarnationEnd], None],
        write: Callable[[BrokerNode, events.Event], None],
    ) -> None:
        self._queue = queue
        self._streams = streams
        self._retention_check_interval_ms = retention_check_interval_ms
        self._trims_epochs = trims_epochs
        self._step = step
        self._end = end
        self._write = write
        self.contents: dict[int, bytes] = {}

    def execute(self, node: BrokerNode, effect: effects.Effect) -> None:
        """Executes one effect.

        Raises:
            InvariantError: a broker has no such effect.
        """
        disk = node.disk
        match effect:
            case effects.AppendToLog(partition=partition, batches=batches, contents=contents):
                for batch, content in zip(batches, contents or (), strict=bool(contents)):
                    self.contents[batch.crc] = content
                log = disk.logs[partition]
                before, rolled_to = log.recovery_point, log.rolled_to
                disk.append(effect)
                self._record_flush(node, partition, since=before)
                if log.rolled_to is not None and log.rolled_to != rolled_to:
                    self._sync_rolled_later(node, partition, log, log.rolled_to)
            case effects.WriteEpochCheckpoint():
                disk.write_epochs(effect)
            case effects.WriteHighWatermarks():
                disk.write_high_watermarks(effect)
            case effects.TruncateLog():
                disk.truncate(effect)
            case effects.RestartLog():
                disk.restart(effect)
            case effects.SyncLog(partition=partition):
                before = disk.logs[partition].recovery_point
                disk.logs[partition].sync()
                self._record_flush(node, partition, since=before)
            case effects.CreateLog(partition=partition):
                disk.create(effect)
                self._set_limits(node, partition, disk.logs[partition])
            case effects.DeleteLog():
                disk.delete(effect)
            case effects.RenameStrayLog():
                disk.rename_stray(effect)
            case effects.DeleteStrayLog():
                disk.delete_stray(effect)
            case effects.RaiseLogStart():
                disk.raise_log_start(effect)
            case effects.WriteLogCheckpoints():
                disk.write_checkpoints(effect)
            case effects.OpenMetadataStream():
                self._streams.open(node, effect)
            case effects.LoadLogs():
                for partition, log in disk.logs.items():
                    self._set_limits(node, partition, log)
                logs = disk.load(trims_epochs=self._trims_epochs(node))
                loaded = inputs.LogsLoaded(cause_id=CauseId("load"), logs=logs, strays=tuple(disk.strays))
                self._deliver_later(node, loaded)
                self._retain_later(node)
            case effects.RecoverLog():
                self._deliver_later(node, disk.recover(effect))
            case effects.ReadRecords(partition=partition, span=span):
                batches = disk.read(partition, span)
                content = b"".join(stamp(self.contents[batch.crc], batch) for batch in batches)
                read = inputs.RecordsRead(
                    cause_id=CauseId("load"),
                    partition=partition,
                    leader_epoch=effect.leader_epoch,
                    records=decode_log(content, topic=partition.topic),
                )
                self._deliver_later(node, read)
            case effects.CloseLogs(broker_epoch=broker_epoch):
                disk.close(broker_epoch)
                self._end(node, events.IncarnationEnd.STOPPED)
            case effects.StopNode(proven_epoch=proven_epoch):
                if proven_epoch is not None:
                    disk.renew_proof(proven_epoch)
                self._end(node, events.IncarnationEnd.STOPPED)
            case _:
                raise InvariantError(f"a broker has no effect {effect}")

    def _deliver_later(self, node: BrokerNode, incoming: inputs.BrokerInput) -> None:
        """Delivers an input after everything else at this instant, if the process still runs then."""
        incarnation = node.incarnation

        def deliver() -> None:
            if node.incarnation == incarnation:
                self._step(node, incoming)

        self._queue.after(0, deliver)

    def sync(self, node: BrokerNode) -> None:
        """Makes the page cache durable; a running process gets the completion."""
        before = {partition: log.recovery_point for partition, log in node.disk.logs.items()}
        node.disk.sync()
        if node.broker is not None:
            for partition, since in before.items():
                self._record_flush(node, partition, since=since)

    def _record_flush(self, node: BrokerNode, partition: TopicPartition, *, since: Offset) -> None:
        log = node.disk.logs[partition]
        if log.recovery_point > since:
            flushed = events.LogFlushed(
                cause_id=CauseId("flush"),
                topic=partition.topic,
                partition=partition.partition,
                topic_id=log.topic_id,
                recovery_point=log.recovery_point,
            )
            self._write(node, flushed)

    def _sync_rolled_later(
        self, node: BrokerNode, partition: TopicPartition, log: StoredLog, end_offset: Offset
    ) -> None:
        """Syncs the segments before a roll at the process's next background sync, if the process still runs then."""
        incarnation = node.incarnation

        def sync() -> None:
            if node.incarnation != incarnation or node.broker is None or node.disk.logs.get(partition) is not log:
                return
            if node.is_paused:
                self._sync_rolled_later(node, partition, log, end_offset)
                return
            before = log.recovery_point
            log.sync_rolled(end_offset)
            self._record_flush(node, partition, since=before)

        self._queue.after(ROLLED_SYNCED_MS, sync)

    def _set_limits(self, node: BrokerNode, partition: TopicPartition, log: StoredLog) -> None:
        assert node.broker is not None, "a broker that wants something runs"
        topic = node.broker.topic_properties(partition.topic)
        log.flush_messages, log.segment_bytes = topic.flush_messages, topic.segment_bytes

    def _retain_later(self, node: BrokerNode) -> None:
        """Applies retention from time to time, for as long as this process runs."""
        incarnation = node.incarnation

        def high_watermark_of(name: TopicPartition) -> Offset:
            hosted = None if node.broker is None else node.broker.partition(name)
            return Offset(0) if hosted is None or hosted.is_recovering else hosted.log.high_watermark

        def retain() -> None:
            if node.incarnation != incarnation or node.broker is None:
                return
            if not node.is_paused:
                raised = apply_retention(
                    node.disk,
                    topic_properties_of=node.broker.topic_properties,
                    high_watermark_of=high_watermark_of,
                    now_ms=node.clock.local_ms(self._queue.now_ms),
                )
                for partition, start in raised:
                    deleted = inputs.SegmentsDeleted(cause_id=RETENTION, partition=partition, log_start_offset=start)
                    self._step(node, deleted)
            self._retain_later(node)

        self._queue.after(self._retention_check_interval_ms, retain)


def with_batches(disk: Disk, effect: effects.SendResponse) -> effects.SendResponse:
    """Returns a response with the batches that a fetch reads from the disk."""
    response = effect.response
    if not isinstance(response, messages.FetchResponse):
        return effect
    if all(answer.span is None for answer in response.partitions):
        return effect
    partitions = tuple(
        msgspec.structs.replace(answer, span=None, batches=disk.read(answer.topic_partition, answer.span))
        for answer in response.partitions
    )
    return msgspec.structs.replace(effect, response=msgspec.structs.replace(response, partitions=partitions))
