"""Unfinished batches, and a queue of those of one partition, oldest first, with their sequence numbers.

Batches are sent in order, up to ``max_in_flight`` at once. After a failure, the oldest batch is sent alone, until no
failed batch is left. So batches are appended in the order of their sequences (Kafka's ``RecordAccumulator``).
"""

from collections import deque
from itertools import islice

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client.metadata import ClientMetadata, PartitionLeader
from laststand.emulator.core.client.steps import RecordsOffered, SendRecorded
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.history import Attempt, OperationType
from laststand.emulator.core.types import (
    BrokerId,
    CorrelationId,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerEpoch,
    TopicId,
    TopicPartition,
)


class PendingBatch:
    """A batch that is not finished.

    Args:
        offered: its records.
        deadline_ms: when the batch times out.

    Attributes:
        topic_id: topic id of the last attempt; ``None`` before the first.
        descriptor: its header as it was last encoded; ``None`` before, and after its identity was taken back.
        base_sequence: its sequence number under the queue's producer epoch; ``None`` before its first attempt.
        in_flight: the request that carries it now.
        is_retry: whether an attempt failed.
        maybe_written: whether any attempt may have reached a log.
        is_finished: whether the batch has left the queue, perhaps while a request was in flight.
    """

    def __init__(self, offered: RecordsOffered, *, deadline_ms: int) -> None:
        self.operation_id = offered.cause_id
        self.partition = offered.partition
        self.first_record_id = offered.first_record_id
        self.record_count = offered.record_count
        self.deadline_ms = deadline_ms
        self.topic_id: TopicId | None = None
        self.descriptor: BatchDescriptor | None = None
        self.base_sequence: int | None = None
        self.in_flight: CorrelationId | None = None
        self.is_retry = False
        self.maybe_written = False
        self.is_finished = False
        self.attempts: list[Attempt] = []

    @property
    def given_up(self) -> OperationType:
        """The batch's outcome if it ends now: FAIL, or INFO if it may be in a log."""
        return OperationType.INFO if self.maybe_written else OperationType.FAIL

    def fly(self, leader: BrokerId, leadership: PartitionLeader) -> "Flight":
        """Returns a new flight, which carries the encoded batch to a leader."""
        assert self.descriptor is not None, "it is encoded before it is sent"
        self.topic_id = leadership.topic_id
        return Flight(
            partition=self.partition,
            batch=self,
            node=NodeId(leader),
            leader_epoch=leadership.leader_epoch,
            descriptor=self.descriptor,
        )

    def recorded(
        self,
        type_: OperationType,
        metadata: ClientMetadata,
        *,
        base_offset: Offset | None = None,
        error: str | None = None,
    ) -> SendRecorded:
        """Returns the history record of the batch's start or outcome; without an attempt, with metadata's topic id."""
        topic_id = self.topic_id
        if topic_id is None and (leadership := metadata.leader_of(self.partition)) is not None:
            topic_id = leadership.topic_id
        return SendRecorded(
            type=type_,
            operation_id=self.operation_id,
            partition=self.partition,
            topic_id=topic_id,
            first_record_id=self.first_record_id,
            record_count=self.record_count,
            base_offset=base_offset,
            attempts=tuple(self.attempts),
            error=error,
        )


class Flight:
    """An unanswered produce request: its batch, its receiver, and the batch's header as sent."""

    def __init__(
        self,
        *,
        partition: TopicPartition,
        batch: PendingBatch,
        node: NodeId,
        leader_epoch: LeaderEpoch,
        descriptor: BatchDescriptor,
    ) -> None:
        self.partition = partition
        self.batch = batch
        self.node = node
        self.leader_epoch = leader_epoch
        self.descriptor = descriptor

    @property
    def content(self) -> messages.ProducePartition:
        """The batch as its request carries it."""
        return messages.ProducePartition(
            topic=self.partition.topic,
            topic_id=self.batch.topic_id,
            partition=self.partition.partition,
            batch=self.descriptor,
        )

    def answered(self, error: ErrorCode) -> None:
        """Adds the attempt to the batch; after an error that is not definite, the batch may be in a log."""
        self.batch.attempts.append(self.attempt(error.name))
        self.batch.maybe_written |= not error.is_definite and error is not ErrorCode.NONE

    def unanswered(self, outcome: str) -> None:
        """Adds the attempt to the batch, which may be in a log."""
        self.batch.attempts.append(self.attempt(outcome))
        self.batch.maybe_written = True

    def attempt(self, outcome: str) -> Attempt:
        """Returns the attempt for the history."""
        has_identity = self.descriptor.producer_id is not None
        return Attempt(
            node=self.node,
            leader_epoch=self.leader_epoch,
            producer_id=self.descriptor.producer_id,
            producer_epoch=self.descriptor.producer_epoch if has_identity else None,
            base_sequence=self.descriptor.base_sequence if has_identity else None,
            crc=self.descriptor.crc,
            outcome=outcome,
        )


class PartitionQueue:
    """Unfinished batches of one partition.

    Attributes:
        batches: oldest first.
        flights: unanswered requests, including those of batches that timed out.
        producer_epoch: the epoch that this partition's sequences belong to.
        next_sequence: sequence number for the next new batch.
        needs_new_epoch: the broker's and the producer's sequences disagree; sequences restart once no request is in
            flight.
        retry_at_ms: no batch is sent before this time.
    """

    def __init__(self) -> None:
        self.batches: deque[PendingBatch] = deque()
        self.flights: set[CorrelationId] = set()
        self.producer_epoch: ProducerEpoch | None = None
        self.next_sequence = 0
        self.needs_new_epoch = False
        self.retry_at_ms = 0

    def next_sendable(self, *, max_in_flight: int) -> PendingBatch | None:
        """Returns the batch that may be sent now, if any; the caller has to put it in flight before the next call."""
        if len(self.flights) >= max_in_flight:
            return None
        for position, batch in enumerate(islice(self.batches, max_in_flight)):
            if batch.is_retry and position > 0:
                return None
            if batch.in_flight is None:
                return batch
            if batch.is_retry:
                return None
        return None

    def assign_sequence(self, batch: PendingBatch) -> int:
        """Returns the batch's sequence number, giving it the next one at its first attempt."""
        if batch.base_sequence is None:
            batch.base_sequence = self.next_sequence
            self.next_sequence = (self.next_sequence + batch.record_count) & 0x7FFFFFFF
        return batch.base_sequence

    def start_epoch(self, producer_epoch: ProducerEpoch) -> None:
        """Numbers unfinished batches from 0 again, under another epoch. No request may be in flight."""
        self.producer_epoch = producer_epoch
        self.next_sequence = 0
        self.needs_new_epoch = False
        for batch in self.batches:
            batch.descriptor = None
            batch.base_sequence = None
