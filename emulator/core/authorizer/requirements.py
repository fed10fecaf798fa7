"""The permission that each request between nodes needs, as Kafka's ``KafkaApis`` and ``ControllerApis`` ask for it.

Requests that are not listed need no permission, such as DescribeCluster, or only clients of Kafka send them
(``emulator.kafka_listener.permissions``).
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from laststand.emulator.core import admin_messages, group_messages, messages, transaction_messages
from laststand.emulator.core.acls import AclOperation
from laststand.emulator.core.message import Message


class Subject(Enum):
    """The resources that a permission is about."""

    CLUSTER = "the cluster"
    TOPICS = "each topic"
    TRANSACTIONAL_ID = "its transactional id"
    CONFIGURED = "each topic, or the cluster for a broker"
    GROUP = "its group, and each topic"
    MEMBERSHIP = "its group"


class Requirement(NamedTuple):
    """A permission.

    Attributes:
        operation: the operation that has to be allowed.
        subject: the resources on which it has to be allowed.
        on_cluster: an operation on the cluster that suffices instead.
        on_any_topic: an operation on any topic that suffices instead of the one on the cluster.
        of_followers: an operation on the cluster that replicas need instead.
    """

    operation: AclOperation
    subject: Subject = Subject.CLUSTER
    on_cluster: AclOperation | None = None
    on_any_topic: AclOperation | None = None
    of_followers: AclOperation | None = None


_INTER_BROKER: Final = Requirement(AclOperation.CLUSTER_ACTION)
_WRITE_TRANSACTION: Final = Requirement(AclOperation.WRITE, Subject.TRANSACTIONAL_ID)
_MEMBERSHIP: Final = Requirement(AclOperation.READ, Subject.MEMBERSHIP)
_ALTER_CLUSTER: Final = Requirement(AclOperation.ALTER)
_DESCRIBE_CLUSTER: Final = Requirement(AclOperation.DESCRIBE)
_DESCRIBE_TOPICS: Final = Requirement(AclOperation.DESCRIBE, Subject.TOPICS)

REQUIREMENTS: Final[Mapping[type[Message], Requirement]] = {
    messages.BrokerRegistrationRequest: _INTER_BROKER,
    messages.BrokerHeartbeatRequest: _INTER_BROKER,
    messages.AlterPartitionRequest: _INTER_BROKER,
    messages.AllocateProducerIdsRequest: _INTER_BROKER,
    messages.GetReplicaLogInfoRequest: _INTER_BROKER,
    transaction_messages.InitTransactionRequest: _WRITE_TRANSACTION,
    transaction_messages.EndTxnRequest: _WRITE_TRANSACTION,
    transaction_messages.AddPartitionsToTxnRequest: _INTER_BROKER,
    transaction_messages.WriteTxnMarkersRequest: _INTER_BROKER._replace(on_cluster=AclOperation.ALTER),
    transaction_messages.TransactionsOfProducersRequest: _INTER_BROKER,
    group_messages.OffsetCommitRequest: Requirement(AclOperation.READ, Subject.GROUP),
    group_messages.OffsetFetchRequest: Requirement(AclOperation.DESCRIBE, Subject.GROUP),
    group_messages.JoinGroupRequest: _MEMBERSHIP,
    group_messages.SyncGroupRequest: _MEMBERSHIP,
    group_messages.HeartbeatRequest: _MEMBERSHIP,
    group_messages.LeaveGroupRequest: _MEMBERSHIP,
    messages.ProduceRequest: Requirement(AclOperation.WRITE, Subject.TOPICS),
    messages.FetchRequest: Requirement(AclOperation.READ, Subject.TOPICS, of_followers=AclOperation.CLUSTER_ACTION),
    messages.ListOffsetsRequest: _DESCRIBE_TOPICS,
    messages.OffsetForLeaderEpochRequest: Requirement(
        AclOperation.DESCRIBE, Subject.TOPICS, on_cluster=AclOperation.CLUSTER_ACTION
    ),
    messages.DeleteRecordsRequest: Requirement(AclOperation.DELETE, Subject.TOPICS),
    messages.MetadataRequest: _DESCRIBE_TOPICS,
    messages.DescribeTopicPartitionsRequest: _DESCRIBE_TOPICS,
    messages.InitProducerIdRequest: Requirement(AclOperation.IDEMPOTENT_WRITE, on_any_topic=AclOperation.WRITE),
    admin_messages.CreateTopicsRequest: Requirement(
        AclOperation.CREATE, Subject.TOPICS, on_cluster=AclOperation.CREATE
    ),
    admin_messages.DeleteTopicsRequest: Requirement(AclOperation.DELETE, Subject.TOPICS),
    admin_messages.CreatePartitionsRequest: Requirement(AclOperation.ALTER, Subject.TOPICS),
    admin_messages.ElectLeadersRequest: _ALTER_CLUSTER,
    admin_messages.AlterPartitionReassignmentsRequest: _ALTER_CLUSTER,
    admin_messages.ListPartitionReassignmentsRequest: _DESCRIBE_CLUSTER,
    admin_messages.IncrementalAlterConfigsRequest: Requirement(AclOperation.ALTER_CONFIGS, Subject.CONFIGURED),
    admin_messages.DescribeConfigsRequest: Requirement(AclOperation.DESCRIBE_CONFIGS, Subject.CONFIGURED),
    admin_messages.UpdateFeaturesRequest: _ALTER_CLUSTER,
    admin_messages.UnregisterBrokerRequest: _ALTER_CLUSTER,
    admin_messages.CreateAclsRequest: _ALTER_CLUSTER,
    admin_messages.DescribeAclsRequest: _DESCRIBE_CLUSTER,
    admin_messages.DeleteAclsRequest: _ALTER_CLUSTER,
    admin_messages.AlterClientQuotasRequest: Requirement(AclOperation.ALTER_CONFIGS),
}
"""The requirement of each type of request."""

METADATA_STREAM: Final = _INTER_BROKER
"""The requirement of reading the metadata log, which Kafka's brokers do by Fetch."""

FORWARDING: Final = _INTER_BROKER
"""The requirement of passing on a client's request under the client's principal (Envelope)."""
