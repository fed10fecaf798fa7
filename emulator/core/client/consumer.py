"""A consumer: reads each of its partitions from the log start on, below the high watermark, one fetch at a time.

A partition either has a position or none. Without a position, the consumer first requests the log start offset (with
``auto.offset.reset=latest`` the end offset), and the next poll is marked as a *seek*. OFFSET_OUT_OF_RANGE discards the
position; after FENCED_LEADER_EPOCH and similar errors, the consumer requests metadata. A leader may name a follower in
the consumer's rack, which is then read from until a fetch fails, or for ``metadata.max.age.ms`` (KIP-392). A *live*
consumer never ends. A *final* consumer finishes a partition when its position reaches the high watermark in a response,
and records that.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, assert_never

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.metadata import ClientMetadata, PartitionLeader
from laststand.emulator.core.client.settings import ConsumerSettings, OffsetReset
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    CorrelationId,
    IsolationLevel,
    NodeId,
    Offset,
    TopicPartition,
)

LIST_OFFSETS_TIMESTAMP: Final = {
    OffsetReset.EARLIEST: messages.EARLIEST_TIMESTAMP,
    OffsetReset.LATEST: messages.LATEST_TIMESTAMP,
}
"""The timestamp that ListOffsets carries to ask for the log start or end."""

_METADATA: Final = "metadata"


class Phase(Enum):
    """The kind of consumer: live, or final."""

    LIVE = "live"
    FINAL = "final"


class _Reading:
    """The state of one partition: its position, and its unanswered request."""

    def __init__(self, position: Offset | None) -> None:
        self.position = position
        self.is_seek = True
        self.start_offset: Offset | None = None
        self.is_done = False
        self.in_flight: CorrelationId | None = None
        self.retry_at_ms = 0
        self.last_error: str | None = None
        self.read_replica: BrokerId | None = None
        self.read_replica_until_ms = 0


class _Asked:
    """An unanswered request: its partition (``None``: a metadata request), its receiver, and its poll."""

    def __init__(
        self,
        *,
        partition: TopicPartition | None,
        broker: BrokerId,
        operation_id: CauseId,
        leadership: PartitionLeader | None,
    ) -> None:
        self.partition = partition
        self.broker = broker
        self.operation_id = operation_id
        self.leadership = leadership


class Consumer:
    """State machine of one consumer with a fixed assignment.

    Args:
        name: the consumer's, in the history.
        phase: the kind of consumer, live or final.
        settings: of the consumer.
        bootstrap: brokers to request metadata from.
        partitions: the partitions to read.
        positions: start positions; partitions without an entry start by ``auto.offset.reset``.

    Attributes:
        metadata: its view of the cluster.
    """

    def __init__(
        self,
        *,
        name: str,
        phase: Phase,
        settings: ConsumerSettings,
        bootstrap: tuple[BrokerId, ...],
        partitions: tuple[TopicPartition, ...],
        positions: Mapping[TopicPartition, Offset] = MappingProxyType({}),
    ) -> None:
        self.metadata = ClientMetadata(bootstrap=bootstrap)
        self._name = name
        self._phase = phase
        self._settings = settings
        self._readings = {partition: _Reading(positions.get(partition)) for partition in partitions}
        self._topics = tuple(sorted({partition.topic for partition in partitions}))
        self._asked: dict[CorrelationId, _Asked] = {}
        self._next_correlation = 0
        self._timers: TimerQueue[str | TopicPartition] = TimerQueue()
        self._metadata_not_before_ms = 0
        self._effects: list[steps.ConsumerEffect] = []

    @property
    def is_finished(self) -> bool:
        """The consumer has finished every partition; only a final consumer does."""
        return all(reading.is_done for reading in self._readings.values())

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None``."""
        return self._timers.earliest_ms

    def step(self, incoming: steps.ConsumerInput, *, now_ms: int) -> list[steps.ConsumerEffect]:
        """Handles one input; returns the effects, in order."""
        match incoming:
            case inputs.Started():
                self._want_metadata(now_ms)
            case steps.RecordsReceived():
                self._fetched(incoming, now_ms)
            case inputs.ResponseReceived():
                self._answered(incoming, now_ms)
            case inputs.RequestFailed(correlation_id=correlation_id, failure=failure):
                self._unanswered(correlation_id, failure.name, now_ms)
            case inputs.TimerFired():
                for key in self._timers.pop_due(now_ms=now_ms):
                    if isinstance(key, TopicPartition):
                        self._pump(key, now_ms)
                    else:
                        self._want_metadata(now_ms)
            case steps.Abandoned():
                for partition, reading in self._readings.items():
                    self._end(partition, reading, error=reading.last_error or "ABANDONED")
            case _:
                assert_never(incoming)
        effects, self._effects = self._effects, []
        return effects

    # --- Asking ---------------------------------------------------------------------------------------------------

    def _pump(self, partition: TopicPartition, now_ms: int) -> None:
        reading = self._readings[partition]
        if reading.is_done or reading.in_flight is not None:
            return
        if now_ms < reading.retry_at_ms:
            self._timers.set(partition, at_ms=reading.retry_at_ms)
            return
        leadership = self.metadata.leader_of(partition)
        if leadership is None or leadership.leader is None:
            reading.last_error = ErrorCode.LEADER_NOT_AVAILABLE.name
            self._want_metadata(now_ms)
            return
        request = (
            self._list_offsets(partition, leadership)
            if reading.position is None
            else self._fetch(partition, leadership, reading.position)
        )
        destination = leadership.leader
        if isinstance(request, messages.FetchRequest) and reading.read_replica is not None:
            if now_ms < reading.read_replica_until_ms:
                destination = reading.read_replica
            else:
                reading.read_replica = None
        reading.in_flight = self._send(destination, request, partition, leadership)

    def _list_offsets(self, partition: TopicPartition, leadership: PartitionLeader) -> messages.Request:
        position = messages.ListOffsetsPosition(
            topic=partition.topic,
            partition=partition.partition,
            timestamp=LIST_OFFSETS_TIMESTAMP[self._settings.auto_offset_reset],
            current_leader_epoch=leadership.leader_epoch,
        )
        return messages.ListOffsetsRequest(partitions=(position,))

    def _fetch(self, partition: TopicPartition, leadership: PartitionLeader, position: Offset) -> messages.Request:
        target = messages.FetchPartition(
            topic=partition.topic,
            topic_id=leadership.topic_id,
            partition=partition.partition,
            fetch_offset=position,
            current_leader_epoch=leadership.leader_epoch,
            partition_max_bytes=self._settings.max_partition_fetch_bytes,
        )
        # The final consumer reads up to the high watermark, which only the leader knows.
        client_rack = self._settings.client_rack if self._phase is Phase.LIVE else None
        is_committed = self._settings.is_committed_only
        return messages.FetchRequest(
            partitions=(target,),
            max_wait_ms=self._settings.fetch_max_wait_ms,
            isolation_level=IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED,
            client_rack=client_rack,
        )

    def _send(
        self,
        destination: BrokerId,
        request: messages.Request,
        partition: TopicPartition | None,
        leadership: PartitionLeader | None,
    ) -> CorrelationId:
        self._next_correlation += 1
        correlation_id = CorrelationId(self._next_correlation)
        operation_id = CauseId(f"{self._name}:{self._phase.value}:{correlation_id}")
        self._asked[correlation_id] = _Asked(
            partition=partition, broker=destination, operation_id=operation_id, leadership=leadership
        )
        self._effects.append(
            effects.SendRequest(
                destination=NodeId(destination),
                correlation_id=correlation_id,
                request=request,
                timeout_ms=self._settings.request_timeout_ms,
                cause_id=operation_id,
            )
        )
        return correlation_id

    def _want_metadata(self, now_ms: int) -> None:
        if any(asked.partition is None for asked in self._asked.values()):
            return
        if now_ms < self._metadata_not_before_ms:
            self._timers.set(_METADATA, at_ms=self._metadata_not_before_ms)
            return
        broker = self.metadata.next_broker(now_ms=now_ms)
        self._send(broker, messages.MetadataRequest(topics=self._topics), None, None)

    # --- Answers --------------------------------------------------------------------------------------------------

    def _answered(self, incoming: inputs.ResponseReceived, now_ms: int) -> None:
        asked = self._asked.pop(incoming.correlation_id)
        match incoming.response:
            case messages.MetadataResponse() as response:
                self._learn(response, now_ms)
            case messages.ListOffsetsResponse(partitions=partitions) if asked.partition is not None:
                self._listed(asked.partition, partitions[0], now_ms)
            case other:
                raise InvariantError(f"a consumer was answered {other!r}")

    def _learn(self, response: messages.MetadataResponse, now_ms: int) -> None:
        before = dict(self.metadata.leaders)
        self.metadata.learn(response)
        self._metadata_not_before_ms = now_ms + self._settings.retry_backoff_ms
        self._timers.set(_METADATA, at_ms=now_ms + self._settings.metadata_max_age_ms)
        for partition, reading in self._readings.items():
            if self.metadata.leader_of(partition) != before.get(partition):
                reading.retry_at_ms = now_ms
                reading.read_replica = None
            self._pump(partition, now_ms)

    def _listed(self, partition: TopicPartition, result: messages.ListOffsetsResult, now_ms: int) -> None:
        reading = self._readings[partition]
        reading.in_flight = None
        if result.error is ErrorCode.NONE and result.offset is not None:
            reading.position = result.offset
            reading.is_seek = True
            if reading.start_offset is None:
                reading.start_offset = result.offset
        else:
            self._failed(reading, result.error.name, now_ms)
        self._pump(partition, now_ms)

    def _fetched(self, incoming: steps.RecordsReceived, now_ms: int) -> None:
        asked = self._asked.pop(incoming.correlation_id)
        partition, answer = incoming.response.topic_partition, incoming.response
        reading = self._readings[partition]
        reading.in_flight = None
        if reading.is_done:
            return
        if self._settings.is_committed_only:
            self._read(asked, partition, reading, incoming)
        else:
            self._poll(asked, partition, reading, answer=answer, polled=incoming.polled)
        if answer.error is not ErrorCode.NONE:
            # A follower's log may be shorter than the leader's: out of range there only means to ask the leader again.
            if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and reading.read_replica is None:
                reading.position = None
            self._failed(reading, answer.error.name, now_ms)
        elif answer.preferred_read_replica is not None:
            reading.read_replica = answer.preferred_read_replica
            reading.read_replica_until_ms = now_ms + self._settings.metadata_max_age_ms
        else:
            reading.is_seek = False
            if incoming.next_position is not None:
                reading.position = incoming.next_position
            if self._phase is Phase.FINAL and self._is_at_end(reading, answer):
                self._end(partition, reading, error=None)
        self._pump(partition, now_ms)

    def _is_at_end(self, reading: _Reading, answer: messages.FetchPartitionResponse) -> bool:
        return (
            reading.position is not None
            and answer.high_watermark is not None
            and reading.position >= answer.high_watermark
        )

    def _unanswered(self, correlation_id: CorrelationId, failure: str, now_ms: int) -> None:
        asked = self._asked.pop(correlation_id)
        self.metadata.broker_failed(asked.broker, now_ms=now_ms)
        if asked.partition is None:
            self._metadata_not_before_ms = now_ms + self._settings.retry_backoff_ms
            self._timers.set(_METADATA, at_ms=self._metadata_not_before_ms)
            return
        reading = self._readings[asked.partition]
        reading.in_flight = None
        if reading.is_done:
            return
        if reading.position is not None and not self._settings.is_committed_only:
            self._poll(asked, asked.partition, reading, error=failure)
        self._failed(reading, failure, now_ms)
        self._pump(asked.partition, now_ms)

    def _failed(self, reading: _Reading, error: str, now_ms: int) -> None:
        reading.last_error = error
        reading.read_replica = None
        reading.retry_at_ms = now_ms + self._settings.retry_backoff_ms
        self._want_metadata(now_ms)

    # --- History --------------------------------------------------------------------------------------------------

    def _read(
        self, asked: _Asked, partition: TopicPartition, reading: _Reading, incoming: steps.RecordsReceived
    ) -> None:
        if reading.position is None or incoming.next_position is None:
            return
        self._effects.append(
            steps.CommittedReadRecorded(
                operation_id=asked.operation_id,
                partition=partition,
                topic_id=asked.leadership.topic_id if asked.leadership is not None else None,
                node=NodeId(asked.broker),
                position=reading.position,
                next_position=incoming.next_position,
                seek=reading.is_seek,
                batches=incoming.polled,
                high_watermark=incoming.response.high_watermark,
                last_stable_offset=incoming.response.last_stable_offset,
                log_start_offset=incoming.response.log_start_offset,
            )
        )

    def _poll(
        self,
        asked: _Asked,
        partition: TopicPartition,
        reading: _Reading,
        *,
        answer: messages.FetchPartitionResponse | None = None,
        polled: tuple[PolledBatch, ...] = (),
        error: str | None = None,
    ) -> None:
        if reading.position is None:
            raise InvariantError(f"poll of {partition} without a position")
        if answer is not None and answer.error is not ErrorCode.NONE:
            error = answer.error.name
        self._effects.append(
            steps.PollRecorded(
                type=OperationType.OK if error is None else OperationType.INFO,
                operation_id=asked.operation_id,
                partition=partition,
                topic_id=asked.leadership.topic_id if asked.leadership is not None else None,
                node=NodeId(asked.broker),
                leader_epoch=asked.leadership.leader_epoch if asked.leadership is not None else None,
                position=reading.position,
                seek=reading.is_seek,
                high_watermark=answer.high_watermark if answer is not None else None,
                log_start_offset=answer.log_start_offset if answer is not None else None,
                batches=polled,
                error=error,
            )
        )

    def _end(self, partition: TopicPartition, reading: _Reading, *, error: str | None) -> None:
        if self._phase is Phase.LIVE or reading.is_done:
            reading.is_done = True
            return
        reading.is_done = True
        leadership = self.metadata.leader_of(partition)
        self._effects.append(
            steps.FinalReadRecorded(
                type=OperationType.OK if error is None else OperationType.INFO,
                operation_id=CauseId(f"{self._name}:final:{partition}"),
                partition=partition,
                topic_id=leadership.topic_id if leadership is not None else None,
                start_offset=reading.start_offset,
                end_offset=reading.position if error is None else None,
                error=error,
            )
        )
