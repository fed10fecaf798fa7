"""Requests of a ZooKeeper controller to brokers: LeaderAndIsr, UpdateMetadata, StopReplica, and their answers.

All carry the controller's id and epoch, and the epoch of the addressed broker. A field that their version lacks has
its default (``control_versions``). Kafka's ``LeaderAndIsrRequest``, ``UpdateMetadataRequest``, ``StopReplicaRequest``.
"""

from enum import Enum, IntEnum
from typing import TypeAlias

import msgspec

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.message import Message
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    LeaderRecoveryState,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from laststand.emulator.core.zookeeper.identifiers import ControllerEpoch


class ControlRequest(Message, frozen=True, kw_only=True):
    """The fields of all three. ``broker_epoch`` is ``None`` below IBP 2.2, and passes for any incarnation."""

    controller_id: BrokerId
    controller_epoch: ControllerEpoch
    broker_epoch: BrokerEpoch | None = None
    is_kraft_controller: bool = False


class LeaderAndIsrType(IntEnum):
    """The scope of a LeaderAndIsr: all replicas of its addressee, or some (KIP-516, numbered as since Kafka 3.6.1)."""

    UNKNOWN = 0
    """The value that every ZooKeeper controller sends."""

    INCREMENTAL = 1
    FULL = 2


class LeaderAndIsrPartition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition's leader, ISR and replicas. ``controller_epoch`` is that of the decision, not of the request."""

    name: TopicPartition
    controller_epoch: ControllerEpoch
    leader: BrokerId | None
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    partition_epoch: PartitionEpoch
    replicas: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()
    is_new: bool = False
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    topic_id: TopicId | None = None


class LeaderAndIsrRequest(ControlRequest, frozen=True, kw_only=True):
    """Roles for partitions. ``contains_all_replicas`` is KIP-550's field, which Kafka never had."""

    partitions: tuple[LeaderAndIsrPartition, ...]
    request_type: LeaderAndIsrType = LeaderAndIsrType.UNKNOWN
    contains_all_replicas: bool = False
    api_version: int = 7


class PartitionError(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one partition of a control request."""

    name: TopicPartition
    error: ErrorCode


class LeaderAndIsrResponse(Message, frozen=True, kw_only=True):
    """A top-level error means that no partition was handled."""

    error: ErrorCode
    partitions: tuple[PartitionError, ...] = ()


class NoLeaderReason(Enum):
    """Reason why UpdateMetadata names no leader."""

    NONE_ELECTED = -1
    BEING_DELETED = -2
    """The topic is being deleted: brokers forget the partition."""


class MetadataPartition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition as brokers are to describe it to clients."""

    name: TopicPartition
    controller_epoch: ControllerEpoch
    leader: BrokerId | NoLeaderReason
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    partition_epoch: PartitionEpoch
    replicas: tuple[BrokerId, ...]
    offline_replicas: tuple[BrokerId, ...] = ()
    topic_id: TopicId | None = None


class LiveBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A registered broker, as brokers and clients are informed of it."""

    broker_id: BrokerId
    rack: str = ""


class UpdateMetadataRequest(ControlRequest, frozen=True, kw_only=True):
    """All registered brokers, and some partitions."""

    live_brokers: tuple[LiveBroker, ...]
    partitions: tuple[MetadataPartition, ...] = ()
    api_version: int = 8


class UpdateMetadataResponse(Message, frozen=True, kw_only=True):
    """The request was applied, or refused as a whole."""

    error: ErrorCode


class StopReplicaEpoch(Enum):
    """The value of StopReplica in place of a leader epoch."""

    UNKNOWN = -1
    """The controller knows none, or its protocol has no such field."""

    DURING_DELETE = -2
    """The topic is being deleted: whatever epoch the replica has."""


class StopReplicaPartition(msgspec.Struct, frozen=True, kw_only=True):
    """One replica to be stopped, and whether its log is deleted."""

    name: TopicPartition
    leader_epoch: LeaderEpoch | StopReplicaEpoch
    is_deleted: bool


class StopReplicaRequest(ControlRequest, frozen=True, kw_only=True):
    """Replicas that the addressee is to give up."""

    partitions: tuple[StopReplicaPartition, ...]
    api_version: int = 4


class StopReplicaResponse(Message, frozen=True, kw_only=True):
    """A top-level error means that no partition was handled."""

    error: ErrorCode
    partitions: tuple[PartitionError, ...] = ()


ControlMessage: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
ControlAnswer: TypeAlias = LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse


class ControlledShutdownRequest(Message, frozen=True, kw_only=True):
    """A broker asks for a controlled shutdown; ``broker_epoch`` is ``None`` in requests from before KIP-380."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch | None = None


class ControlledShutdownResponse(Message, frozen=True, kw_only=True):
    """The replicated partitions that the broker still leads; the broker repeats its request while there are some."""

    error: ErrorCode
    remaining: tuple[TopicPartition, ...] = ()
