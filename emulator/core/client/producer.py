"""A producer: batches go in, each comes out as ``ok``, ``fail`` or ``info``.

An operation is ``fail`` only where no attempt can have reached a log, and ``info`` where one may have. With idempotence
a batch keeps its sequence number over retries. If the broker's sequence and the producer's disagree
(OUT_OF_ORDER_SEQUENCE_NUMBER for the oldest batch, UNKNOWN_PRODUCER_ID, or a numbered batch that timed out), the
producer waits until that partition has no request in flight, raises its epoch by itself and numbers unfinished batches
from 0 again (KIP-360, ``TransactionManager.bumpIdempotentProducerEpoch``). Every partition adopts the raised epoch when
it next has no request in flight.

Bounds: ``buffer_records_max`` records unfinished, ``max_in_flight`` requests per partition, one metadata request and
one request for a producer id at a time.
"""

from typing import Final, assert_never

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.metadata import ClientMetadata, PartitionLeader
from laststand.emulator.core.client.outcomes import Verdict, judge
from laststand.emulator.core.client.producer_queue import Flight, PartitionQueue, PendingBatch
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.types import (
    Acks,
    BrokerId,
    CauseId,
    CorrelationId,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    RequestFailure,
    TopicPartition,
)

_PRODUCER_EPOCH_MAX: Final = 2**15 - 1

_METADATA: Final = "metadata"
_IDENTITY: Final = "identity"


class Producer:
    """State machine of one producer.

    Args:
        settings: of the producer.
        bootstrap: brokers to request metadata from.
        topics: the topics that it will write to.
        awaited: topics that may not exist yet: metadata requests are repeated until they are known.
        encode: encodes a batch.

    Attributes:
        metadata: its view of the cluster.
        unfinished_records: records offered and not completed. Invariant: never negative; the shell offers no
            more records at ``settings.buffer_records_max``.
    """

    def __init__(
        self,
        *,
        settings: ProducerSettings,
        bootstrap: tuple[BrokerId, ...],
        topics: tuple[str, ...],
        awaited: frozenset[str] = frozenset(),
        encode: steps.BatchEncoder,
    ) -> None:
        self.metadata = ClientMetadata(bootstrap=bootstrap)
        self.unfinished_records = 0
        self._settings = settings
        self._topics = topics
        self._awaited = awaited
        self._encode = encode
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._flights: dict[CorrelationId, Flight] = {}
        self._asked: dict[CorrelationId, tuple[str, BrokerId]] = {}
        self._next_correlation = 0
        self._timers: TimerQueue[str | TopicPartition] = TimerQueue()
        self._not_before_ms = {_METADATA: 0, _IDENTITY: 0}
        self._producer_id: ProducerId | None = None
        self._producer_epoch = ProducerEpoch(0)
        self._effects: list[steps.ProducerEffect] = []

    @property
    def has_room(self) -> bool:
        """The buffer has room for more records."""
        return self.unfinished_records < self._settings.buffer_records_max

    def may_send_to(self, partition: TopicPartition) -> bool:
        """Returns whether records may be offered for a partition; of an awaited topic, once the topic is known."""
        return partition.topic not in self._awaited or self.metadata.leader_of(partition) is not None

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None``."""
        return self._timers.earliest_ms

    def step(self, incoming: steps.ProducerInput, *, now_ms: int) -> list[steps.ProducerEffect]:
        """Handles one input; returns the effects, in order."""
        match incoming:
            case inputs.Started():
                self._want_metadata(now_ms)
                if self._settings.enable_idempotence:
                    self._want_identity(now_ms)
            case steps.RecordsOffered():
                self._offer(incoming, now_ms)
            case inputs.ResponseReceived():
                self._answered(incoming, now_ms)
            case inputs.RequestFailed(correlation_id=correlation_id, failure=failure):
                self._unanswered(correlation_id, failure, now_ms)
            case inputs.TimerFired():
                self._fire(now_ms)
            case steps.Abandoned():
                self._abandon()
            case _:
                assert_never(incoming)
        effects, self._effects = self._effects, []
        return effects

    # --- Offering and sending -------------------------------------------------------------------------------------

    def _offer(self, offered: steps.RecordsOffered, now_ms: int) -> None:
        queue = self._queues.setdefault(offered.partition, PartitionQueue())
        batch = PendingBatch(offered, deadline_ms=now_ms + self._settings.delivery_timeout_ms)
        queue.batches.append(batch)
        self.unfinished_records += batch.record_count
        self._effects.append(batch.recorded(OperationType.INVOKE, self.metadata))
        self._pump(offered.partition, now_ms)

    def _pump(self, partition: TopicPartition, now_ms: int) -> None:
        queue = self._queues[partition]
        leadership = self._ready_leader(partition, queue, now_ms)
        if leadership is not None and leadership.leader is not None:
            while (batch := queue.next_sendable(max_in_flight=self._settings.max_in_flight)) is not None:
                self._send_batch(partition, queue, batch, leadership.leader, leadership)
        self._set_timer(partition, queue, now_ms)

    def _ready_leader(self, partition: TopicPartition, queue: PartitionQueue, now_ms: int) -> PartitionLeader | None:
        if not queue.batches or now_ms < queue.retry_at_ms:
            return None
        if self._settings.enable_idempotence and not self._has_epoch(queue, now_ms):
            return None
        leadership = self.metadata.leader_of(partition)
        if leadership is None or leadership.leader is None:
            self._want_metadata(now_ms)
            return None
        return leadership

    def _has_epoch(self, queue: PartitionQueue, now_ms: int) -> bool:
        """Starts a new epoch for the queue if needed and possible; returns whether batches may be numbered."""
        if self._producer_id is None:
            self._want_identity(now_ms)
            return False
        if queue.needs_new_epoch:
            if queue.flights:
                return False
            if queue.producer_epoch == self._producer_epoch and not self._raise_epoch(now_ms):
                return False
            queue.start_epoch(self._producer_epoch)
        elif queue.producer_epoch != self._producer_epoch and not queue.flights and not queue.batches[0].is_retry:
            queue.start_epoch(self._producer_epoch)
        return True

    def _raise_epoch(self, now_ms: int) -> bool:
        if self._producer_epoch == _PRODUCER_EPOCH_MAX:
            self._producer_id = None
            self._want_identity(now_ms)
            return False
        self._producer_epoch = ProducerEpoch(self._producer_epoch + 1)
        return True

    def _send_batch(
        self,
        partition: TopicPartition,
        queue: PartitionQueue,
        batch: PendingBatch,
        leader: BrokerId,
        leadership: PartitionLeader,
    ) -> None:
        if batch.descriptor is None:
            is_idempotent = self._settings.enable_idempotence
            batch.descriptor = self._encode(
                steps.BatchContent(
                    partition=partition,
                    first_record_id=batch.first_record_id,
                    record_count=batch.record_count,
                    producer_id=self._producer_id if is_idempotent else None,
                    producer_epoch=queue.producer_epoch if is_idempotent else None,
                    base_sequence=queue.assign_sequence(batch) if is_idempotent else None,
                )
            )
        flight = batch.fly(leader, leadership)
        request = messages.ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            partitions=(flight.content,),
        )
        correlation_id = self._send(leader, request, batch.operation_id)
        if self._settings.acks is Acks.NONE:
            batch.attempts.append(flight.attempt(ErrorCode.NONE.name))
            self._finish(OperationType.OK, partition, batch)
            return
        self._flights[correlation_id] = flight
        queue.flights.add(correlation_id)
        batch.in_flight = correlation_id

    def _send(self, destination: BrokerId, request: messages.Request, cause_id: CauseId) -> CorrelationId:
        self._next_correlation += 1
        correlation_id = CorrelationId(self._next_correlation)
        self._effects.append(
            effects.SendRequest(
                destination=NodeId(destination),
                correlation_id=correlation_id,
                request=request,
                timeout_ms=self._settings.request_timeout_ms,
                cause_id=cause_id,
            )
        )
        return correlation_id

    # --- Answers --------------------------------------------------------------------------------------------------

    def _answered(self, incoming: inputs.ResponseReceived, now_ms: int) -> None:
        match incoming.response:
            case messages.ProduceResponse(partitions=partitions):
                self._batch_answered(incoming.correlation_id, partitions[0], now_ms)
            case messages.MetadataResponse() as response:
                del self._asked[incoming.correlation_id]
                self._learn(response, now_ms)
            case messages.InitProducerIdResponse() as response:
                _, broker = self._asked.pop(incoming.correlation_id)
                self._identify(response, broker, now_ms)
            case other:
                raise InvariantError(f"a producer was answered {other!r}")

    def _batch_answered(
        self, correlation_id: CorrelationId, answer: messages.ProducePartitionResponse, now_ms: int
    ) -> None:
        flight = self._flights.pop(correlation_id)
        queue = self._land(correlation_id, flight)
        batch = flight.batch
        if batch.is_finished:  # it was given up meanwhile
            self._pump(flight.partition, now_ms)
            return
        flight.answered(answer.error)
        match judge(answer.error):
            case Verdict.ACKNOWLEDGED:
                self._finish(OperationType.OK, flight.partition, batch, base_offset=answer.base_offset)
            case Verdict.RETRY:
                self._retry(queue, batch, now_ms)
            case Verdict.RETRY_ELSEWHERE:
                self._retry(queue, batch, now_ms)
                self._want_metadata(now_ms)
            case Verdict.SEQUENCE_LOST if self._settings.enable_idempotence:
                # A batch behind an unfinished one may just have arrived early; before the oldest one there is a gap.
                queue.needs_new_epoch |= answer.error is ErrorCode.UNKNOWN_PRODUCER_ID or queue.batches[0] is batch
                self._retry(queue, batch, now_ms)
            case Verdict.SEQUENCE_LOST | Verdict.HOPELESS:
                self._give_up(flight.partition, batch, answer.error.name)
            case unknown:
                assert_never(unknown)
        if answer.current_leader is not None and answer.current_leader_epoch is not None:
            assert batch.topic_id is not None  # it was sent
            known = self.metadata.leader_of(flight.partition)
            self.metadata.hint(
                flight.partition,
                PartitionLeader(
                    topic_id=batch.topic_id, leader=answer.current_leader, leader_epoch=answer.current_leader_epoch
                ),
            )
            if self.metadata.leader_of(flight.partition) != known:
                queue.retry_at_ms = now_ms  # KIP-951: no backoff towards a new leader
        self._pump(flight.partition, now_ms)

    def _unanswered(self, correlation_id: CorrelationId, failure: RequestFailure, now_ms: int) -> None:
        if correlation_id in self._asked:
            kind, broker = self._asked.pop(correlation_id)
            self.metadata.broker_failed(broker, now_ms=now_ms)
            self._ask_later(kind, now_ms)
            return
        flight = self._flights.pop(correlation_id, None)
        if flight is None:  # acks=0: finished when it was sent, and refused by closing the connection
            if failure is RequestFailure.DISCONNECTED:
                self._want_metadata(now_ms)
            return
        queue = self._land(correlation_id, flight)
        self.metadata.broker_failed(BrokerId(flight.node), now_ms=now_ms)
        if not flight.batch.is_finished:
            flight.unanswered(failure.name)
            self._retry(queue, flight.batch, now_ms)
            self._want_metadata(now_ms)
        self._pump(flight.partition, now_ms)

    def _land(self, correlation_id: CorrelationId, flight: Flight) -> PartitionQueue:
        queue = self._queues[flight.partition]
        queue.flights.remove(correlation_id)
        flight.batch.in_flight = None
        return queue

    def _retry(self, queue: PartitionQueue, batch: PendingBatch, now_ms: int) -> None:
        batch.is_retry = True
        queue.retry_at_ms = now_ms + self._settings.retry_backoff_ms

    # --- Metadata and identity ------------------------------------------------------------------------------------

    def _want_metadata(self, now_ms: int) -> None:
        self._ask(_METADATA, now_ms)

    def _want_identity(self, now_ms: int) -> None:
        self._ask(_IDENTITY, now_ms)

    def _ask(self, kind: str, now_ms: int) -> None:
        if any(asked == kind for asked, _ in self._asked.values()):
            return
        if now_ms < self._not_before_ms[kind]:
            self._timers.set(kind, at_ms=self._not_before_ms[kind])
            return
        request = (
            messages.MetadataRequest(topics=self._topics) if kind == _METADATA else messages.InitProducerIdRequest()
        )
        broker = self.metadata.next_broker(now_ms=now_ms)
        self._asked[self._send(broker, request, CauseId(kind))] = (kind, broker)

    def _ask_later(self, kind: str, now_ms: int) -> None:
        self._not_before_ms[kind] = now_ms + self._settings.retry_backoff_ms
        self._timers.set(kind, at_ms=self._not_before_ms[kind])

    def _learn(self, response: messages.MetadataResponse, now_ms: int) -> None:
        before = dict(self.metadata.leaders)
        self.metadata.learn(response)
        self._not_before_ms[_METADATA] = now_ms + self._settings.retry_backoff_ms
        is_missing_some = any(topic not in self.metadata.partition_counts for topic in self._awaited)
        age_ms = self._settings.retry_backoff_ms if is_missing_some else self._settings.metadata_max_age_ms
        self._timers.set(_METADATA, at_ms=now_ms + age_ms)
        for partition, queue in self._queues.items():
            if self.metadata.leader_of(partition) != before.get(partition):
                queue.retry_at_ms = now_ms  # KIP-951: no backoff towards a new leader
            self._pump(partition, now_ms)

    def _identify(self, response: messages.InitProducerIdResponse, broker: BrokerId, now_ms: int) -> None:
        if response.error is not ErrorCode.NONE:
            self.metadata.broker_failed(broker, now_ms=now_ms)
            self._ask_later(_IDENTITY, now_ms)
            return
        self._producer_id = response.producer_id
        self._producer_epoch = response.producer_epoch
        for partition, queue in self._queues.items():
            queue.needs_new_epoch = True
            queue.producer_epoch = None
            self._pump(partition, now_ms)

    # --- Endings --------------------------------------------------------------------------------------------------

    def _fire(self, now_ms: int) -> None:
        for key in self._timers.pop_due(now_ms=now_ms):
            if isinstance(key, TopicPartition):
                self._expire(key, now_ms)
                self._pump(key, now_ms)
            else:
                self._ask(key, now_ms)

    def _set_timer(self, partition: TopicPartition, queue: PartitionQueue, now_ms: int) -> None:
        if not queue.batches:
            self._timers.cancel(partition)
            return
        deadline_ms = queue.batches[0].deadline_ms  # the oldest is due first
        waits_for_backoff = queue.retry_at_ms > now_ms
        self._timers.set(partition, at_ms=min(deadline_ms, queue.retry_at_ms) if waits_for_backoff else deadline_ms)

    def _expire(self, partition: TopicPartition, now_ms: int) -> None:
        queue = self._queues[partition]
        while queue.batches and queue.batches[0].deadline_ms <= now_ms:
            self._give_up(partition, queue.batches[0], "DELIVERY_TIMED_OUT")

    def _abandon(self) -> None:
        for partition, queue in self._queues.items():
            while queue.batches:
                self._give_up(partition, queue.batches[0], "ABANDONED")
            self._timers.cancel(partition)

    def _give_up(self, partition: TopicPartition, batch: PendingBatch, error: str) -> None:
        if batch.in_flight is not None:
            self._flights[batch.in_flight].unanswered("UNANSWERED")
        # Later batches are numbered after this one, and it may or may not be in the log.
        self._queues[partition].needs_new_epoch |= batch.base_sequence is not None
        self._finish(batch.given_up, partition, batch, error=error)

    def _finish(
        self,
        type_: OperationType,
        partition: TopicPartition,
        batch: PendingBatch,
        *,
        base_offset: Offset | None = None,
        error: str | None = None,
    ) -> None:
        self._queues[partition].batches.remove(batch)
        batch.is_finished = True
        self.unfinished_records -= batch.record_count
        self._effects.append(batch.recorded(type_, self.metadata, base_offset=base_offset, error=error))
