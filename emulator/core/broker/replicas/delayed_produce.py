"""Produce requests under way, and their answers (Kafka's ``DelayedProduce``).

Requests with acks 0 and 1 are answered in the step that appends. A request with acks=all waits until each partition has
committed its batch or can no longer do so. The number of waiting requests is bounded: past the limit, the oldest one
times out early. After any timeout the batch may still commit.
"""

import heapq
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, Protocol

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.batch import InvalidBatch
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.produce import Appended, Refused, append_batch, commit_result
from laststand.emulator.core.broker.replicas.producer_state import Verification
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.transaction_messages import AddPartitions
from laststand.emulator.core.types import (
    Acks,
    BrokerId,
    CauseId,
    LeaderEpoch,
    Offset,
    ProducerIdentity,
    RequestId,
    TopicId,
    TopicPartition,
)

WAITING_MAX: Final = 10_000
"""Waiting acks=all requests per broker."""


class VerifyTransaction(Protocol):
    """Asks a transaction's coordinator about partitions; calls ``done`` with the refused ones, now or later."""

    def __call__(
        self,
        turn: Turn,
        request: AddPartitions,
        *,
        knows_abortable: bool,
        done: Callable[[Turn, Mapping[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Asks."""


class _Operation:
    """A produce request: the partition and outcome of each batch, and the number of outcomes still open."""

    __slots__ = (
        "appended",
        "cause_id",
        "errors",
        "guards",
        "hosts",
        "is_late",
        "number",
        "open_count",
        "refusals",
        "request",
        "request_id",
    )

    def __init__(self, number: int, request_id: RequestId, request: messages.ProduceRequest, cause_id: CauseId) -> None:
        self.number = number
        self.request_id = request_id
        self.request = request
        self.cause_id = cause_id
        self.errors: list[ErrorCode | None] = []
        self.appended: list[Appended | None] = []
        self.hosts: list[Partition | None] = []
        self.open_count = 0
        self.guards: dict[TopicPartition, Verification] = {}
        self.refusals: dict[TopicPartition, ErrorCode] = {}
        self.is_late = False

    def cause_of(self, asked: messages.ProducePartition) -> CauseId:
        """Returns the cause id of the effects and events that a batch leads to."""
        return asked.cause_id or self.cause_id


class ProduceHandler:
    """Receives produce requests, keeps those that have to wait, and answers all of them.

    A batch that is meant for another topic of the same name is refused before anything else is checked, and the
    answer names no leader (``KafkaApis.handleProduceRequest``): epochs of different topics do not compare. ``verify``
    is ``None`` where transactions are not verified.

    Attributes:
        timers: when each request times out.
    """

    def __init__(self, hosted: HostedPartitions, switches: Switches, verify: VerifyTransaction | None = None) -> None:
        self._hosted = hosted
        self._verify = verify
        self._switches = switches
        self._numbers = count()
        self._waiting: dict[int, _Operation] = {}
        self._by_partition: dict[TopicPartition, list[tuple[Offset, int, int]]] = {}
        self.timers: TimerQueue[int] = TimerQueue()

    def __len__(self) -> int:
        return len(self._waiting)

    def waiting_on(self, name: TopicPartition) -> int:
        """Returns the number of acks=all appends that wait for a partition's high watermark."""
        return len(self._by_partition.get(name, ()))

    def handle_request(self, turn: Turn, request_id: RequestId, request: messages.ProduceRequest) -> None:
        """Appends batches, once their transaction is verified, and answers or waits."""
        operation = _Operation(next(self._numbers), request_id, request, turn.cause_id)
        if request.transactional_id is None or not self._begin_verification(turn, operation, request.transactional_id):
            self.append_verified(turn, operation)

    def _begin_verification(self, turn: Turn, operation: _Operation, transactional_id: str) -> bool:
        """Starts to verify a transaction that has no records yet in some of the partitions (KIP-890)."""
        if self._verify is None:
            return False
        request = operation.request
        adds_partitions = request.transaction_version == 2
        producer: ProducerIdentity | None = None
        for asked in request.partitions:
            batch, name = asked.batch, asked.topic_partition
            partition = self._hosted.find_leader(name)
            if isinstance(partition, ErrorCode) or isinstance(batch, InvalidBatch):
                continue
            if batch.producer_id is None or not batch.is_transactional:
                continue
            producer = ProducerIdentity(batch.producer_id, batch.producer_epoch)
            outcome = partition.log.producers.verify(
                producer, sequence=batch.base_sequence, adds_partition=adds_partitions, now_ms=turn.now_ms
            )
            if isinstance(outcome, Verification):
                operation.guards[name] = outcome
            elif outcome is not ErrorCode.NONE:
                operation.refusals[name] = outcome
        if producer is None or not operation.guards:
            return False

        def done(turn: Turn, errors: Mapping[TopicPartition, ErrorCode]) -> None:
            turn.cause_id = operation.cause_id
            operation.refusals.update(errors)
            self.append_verified(turn, operation)

        question = AddPartitions(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            partitions=tuple(operation.guards),
            is_verify_only=not adds_partitions,
            client_version=request.transaction_version,
        )
        operation.is_late = True
        self._verify(turn, question, knows_abortable=request.knows_abortable, done=done)
        return True

    def append_verified(self, turn: Turn, operation: _Operation) -> None:
        """Appends the batches whose transaction is verified or needs no verification, and answers or waits."""
        request = operation.request
        waits: list[tuple[int, Offset]] = []
        # The request's bytes are found by partition, so a partition may occur only once.
        repeats = len({asked.topic_partition for asked in request.partitions}) < len(request.partitions)
        for index, asked in enumerate(request.partitions):
            turn.cause_id = operation.cause_of(asked)
            host = self._hosted.get(asked.topic_partition)
            operation.hosts.append(host)
            if not request.is_acks_valid:
                outcome: Appended | Refused = Refused(ErrorCode.INVALID_REQUIRED_ACKS)
            elif repeats:
                outcome = Refused(ErrorCode.INVALID_REQUEST)
            elif self._is_meant_for_another(asked):
                outcome = Refused(ErrorCode.UNKNOWN_TOPIC_ID)
            elif asked.topic_partition in operation.refusals:
                outcome = Refused(operation.refusals[asked.topic_partition])
            else:
                outcome = append_batch(
                    turn,
                    self._hosted,
                    asked,
                    acks=request.acks,
                    is_guarded=self._verify is not None,
                    guard=operation.guards.get(asked.topic_partition),
                    request_id=operation.request_id if operation.is_late else None,
                )
            if isinstance(outcome, Refused):
                error: ErrorCode | None = outcome.error
                operation.appended.append(None)
            else:
                error = ErrorCode.NONE
                operation.appended.append(outcome)
                if request.acks == Acks.ALL:
                    error = commit_result(host, outcome.required_offset)
            operation.errors.append(error)
            if error is None and isinstance(outcome, Appended):
                waits.append((index, outcome.required_offset))
        turn.cause_id = operation.cause_id
        if waits:
            self._wait(turn, operation, waits)
        else:
            self._answer(turn, operation)

    def _is_meant_for_another(self, asked: messages.ProducePartition) -> bool:
        if asked.topic_id is None or not self._switches.produce_topic_id:
            return False
        return asked.topic_id != self._hosted.topic_id_of(asked.topic_partition)

    def _wait(self, turn: Turn, operation: _Operation, waits: list[tuple[int, Offset]]) -> None:
        if len(self._waiting) >= WAITING_MAX:
            self._time_out(turn, next(iter(self._waiting)))
        operation.open_count = len(waits)
        self._waiting[operation.number] = operation
        self.timers.set(operation.number, at_ms=turn.now_ms + operation.request.timeout_ms)
        for index, required_offset in waits:
            name = operation.request.partitions[index].topic_partition
            heapq.heappush(self._by_partition.setdefault(name, []), (required_offset, operation.number, index))

    def check(self, turn: Turn, name: TopicPartition) -> None:
        """Checks the requests that wait for a partition whose high watermark, ISR or role changed."""
        waiting = self._by_partition.get(name)
        if waiting is None:
            return
        hosted = self._hosted.get(name)
        while waiting:
            required_offset, number, index = waiting[0]
            operation = self._waiting.get(number)
            if operation is not None:
                # By identity: a topic of the same name may have been created again since.
                host = operation.hosts[index]
                error = commit_result(host if host is hosted else None, required_offset)
                if error is None:
                    return
                self._settle(turn, operation, index, error)
            heapq.heappop(waiting)
        del self._by_partition[name]

    def _settle(self, turn: Turn, operation: _Operation, index: int, error: ErrorCode) -> None:
        operation.errors[index] = error
        operation.open_count -= 1
        if operation.open_count == 0:
            del self._waiting[operation.number]
            self.timers.cancel(operation.number)
            self._answer(turn, operation)

    def handle_timer(self, turn: Turn) -> None:
        """Answers the requests that have timed out."""
        for number in self.timers.pop_due(now_ms=turn.now_ms):
            self._time_out(turn, number)

    def _time_out(self, turn: Turn, number: int) -> None:
        operation = self._waiting.pop(number)
        self.timers.cancel(number)
        for index, error in enumerate(operation.errors):
            if error is None:
                self._forget(operation, index)
        self._answer(turn, operation)

    def _forget(self, operation: _Operation, index: int) -> None:
        name = operation.request.partitions[index].topic_partition
        waiting = [entry for entry in self._by_partition.get(name, ()) if entry[1] != operation.number]
        heapq.heapify(waiting)
        if waiting:
            self._by_partition[name] = waiting
        else:
            self._by_partition.pop(name, None)

    def _answer(self, turn: Turn, operation: _Operation) -> None:
        request = operation.request
        answers: list[messages.ProducePartitionResponse] = []
        failed = False
        for asked, settled, appended in zip(request.partitions, operation.errors, operation.appended, strict=True):
            error = ErrorCode.REQUEST_TIMED_OUT if settled is None else settled
            failed = failed or error is not ErrorCode.NONE
            answers.append(self._partition_answer(turn, operation, asked, error, appended))
        if request.acks != Acks.NONE:
            turn.send(
                effects.SendResponse(
                    request_id=operation.request_id,
                    response=messages.ProduceResponse(partitions=tuple(answers)),
                    cause_id=operation.cause_id,
                )
            )
        elif failed:
            turn.send(effects.CloseConnection(request_id=operation.request_id))

    def _partition_answer(
        self,
        turn: Turn,
        operation: _Operation,
        asked: messages.ProducePartition,
        error: ErrorCode,
        appended: Appended | None,
    ) -> messages.ProducePartitionResponse:
        partition = self._hosted.get(asked.topic_partition)
        record_count = getattr(asked.batch, "record_count", 0)
        topic_id = self._hosted.image.topics.get(asked.topic, TopicId(""))
        turn.record(
            events.ProduceAnswered(
                cause_id=operation.cause_of(asked),
                topic=asked.topic,
                partition=asked.partition,
                topic_id=topic_id if partition is None else partition.log.topic_id,
                acks=operation.request.acks,
                error=error.name,
                base_offset=None if appended is None else appended.base_offset,
                record_count=record_count,
                high_watermark=Offset(0) if partition is None else partition.log.high_watermark,
                committed_isr=() if partition is None else partition.committed_isr,
                leader_epoch=None if partition is None else partition.leader_epoch,
            )
        )
        leader: BrokerId | None = None
        leader_epoch: LeaderEpoch | None = None
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and not self._is_meant_for_another(asked):
            state = self._hosted.image.partitions.get(asked.topic_partition)
            if state is not None:
                leader, leader_epoch = state.leader, state.leader_epoch
        return messages.ProducePartitionResponse(
            topic=asked.topic,
            partition=asked.partition,
            error=error,
            base_offset=None if appended is None else appended.base_offset,
            log_start_offset=None if partition is None else partition.log.log_start_offset,
            current_leader=leader,
            current_leader_epoch=leader_epoch,
            duplicate_timestamp_ms=None if appended is None else appended.duplicate_timestamp_ms,
        )
