"""Requests and responses between nodes, and between clients and nodes, with Kafka's names.

Frozen values; the codec of ``laststand.emulator.rpc`` translates them to protobuf. ``None`` stands for Kafka's -1.
Every response answers exactly one request. What administrators ask is in ``admin_messages``, what members of groups
ask in ``group_messages``, what transactions need in ``transaction_messages``.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, get_args

import msgspec

from laststand.emulator.core import admin_messages, group_messages, transaction_messages
from laststand.emulator.core.batch import AbortedTransaction, BatchDescriptor, InvalidBatch, LogSpan
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.message import Message
from laststand.emulator.core.types import (
    Acks,
    BrokerEpoch,
    BrokerId,
    CauseId,
    IncarnationId,
    IsolationLevel,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)

# --- Broker to controller -----------------------------------------------------------------------------------------
#
# ``controller_epoch`` of a request is the highest that the broker has seen, of a response that of the controller; 0
# where there is only one. Kafka's messages have none: its brokers know the leader of the quorum as observers of it.


class FeatureRange(msgspec.Struct, frozen=True, kw_only=True):
    """Levels of a feature that a broker supports, both inclusive."""

    name: str
    min_supported_version: int
    max_supported_version: int


class BrokerRegistrationRequest(Message, frozen=True, kw_only=True):
    """Registers a broker process. ``previous_broker_epoch`` exists from api_version 3 on (KIP-966)."""

    api_version: int = 4
    broker_id: BrokerId
    cluster_id: str
    incarnation_id: IncarnationId
    log_dirs: tuple[str, ...]
    features: tuple[FeatureRange, ...] = ()
    previous_broker_epoch: BrokerEpoch | None = None
    rack: str = ""
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class BrokerRegistrationResponse(Message, frozen=True, kw_only=True):
    """The granted broker epoch, or the error."""

    error: ErrorCode
    broker_epoch: BrokerEpoch | None = None
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class BrokerHeartbeatRequest(Message, frozen=True, kw_only=True):
    """Keeps a broker's session alive, and states whether it wants to be unfenced or to shut down."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    current_metadata_offset: MetadataOffset
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: tuple[str, ...] = ()
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class BrokerHeartbeatResponse(Message, frozen=True, kw_only=True):
    """The controller's view of the broker."""

    error: ErrorCode
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class IsrMember(msgspec.Struct, frozen=True):
    """A member of a proposed ISR; the epoch is ``None`` where the leader does not know it (KIP-903)."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch | None = None


class AlterPartitionData(msgspec.Struct, frozen=True, kw_only=True):
    """One partition's proposed ISR. ``topic_id`` is ``None`` below api_version 2."""

    topic: str
    topic_id: TopicId | None
    partition: int
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    new_isr: tuple[IsrMember, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


class AlterPartitionRequest(Message, frozen=True, kw_only=True):
    """A leader's request to change ISRs (KIP-497)."""

    api_version: int = 3
    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    partitions: tuple[AlterPartitionData, ...]
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class AlterPartitionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The partition after the change; with an error, the state fields are unused."""

    topic: str
    topic_id: TopicId | None
    partition: int
    error: ErrorCode
    leader: BrokerId | None = None
    leader_epoch: LeaderEpoch = LeaderEpoch(-1)
    isr: tuple[BrokerId, ...] = ()
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: PartitionEpoch = PartitionEpoch(-1)


class AlterPartitionResponse(Message, frozen=True, kw_only=True):
    """A top-level error means that no partition was looked at.

    ``metadata_end_offset`` is the end of the metadata that the controller decided on, including the changes made here.
    Kafka's response does not have it.
    """

    error: ErrorCode
    partitions: tuple[AlterPartitionResult, ...] = ()
    metadata_end_offset: MetadataOffset = MetadataOffset(0)
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class AllocateProducerIdsRequest(Message, frozen=True, kw_only=True):
    """Asks for a block of producer ids."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


class AllocateProducerIdsResponse(Message, frozen=True, kw_only=True):
    """Ids ``producer_id_start`` to ``producer_id_start + producer_id_len - 1``."""

    error: ErrorCode
    producer_id_start: ProducerId = ProducerId(-1)
    producer_id_len: int = 0
    controller_epoch: LeaderEpoch = LeaderEpoch(0)


ControllerRequest: TypeAlias = (
    BrokerRegistrationRequest | BrokerHeartbeatRequest | AlterPartitionRequest | AllocateProducerIdsRequest
)
ControllerResponse: TypeAlias = (
    BrokerRegistrationResponse | BrokerHeartbeatResponse | AlterPartitionResponse | AllocateProducerIdsResponse
)


# --- Any node -----------------------------------------------------------------------------------------------------


class TopicCursor(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a page of DescribeTopicPartitions."""

    topic: str
    partition: int


class DescribeTopicPartitionsRequest(Message, frozen=True, kw_only=True):
    """Describes partitions; no topics means all (KIP-966)."""

    topics: tuple[str, ...] = ()
    cursor: TopicCursor | None = None
    response_partition_limit: int = 2000


class DescribedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition by the describing node's metadata."""

    partition: int
    error: ErrorCode
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...]
    last_known_elr: tuple[BrokerId, ...]
    last_known_leader: BrokerId | None
    offline_replicas: tuple[BrokerId, ...]
    leader_recovery_state: LeaderRecoveryState


class DescribedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and those of its partitions that fit the page."""

    name: str
    error: ErrorCode
    topic_id: TopicId | None
    partitions: tuple[DescribedPartition, ...]


class DescribeTopicPartitionsResponse(Message, frozen=True, kw_only=True):
    """A page; ``next_cursor`` is ``None`` on the last one."""

    error: ErrorCode
    topics: tuple[DescribedTopic, ...] = ()
    next_cursor: TopicCursor | None = None


# --- Client to broker ---------------------------------------------------------------------------------------------


class MetadataRequest(Message, frozen=True, kw_only=True):
    """Asks for the leaders of topics; no topics means all."""

    topics: tuple[str, ...] = ()


class MetadataPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition as clients see it; LEADER_NOT_AVAILABLE where there is no leader."""

    partition: int
    error: ErrorCode
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]


class MetadataTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as clients see it."""

    name: str
    error: ErrorCode
    topic_id: TopicId | None
    partitions: tuple[MetadataPartition, ...]


class MetadataResponse(Message, frozen=True, kw_only=True):
    """Live brokers and topics by the answering broker's cache, which may be stale."""

    brokers: tuple[BrokerId, ...]
    controller_id: NodeId | None
    topics: tuple[MetadataTopic, ...]


class InitProducerIdRequest(Message, frozen=True, kw_only=True):
    """Asks for a producer id, or bumps the epoch of one (KIP-360)."""

    producer_id: ProducerId | None = None
    producer_epoch: ProducerEpoch | None = None


class InitProducerIdResponse(Message, frozen=True, kw_only=True):
    """The identity to produce under."""

    error: ErrorCode
    producer_id: ProducerId = ProducerId(-1)
    producer_epoch: ProducerEpoch = ProducerEpoch(-1)


class ProducePartition(msgspec.Struct, frozen=True, kw_only=True):
    """One batch for one partition; ``topic_id``, if given, says which topic of that name is meant (KIP-516).

    Effects and events about the batch have its ``cause_id``, or else the request's.
    """

    topic: str
    topic_id: TopicId | None = None
    partition: int
    batch: BatchDescriptor | InvalidBatch
    cause_id: CauseId | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class ProduceRequest(Message, frozen=True, kw_only=True):
    """Appends batches, one per partition at most.

    Batches of a transaction come with the producer's ``transactional_id``. With ``transaction_version`` 2, leaders add
    their partitions to the transaction; ``knows_abortable`` is as in ``transactions.verifier`` (KIP-890).
    """

    acks: int
    timeout_ms: int
    partitions: tuple[ProducePartition, ...]
    transactional_id: str | None = None
    transaction_version: int = 0
    knows_abortable: bool = False

    @property
    def is_acks_valid(self) -> bool:
        """``acks`` has one of Kafka's three values."""
        return self.acks in (Acks.NONE, Acks.LEADER, Acks.ALL)


class ProducePartitionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A batch's outcome; ``current_leader`` is a hint beside NOT_LEADER_OR_FOLLOWER (KIP-951).

    ``duplicate_timestamp_ms`` is, for a duplicate, the largest timestamp of the original batch in the log.
    """

    topic: str
    partition: int
    error: ErrorCode
    base_offset: Offset | None = None
    log_start_offset: Offset | None = None
    current_leader: BrokerId | None = None
    current_leader_epoch: LeaderEpoch | None = None
    duplicate_timestamp_ms: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class ProduceResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order. With acks=0 no response is sent, and a failure closes the connection."""

    partitions: tuple[ProducePartitionResponse, ...]


class FetchPartition(msgspec.Struct, frozen=True, kw_only=True):
    """The read position of one partition.

    ``current_leader_epoch`` fences (KIP-320), ``last_fetched_epoch`` detects divergence (KIP-595).
    """

    topic: str
    topic_id: TopicId | None
    partition: int
    fetch_offset: Offset
    current_leader_epoch: LeaderEpoch | None = None
    last_fetched_epoch: LeaderEpoch | None = None
    log_start_offset: Offset | None = None
    partition_max_bytes: int = 1 << 20

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class FetchRequest(Message, frozen=True, kw_only=True):
    """Reads partitions, as a follower (``replica_id`` given) or as a consumer.

    The broker parks it until ``min_bytes`` are available or ``max_wait_ms`` have passed. A consumer that names its
    rack, even as ``""``, may be served by a follower (KIP-392); ``None`` is an older client. ``is_cut_allowed`` says
    that a limit may cut a partition's last batch, as it does in answers to Kafka's own clients.
    """

    partitions: tuple[FetchPartition, ...]
    replica_id: BrokerId | None = None
    replica_epoch: BrokerEpoch | None = None
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    client_rack: str | None = None
    is_cut_allowed: bool = False


class FetchPartitionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One partition's answer, as the answering core gives it (``span``) or as the asking core gets it (``batches``).

    The driver of the answering node turns the span into bytes; the driver of the asking node turns bytes into
    descriptors. ``diverging_epoch`` and ``diverging_end_offset`` are given together and exclude records, as does
    ``preferred_read_replica``, the replica that the consumer should read from (KIP-392). Consumers get the last stable
    offset if it differs from the high watermark; read_committed consumers also get the aborted transactions among the
    returned batches (KIP-98).
    """

    topic: str
    partition: int
    error: ErrorCode
    high_watermark: Offset | None = None
    log_start_offset: Offset | None = None
    diverging_epoch: LeaderEpoch | None = None
    diverging_end_offset: Offset | None = None
    current_leader: BrokerId | None = None
    current_leader_epoch: LeaderEpoch | None = None
    span: LogSpan | None = None
    batches: tuple[BatchDescriptor, ...] = ()
    preferred_read_replica: BrokerId | None = None
    last_stable_offset: Offset | None = None
    aborted_transactions: tuple[AbortedTransaction, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class FetchResponse(Message, frozen=True, kw_only=True):
    """Answers in request order."""

    error: ErrorCode = ErrorCode.NONE
    partitions: tuple[FetchPartitionResponse, ...]


LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
"""Stands for the offset of the record with the largest timestamp (KIP-734)."""

DEBUGGING_CONSUMER: Final = -2
"""Replica id of a consumer that may ask any replica (Kafka's ``DEBUGGING_CONSUMER_ID``)."""


class ListOffsetsPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition and ``earliest`` (-2), ``latest`` (-1) or a timestamp in ms, in Kafka's encoding."""

    topic: str
    partition: int
    timestamp: int
    current_leader_epoch: LeaderEpoch | None = None


class ListOffsetsRequest(Message, frozen=True, kw_only=True):
    """Looks up offsets, as a client or as a replica."""

    partitions: tuple[ListOffsetsPosition, ...]
    replica_id: BrokerId | None = None
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED


class ListOffsetsResult(msgspec.Struct, frozen=True, kw_only=True):
    """The offset found; ``timestamp`` is that of the batch, for a request by timestamp."""

    topic: str
    partition: int
    error: ErrorCode
    offset: Offset | None = None
    leader_epoch: LeaderEpoch | None = None
    timestamp: int | None = None


class ListOffsetsResponse(Message, frozen=True, kw_only=True):
    """Answers in request order."""

    partitions: tuple[ListOffsetsResult, ...]


class EpochPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The epoch whose end offset is asked for."""

    topic: str
    partition: int
    leader_epoch: LeaderEpoch
    current_leader_epoch: LeaderEpoch | None = None


class OffsetForLeaderEpochRequest(Message, frozen=True, kw_only=True):
    """Looks up where leader epochs end (KIP-101)."""

    partitions: tuple[EpochPosition, ...]
    replica_id: BrokerId | None = None


class EpochPositionResult(msgspec.Struct, frozen=True, kw_only=True):
    """Epoch and end are ``None`` where undefined."""

    topic: str
    partition: int
    error: ErrorCode
    leader_epoch: LeaderEpoch | None = None
    end_offset: Offset | None = None


class OffsetForLeaderEpochResponse(Message, frozen=True, kw_only=True):
    """Answers in request order."""

    partitions: tuple[EpochPositionResult, ...]


class DeleteRecordsTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Raise a partition's log start to ``offset``; ``None`` means the high watermark."""

    topic: str
    partition: int
    offset: Offset | None


class DeleteRecordsRequest(Message, frozen=True, kw_only=True):
    """Deletes records below offsets."""

    partitions: tuple[DeleteRecordsTarget, ...]
    timeout_ms: int = 30_000


class DeleteRecordsResult(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest log start offset over the live replicas."""

    topic: str
    partition: int
    error: ErrorCode
    low_watermark: Offset | None = None


class DeleteRecordsResponse(Message, frozen=True, kw_only=True):
    """Answers in request order."""

    partitions: tuple[DeleteRecordsResult, ...]


class GetReplicaLogInfoRequest(Message, frozen=True, kw_only=True):
    """Asks for the end of a replica's log (KIP-966, unclean recovery; the harness asks, too)."""

    partitions: tuple[tuple[TopicId, int], ...]


class ReplicaLogInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a replica's log; ``last_written_leader_epoch`` is that of the last record, ``None`` when empty."""

    topic_id: TopicId
    partition: int
    error: ErrorCode
    last_written_leader_epoch: LeaderEpoch | None = None
    current_leader_epoch: LeaderEpoch | None = None
    log_end_offset: Offset | None = None
    high_watermark: Offset | None = None


class GetReplicaLogInfoResponse(Message, frozen=True, kw_only=True):
    """Answers in request order, under the broker's epoch at that moment."""

    broker_epoch: BrokerEpoch | None
    partitions: tuple[ReplicaLogInfo, ...]


Request: TypeAlias = (
    BrokerRegistrationRequest
    | BrokerHeartbeatRequest
    | AlterPartitionRequest
    | AllocateProducerIdsRequest
    | admin_messages.AdminRequest
    | DescribeTopicPartitionsRequest
    | MetadataRequest
    | InitProducerIdRequest
    | ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
    | OffsetForLeaderEpochRequest
    | DeleteRecordsRequest
    | GetReplicaLogInfoRequest
    | group_messages.CoordinatorRequest
    | transaction_messages.TransactionRequest
)

Response: TypeAlias = (
    BrokerRegistrationResponse
    | BrokerHeartbeatResponse
    | AlterPartitionResponse
    | AllocateProducerIdsResponse
    | admin_messages.AdminResponse
    | DescribeTopicPartitionsResponse
    | MetadataResponse
    | InitProducerIdResponse
    | ProduceResponse
    | FetchResponse
    | ListOffsetsResponse
    | OffsetForLeaderEpochResponse
    | DeleteRecordsResponse
    | GetReplicaLogInfoResponse
    | group_messages.CoordinatorResponse
    | transaction_messages.TransactionResponse
)

RESPONSE_OF: Final[Mapping[type[Message], type[Message]]] = dict(
    zip(get_args(Request), get_args(Response), strict=True)
)
"""The response type of each request type."""
