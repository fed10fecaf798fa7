"""Administrators' requests to a controller: topics, elections, configuration, features, brokers, access control.

Kafka's requests, names and errors; lists that Kafka nests topic by topic are flat here. ``None`` for a list means the
same as null in Kafka, unlike an empty list. Responses about several items are in request order.
"""

from enum import Enum, IntEnum
from typing import TypeAlias

import msgspec

from laststand.emulator.core.acls import AccessControlEntry, AclFilter
from laststand.emulator.core.client_quotas import QuotaEntityPart
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.message import Message
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    ConfigResource,
    FeatureUpgradeType,
    IncarnationId,
    MetadataOffset,
    NodeId,
    TopicId,
    TopicPartition,
)

# --- Topics -------------------------------------------------------------------------------------------------------


class CreatableTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic to create. ``topic_id`` is drawn by the sender: the core has no randomness.

    Attributes:
        assignments: replicas of each partition; empty for automatic placement, then ``num_partitions`` and
            ``replication_factor`` count (``None``: the controller's defaults).
        configs: topic properties by Kafka's name.
    """

    name: str
    topic_id: TopicId
    num_partitions: int | None = None
    replication_factor: int | None = None
    assignments: tuple[tuple[BrokerId, ...], ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


class CreateTopicsRequest(Message, frozen=True, kw_only=True):
    """Creates topics; each one's outcome is its own."""

    topics: tuple[CreatableTopic, ...]
    validate_only: bool = False


class TopicResult(msgspec.Struct, frozen=True, kw_only=True):
    """One topic's outcome."""

    name: str
    error: ErrorCode
    error_message: str = ""


class CreateTopicsResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order."""

    topics: tuple[TopicResult, ...]


class DeleteTopicsRequest(Message, frozen=True, kw_only=True):
    """Deletes topics by name."""

    topics: tuple[str, ...]


class DeleteTopicsResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order."""

    topics: tuple[TopicResult, ...]


class CreatablePartitions(msgspec.Struct, frozen=True, kw_only=True):
    """The number of partitions that a topic shall have.

    Attributes:
        count: of all partitions afterwards.
        assignments: replicas of the new ones; empty for automatic placement.
    """

    name: str
    count: int
    assignments: tuple[tuple[BrokerId, ...], ...] = ()


class CreatePartitionsRequest(Message, frozen=True, kw_only=True):
    """Adds partitions to topics; each one's outcome is its own."""

    topics: tuple[CreatablePartitions, ...]
    validate_only: bool = False


class CreatePartitionsResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order."""

    topics: tuple[TopicResult, ...]


# --- Partitions ---------------------------------------------------------------------------------------------------


class PartitionResult(msgspec.Struct, frozen=True, kw_only=True):
    """One partition's outcome."""

    topic: str
    partition: int
    error: ErrorCode
    error_message: str = ""

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class RequestedElection(IntEnum):
    """The kind of election in an ElectLeaders request; kinds from 2 on are KIP-966's."""

    PREFERRED = 0
    """The first replica of the assignment, if that is clean."""

    UNCLEAN = 1
    """A clean candidate where one lives, else any replica that lives."""

    DESIGNATED = 2
    """The replica that the request names, whatever its election loses."""

    LONGEST_LOG_BALANCED = 3
    """Unclean recovery, once every member of the last known ELR has reported what it holds."""

    LONGEST_LOG_AGGRESSIVE = 4
    """Unclean recovery among those who answer in time."""


class ElectablePartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition to elect a leader for; ``desired_leader`` belongs to DESIGNATED alone."""

    topic: str
    partition: int
    desired_leader: BrokerId | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class ElectLeadersRequest(Message, frozen=True, kw_only=True):
    """Elects leaders (KIP-460; version 3 of KIP-966).

    Attributes:
        election_type: the number of a ``RequestedElection``; any other number is answered with INVALID_REQUEST.
        partitions: ``None`` for all; the answer then leaves out partitions that need no election.
    """

    election_type: int
    partitions: tuple[ElectablePartition, ...] | None


class ElectLeadersResponse(Message, frozen=True, kw_only=True):
    """A top-level error means that no partition was looked at."""

    error: ErrorCode
    error_message: str = ""
    partitions: tuple[PartitionResult, ...] = ()


class ReassignablePartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition and the replicas that it shall have, preferred one first; ``None`` cancels what is under way."""

    topic: str
    partition: int
    replicas: tuple[BrokerId, ...] | None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class AlterPartitionReassignmentsRequest(Message, frozen=True, kw_only=True):
    """Starts, replaces or cancels reassignments (KIP-455); the replica count may be held fixed (KIP-860)."""

    partitions: tuple[ReassignablePartition, ...]
    allow_replication_factor_change: bool = True


class AlterPartitionReassignmentsResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order; a reassignment has begun, not ended."""

    error: ErrorCode
    error_message: str = ""
    partitions: tuple[PartitionResult, ...] = ()


class ListPartitionReassignmentsRequest(Message, frozen=True, kw_only=True):
    """Asks which reassignments are under way; ``None`` for those of all partitions."""

    partitions: tuple[tuple[str, int], ...] | None = None


class OngoingReassignment(msgspec.Struct, frozen=True, kw_only=True):
    """A reassignment under way: ``replicas`` is the targets followed by the replicas being removed."""

    topic: str
    partition: int
    replicas: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...]
    removing_replicas: tuple[BrokerId, ...]

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class ListPartitionReassignmentsResponse(Message, frozen=True, kw_only=True):
    """Ongoing reassignments, by topic and partition; other partitions are left out."""

    error: ErrorCode
    partitions: tuple[OngoingReassignment, ...] = ()


# --- Configuration ------------------------------------------------------------------------------------------------


class ConfigOperation(Enum):
    """The change of one configuration entry (KIP-339)."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


class AlterableConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One change; ``value`` is ``None`` for DELETE only."""

    name: str
    operation: ConfigOperation
    value: str | None = None


class AlterConfigsResource(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one resource, applied all or none. A broker without a name is the cluster default."""

    resource: ConfigResource
    resource_name: str
    configs: tuple[AlterableConfig, ...]


class IncrementalAlterConfigsRequest(Message, frozen=True, kw_only=True):
    """Changes dynamic configuration; each resource's outcome is its own."""

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


class ConfigResourceResult(msgspec.Struct, frozen=True, kw_only=True):
    """One resource's outcome."""

    resource: ConfigResource
    resource_name: str
    error: ErrorCode
    error_message: str = ""


class IncrementalAlterConfigsResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order."""

    resources: tuple[ConfigResourceResult, ...]


class ConfigSource(Enum):
    """The origin of a value (Kafka's ``DescribeConfigsResponse.ConfigSource``), strongest first."""

    DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
    DYNAMIC_BROKER_CONFIG = "DYNAMIC_BROKER_CONFIG"
    DYNAMIC_DEFAULT_BROKER_CONFIG = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
    DEFAULT_CONFIG = "DEFAULT_CONFIG"


class DescribeConfigsResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource, and the names of the wanted entries; ``None`` for all."""

    resource: ConfigResource
    resource_name: str
    configuration_keys: tuple[str, ...] | None = None


class DescribeConfigsRequest(Message, frozen=True, kw_only=True):
    """Asks for configuration values and their sources."""

    resources: tuple[DescribeConfigsResource, ...]


class ConfigSynonym(msgspec.Struct, frozen=True, kw_only=True):
    """One source of an entry's value; ``name`` is the property's name in that source."""

    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """An entry's effective value, and all sources of values for it; the first source wins.

    Attributes:
        value: ``None`` if the default is no limit.
        read_only: whether it can be set only in a node's properties.
    """

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    synonyms: tuple[ConfigSynonym, ...]


class DescribedConfigResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource's entries by name, or why there are none."""

    resource: ConfigResource
    resource_name: str
    error: ErrorCode
    error_message: str = ""
    configs: tuple[DescribedConfig, ...] = ()


class DescribeConfigsResponse(Message, frozen=True, kw_only=True):
    """Answers in request order."""

    resources: tuple[DescribedConfigResource, ...]


# --- Features -----------------------------------------------------------------------------------------------------


class FeatureUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The level that a feature should get, and whether that may be a downgrade."""

    feature: str
    max_version_level: int
    upgrade_type: FeatureUpgradeType = FeatureUpgradeType.UPGRADE


class UpdateFeaturesRequest(Message, frozen=True, kw_only=True):
    """Changes finalized features: all of them, or none if one is impossible (KIP-584)."""

    feature_updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False


class UpdateFeaturesResponse(Message, frozen=True, kw_only=True):
    """The error of the first impossible update."""

    error: ErrorCode
    error_message: str = ""


class DescribeFeaturesRequest(Message, frozen=True, kw_only=True):
    """Asks which features exist and which are finalized (in Kafka a part of ApiVersions)."""


class DescribedFeature(msgspec.Struct, frozen=True, kw_only=True):
    """A feature: levels that this program supports, both inclusive, and the finalized one (0: none)."""

    name: str
    min_supported_version: int
    max_supported_version: int
    finalized_version: int


class DescribeFeaturesResponse(Message, frozen=True, kw_only=True):
    """Features by name."""

    error: ErrorCode
    features: tuple[DescribedFeature, ...] = ()


# --- Brokers ------------------------------------------------------------------------------------------------------


class UnregisterBrokerRequest(Message, frozen=True, kw_only=True):
    """Unregisters a broker, whether dead or alive."""

    broker_id: BrokerId


class UnregisterBrokerResponse(Message, frozen=True, kw_only=True):
    """The result of unregistering a broker."""

    error: ErrorCode
    error_message: str = ""


class DescribeClusterRequest(Message, frozen=True, kw_only=True):
    """Asks for the members of the cluster."""


class DescribedBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A registered broker, alive or not.

    ``applied_offset`` is that of the last metadata record which it has applied, as of its last heartbeat; ``None``
    before the first one. Kafka's DescribeQuorum reports the same for observers.
    """

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    incarnation_id: IncarnationId
    is_fenced: bool
    in_controlled_shutdown: bool
    applied_offset: MetadataOffset | None = None


class DescribeClusterResponse(Message, frozen=True, kw_only=True):
    """Registered brokers by id; ``metadata_end_offset`` is the end of the committed metadata."""

    error: ErrorCode
    cluster_id: str = ""
    controller_id: NodeId = NodeId(0)
    metadata_end_offset: MetadataOffset = MetadataOffset(0)
    brokers: tuple[DescribedBroker, ...] = ()


# --- Access control lists -----------------------------------------------------------------------------------------


class AclResult(msgspec.Struct, frozen=True, kw_only=True):
    """One entry's outcome."""

    error: ErrorCode
    error_message: str = ""


class CreateAclsRequest(Message, frozen=True, kw_only=True):
    """Adds access control entries, each with its own outcome; an existing entry stays unchanged."""

    acls: tuple[AccessControlEntry, ...]


class CreateAclsResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order."""

    results: tuple[AclResult, ...]


class DescribeAclsRequest(Message, frozen=True, kw_only=True):
    """Asks for the entries that a filter matches."""

    filter: AclFilter


class DescribeAclsResponse(Message, frozen=True, kw_only=True):
    """Entries in the order in which they were added."""

    error: ErrorCode
    error_message: str = ""
    acls: tuple[AccessControlEntry, ...] = ()


class DeleteAclsRequest(Message, frozen=True, kw_only=True):
    """Removes the entries that each of several filters matches."""

    filters: tuple[AclFilter, ...]


class DeletedAcls(msgspec.Struct, frozen=True, kw_only=True):
    """One filter's outcome, and the entries that it removed."""

    error: ErrorCode
    error_message: str = ""
    acls: tuple[AccessControlEntry, ...] = ()


class DeleteAclsResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order."""

    results: tuple[DeletedAcls, ...]


# --- Quotas of clients --------------------------------------------------------------------------------------------


class QuotaOperation(msgspec.Struct, frozen=True, kw_only=True):
    """Sets a quota, or removes it where ``value`` is ``None``."""

    key: str
    value: float | None


class QuotaAlteration(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of one entity's quotas."""

    entity: tuple[QuotaEntityPart, ...]
    ops: tuple[QuotaOperation, ...]


class QuotaResult(msgspec.Struct, frozen=True, kw_only=True):
    """One entity's outcome."""

    error: ErrorCode
    error_message: str = ""


class AlterClientQuotasRequest(Message, frozen=True, kw_only=True):
    """Changes quotas of clients; each entity's outcome is its own. With ``validate_only`` nothing is changed."""

    entries: tuple[QuotaAlteration, ...]
    validate_only: bool = False


class AlterClientQuotasResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order."""

    results: tuple[QuotaResult, ...]


AdminRequest: TypeAlias = (
    CreateTopicsRequest
    | DeleteTopicsRequest
    | CreatePartitionsRequest
    | ElectLeadersRequest
    | AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
    | IncrementalAlterConfigsRequest
    | DescribeConfigsRequest
    | UpdateFeaturesRequest
    | DescribeFeaturesRequest
    | UnregisterBrokerRequest
    | DescribeClusterRequest
    | CreateAclsRequest
    | DescribeAclsRequest
    | DeleteAclsRequest
    | AlterClientQuotasRequest
)

AdminResponse: TypeAlias = (
    CreateTopicsResponse
    | DeleteTopicsResponse
    | CreatePartitionsResponse
    | ElectLeadersResponse
    | AlterPartitionReassignmentsResponse
    | ListPartitionReassignmentsResponse
    | IncrementalAlterConfigsResponse
    | DescribeConfigsResponse
    | UpdateFeaturesResponse
    | DescribeFeaturesResponse
    | UnregisterBrokerResponse
    | DescribeClusterResponse
    | CreateAclsResponse
    | DescribeAclsResponse
    | DeleteAclsResponse
    | AlterClientQuotasResponse
)
