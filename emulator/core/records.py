"""Metadata records: the controller's decisions, and the only thing that changes its state.

Names and fields are Kafka's (``metadata/src/main/resources/common/metadata``). A record is appended to the metadata
log, made durable, and streamed to every broker. In ``PartitionChangeRecord`` and ``BrokerRegistrationChangeRecord`` a
field that is ``UNSET`` did not change.
"""

from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from laststand.emulator.core.acls import AccessControlEntry
from laststand.emulator.core.client_quotas import QuotaEntityPart
from laststand.emulator.core.messages import FeatureRange
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    MetadataOffset,
    NodeId,
    PartitionEpoch,
    ProducerId,
    TopicId,
)


class MetadataRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    """Base of all metadata records; the tag is the class name."""


class FeatureLevelRecord(MetadataRecord, frozen=True, kw_only=True):
    """Finalizes a feature; ``metadata.version`` is one of them, its level an index into ``metadata_version.LEVELS``."""

    name: str
    feature_level: int


class RegisterBrokerRecord(MetadataRecord, frozen=True, kw_only=True):
    """A broker process, fenced until it has caught up.

    Attributes:
        rack: empty if the broker has none.
        features: supported features, if they differ from this program's; else empty.
    """

    broker_id: BrokerId
    incarnation_id: IncarnationId
    broker_epoch: BrokerEpoch
    log_dirs: tuple[str, ...]
    fenced: bool = True
    in_controlled_shutdown: bool = False
    rack: str = ""
    features: tuple[FeatureRange, ...] = ()


class UnregisterBrokerRecord(MetadataRecord, frozen=True, kw_only=True):
    """Forgets a broker."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch


class BrokerRegistrationChangeRecord(MetadataRecord, frozen=True, kw_only=True):
    """Fences or unfences a broker, or notes that it is shutting down."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    fenced: bool | UnsetType = UNSET
    in_controlled_shutdown: bool | UnsetType = UNSET
    log_dirs: tuple[str, ...] | UnsetType = UNSET


class TopicRecord(MetadataRecord, frozen=True, kw_only=True):
    """A new topic."""

    name: str
    topic_id: TopicId


class RemoveTopicRecord(MetadataRecord, frozen=True, kw_only=True):
    """Removes a topic, its partitions and its configuration."""

    topic_id: TopicId


class PartitionRecord(MetadataRecord, frozen=True, kw_only=True):
    """A new partition, whole. Ordered lists are as given; ``elr`` and ``last_known_elr`` are ascending."""

    topic_id: TopicId
    partition: int
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId | None
    leader_epoch: LeaderEpoch = LeaderEpoch(0)
    partition_epoch: PartitionEpoch = PartitionEpoch(0)
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    elr: tuple[BrokerId, ...] = ()
    last_known_elr: tuple[BrokerId, ...] = ()
    last_known_leader: BrokerId | None = None
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()


class PartitionChangeRecord(MetadataRecord, frozen=True, kw_only=True):
    """A change of a partition. It raises the partition epoch, and the leader epoch iff ``leader`` is set."""

    topic_id: TopicId
    partition: int
    isr: tuple[BrokerId, ...] | UnsetType = UNSET
    leader: BrokerId | UnsetType | None = UNSET
    leader_recovery_state: LeaderRecoveryState | UnsetType = UNSET
    replicas: tuple[BrokerId, ...] | UnsetType = UNSET
    elr: tuple[BrokerId, ...] | UnsetType = UNSET
    last_known_elr: tuple[BrokerId, ...] | UnsetType = UNSET
    last_known_leader: BrokerId | UnsetType | None = UNSET
    adding_replicas: tuple[BrokerId, ...] | UnsetType = UNSET
    removing_replicas: tuple[BrokerId, ...] | UnsetType = UNSET


class ConfigRecord(MetadataRecord, frozen=True, kw_only=True):
    """Sets a configuration entry, or deletes it where ``value`` is ``None``."""

    resource: ConfigResource
    resource_name: str
    name: str
    value: str | None


class ClearElrRecord(MetadataRecord, frozen=True, kw_only=True):
    """Clears ELR and last known ELR, of one topic or (``None``) of all (KAFKA-16540)."""

    topic_id: TopicId | None


class ProducerIdsRecord(MetadataRecord, frozen=True, kw_only=True):
    """A block of producer ids was allocated; ``next_producer_id`` is the first unallocated id."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    next_producer_id: ProducerId


class AccessControlEntryRecord(MetadataRecord, frozen=True, kw_only=True):
    """Adds an access control entry, whose id is the offset of this record: Kafka draws a UUID."""

    entry: AccessControlEntry


class RemoveAccessControlEntryRecord(MetadataRecord, frozen=True, kw_only=True):
    """Removes an access control entry by its id."""

    acl_id: MetadataOffset


class ClientQuotaRecord(MetadataRecord, frozen=True, kw_only=True):
    """Sets a quota of clients, or removes it where ``value`` is ``None``."""

    entity: tuple[QuotaEntityPart, ...]
    key: str
    value: float | None


class ControlRecord(MetadataRecord, frozen=True, kw_only=True):
    """A control record of the quorum, which takes an offset in the log.

    Attributes:
        name: its kind.
        leader_id: of a LeaderChange.
        voters: of a KRaftVoters.
    """

    name: str
    leader_id: NodeId | None = None
    voters: tuple[NodeId, ...] = ()


class BeginTransactionRecord(MetadataRecord, frozen=True, kw_only=True):
    """Begins a metadata transaction: its records take effect when it ends, or never (KIP-868)."""

    name: str | None = None


class EndTransactionRecord(MetadataRecord, frozen=True, kw_only=True):
    """Ends the open metadata transaction: its records take effect."""


class AbortTransactionRecord(MetadataRecord, frozen=True, kw_only=True):
    """Undoes the records of the open metadata transaction."""

    reason: str | None = None


Record: TypeAlias = (
    FeatureLevelRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | ClearElrRecord
    | ProducerIdsRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | ClientQuotaRecord
    | ControlRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
)


class MetadataBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Records that were committed together, in the order of their offsets."""

    base_offset: MetadataOffset
    records: tuple[Record, ...]

    @property
    def end_offset(self) -> MetadataOffset:
        """The offset after the last record."""
        return MetadataOffset(self.base_offset + len(self.records))


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(tuple[Record, ...])


def encode_records(records: tuple[Record, ...]) -> bytes:
    """Returns the payload of a metadata batch, as written to the log and streamed to brokers."""
    return _ENCODER.encode(records)


def decode_records(payload: bytes) -> tuple[Record, ...]:
    """Inverse of ``encode_records``.

    Raises:
        msgspec.DecodeError: the payload is not a sequence of known records.
    """
    return _DECODER.decode(payload)
