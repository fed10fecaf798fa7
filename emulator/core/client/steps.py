"""Inputs and effects of clients, apart from those that they share with nodes.

A client's input is ``Started``, ``TimerFired``, ``ResponseReceived`` or ``RequestFailed``, as for any node, or one of
those below. Its requests are ``SendRequest`` effects. Each history line is an effect too, to which the shell adds
index, time and the client's name.
"""

from typing import Literal, Protocol, TypeAlias

import msgspec

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.client.settings import OffsetReset
from laststand.emulator.core.history import Attempt, MemberStep, OperationType, PolledBatch
from laststand.emulator.core.types import (
    CauseId,
    CorrelationId,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)


class BatchContent(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a batch's encoding: its records, partition, producer identity and sequence.

    ``producer_id``, ``producer_epoch`` and ``base_sequence`` are ``None`` together, without idempotence.
    """

    partition: TopicPartition
    first_record_id: int
    record_count: int
    producer_id: ProducerId | None
    producer_epoch: ProducerEpoch | None
    base_sequence: int | None
    is_transactional: bool = False


class BatchEncoder(Protocol):
    """Encodes content as bytes, which the driver keeps; returns their header. Equal content gives equal bytes."""

    def __call__(self, content: BatchContent, /) -> BatchDescriptor:
        """Returns the header of the encoded batch."""
        ...


class RecordsOffered(inputs.NodeInput, frozen=True, kw_only=True):
    """A batch of records to send; ``cause_id`` is the operation's id."""

    partition: TopicPartition
    first_record_id: int
    record_count: int


def operation_id(producer: str, first_record_id: int) -> CauseId:
    """Returns the name of the operation that sends a batch."""
    return CauseId(f"{producer}:{first_record_id}")


class GroupIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a group as it is named in commits of positions (Kafka's ``ConsumerGroupMetadata``, KIP-447)."""

    member_id: str
    instance_id: str | None
    generation_id: int


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an operation: records of a partition, from a group's committed position on.

    Attributes:
        group_id: of the group.
        partition: the partition to read.
        records: number of records wanted; whole batches are read until they have at least as many.
        reset: start position if none is committed, or it is out of range (``auto.offset.reset``).
        member: of the group, on whose behalf an operation commits the position; ``None`` for none.
    """

    group_id: str
    partition: TopicPartition
    records: int
    reset: OffsetReset = OffsetReset.EARLIEST
    member: GroupIdentity | None = None


class TransactionOffered(inputs.NodeInput, frozen=True, kw_only=True):
    """A transaction to carry out; ``cause_id`` is the operation's id.

    Attributes:
        partitions: the partitions that it writes to, in this order.
        records: number of records in the batch for each of them.
        result: whether to commit or abort it.
        source: the input to consume, if any: each batch read becomes a batch to write, the partitions in turn, and the
            position after the input is committed with the transaction (KIP-98, consume-transform-produce).
    """

    partitions: tuple[TopicPartition, ...]
    records: int
    result: TransactionResult
    source: Source | None = None


class ConsumptionOffered(inputs.NodeInput, frozen=True, kw_only=True):
    """Records to read, and then to commit the position after; ``cause_id`` is the operation's id."""

    source: Source


class LeaveOffered(inputs.NodeInput, frozen=True, kw_only=True):
    """A member of a group is to leave it."""


class Abandoned(inputs.NodeInput, frozen=True, kw_only=True):
    """The run stops waiting: every unfinished batch and final read ends now."""


class RecordsReceived(inputs.NodeInput, frozen=True, kw_only=True):
    """The answer to a fetch; ``polled`` lists the records in ``response``, from the position on.

    A read_committed consumer gets neither markers nor aborted records. ``next_position`` is the position after all
    batches fetched, these included, and ``next_leader_epoch`` that of the last of them; ``None`` if there are none.
    """

    correlation_id: CorrelationId
    response: messages.FetchPartitionResponse
    polled: tuple[PolledBatch, ...]
    next_position: Offset | None = None
    next_leader_epoch: LeaderEpoch | None = None


class SendRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about a batch: see ``SendOperation`` for the fields."""

    type: OperationType
    operation_id: CauseId
    partition: TopicPartition
    topic_id: TopicId | None
    first_record_id: int
    record_count: int
    base_offset: Offset | None = None
    attempts: tuple[Attempt, ...] = ()
    error: str | None = None


class PollRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about a fetch: see ``PollOperation`` for the fields."""

    type: OperationType
    operation_id: CauseId
    partition: TopicPartition
    topic_id: TopicId | None
    node: NodeId
    leader_epoch: LeaderEpoch | None
    position: Offset
    seek: bool
    high_watermark: Offset | None = None
    log_start_offset: Offset | None = None
    batches: tuple[PolledBatch, ...] = ()
    error: str | None = None


class FinalReadRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history that ends a final read: see ``FinalReadOperation`` for the fields."""

    type: OperationType
    operation_id: CauseId
    partition: TopicPartition
    topic_id: TopicId | None
    start_offset: Offset | None
    end_offset: Offset | None
    error: str | None = None


class TransactionRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about a transaction: see ``TransactionOperation`` for the fields."""

    type: OperationType
    operation_id: CauseId
    transactional_id: str
    result: TransactionResult
    sends: tuple[CauseId, ...]
    error: str | None = None


class SessionRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about a session of a transactional producer: see ``SessionOperation`` for the fields."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch


class GroupReadRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about an operation's reads for a group: see ``GroupReadOperation`` for the fields."""

    operation_id: CauseId
    group_id: str
    partition: TopicPartition
    topic_id: TopicId | None
    node: NodeId
    committed: Offset | None
    position: Offset
    next_position: Offset
    batches: tuple[PolledBatch, ...]
    member_id: str = ""
    generation_id: int = -1


class GroupMemberRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about a member of a group: see ``GroupMemberOperation`` for the fields."""

    group_id: str
    step: MemberStep
    member_id: str
    instance_id: str | None
    generation_id: int
    partitions: tuple[TopicPartition, ...] = ()
    overdue_ms: int = 0


class GroupCommitRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about a position that was to be committed: see ``GroupCommitOperation`` for the fields."""

    type: OperationType
    operation_id: CauseId
    group_id: str
    partition: TopicPartition
    offset: Offset
    error: str | None = None
    member_id: str = ""
    generation_id: int = -1


class CommittedReadRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about a fetch of a read_committed consumer: see ``CommittedReadOperation``."""

    operation_id: CauseId
    partition: TopicPartition
    topic_id: TopicId | None
    node: NodeId
    position: Offset
    next_position: Offset
    seek: bool
    batches: tuple[PolledBatch, ...] = ()
    high_watermark: Offset | None = None
    last_stable_offset: Offset | None = None
    log_start_offset: Offset | None = None


class GroupPositionRecorded(effects.Effect, frozen=True, kw_only=True):
    """A line of the history about a position of a group of Kafka clients: see ``GroupPositionOperation``."""

    type: OperationType
    operation_id: CauseId
    kind: Literal["commit", "fetch"]
    group_id: str
    partition: TopicPartition
    topic_id: TopicId | None
    node: NodeId
    offset: Offset | None
    begun_ns: int
    error: str | None


ProducerInput: TypeAlias = (
    inputs.Started | inputs.TimerFired | inputs.ResponseReceived | inputs.RequestFailed | RecordsOffered | Abandoned
)
ProducerEffect: TypeAlias = effects.SendRequest | SendRecorded

TransactionalProducerInput: TypeAlias = (
    inputs.Started
    | inputs.TimerFired
    | inputs.ResponseReceived
    | inputs.RequestFailed
    | RecordsReceived
    | TransactionOffered
    | ConsumptionOffered
    | Abandoned
)
TransactionalProducerRecord: TypeAlias = (
    SendRecorded | TransactionRecorded | SessionRecorded | GroupReadRecorded | GroupCommitRecorded
)
TransactionalProducerEffect: TypeAlias = effects.SendRequest | TransactionalProducerRecord

ConsumerInput: TypeAlias = (
    inputs.Started | inputs.TimerFired | inputs.ResponseReceived | inputs.RequestFailed | RecordsReceived | Abandoned
)
ConsumerEffect: TypeAlias = effects.SendRequest | PollRecorded | CommittedReadRecorded | FinalReadRecorded

MemberInput: TypeAlias = (
    inputs.Started
    | inputs.TimerFired
    | inputs.ResponseReceived
    | inputs.RequestFailed
    | RecordsReceived
    | LeaveOffered
    | Abandoned
)
MemberRecord: TypeAlias = GroupMemberRecorded | GroupReadRecorded | GroupCommitRecorded
MemberEffect: TypeAlias = effects.SendRequest | MemberRecord

ClientRecord: TypeAlias = (
    TransactionalProducerRecord
    | PollRecorded
    | CommittedReadRecorded
    | FinalReadRecorded
    | MemberRecord
    | GroupPositionRecorded
)
"""Everything that a client records in the history."""
