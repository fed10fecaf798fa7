"""Services: the requests of each, and the response to each request.

Every request has a method of its own, named like Kafka's API. All are unary but Produce and Fetch, which are streams
(``data_codec``), and the metadata stream (``metadata_codec``).
"""

from collections.abc import Mapping
from typing import Final, get_args

from laststand.emulator.core import admin_messages, group_messages, messages, transaction_messages
from laststand.emulator.core.message import Message
from laststand.emulator.core.quorum import messages as quorum_messages
from laststand.emulator.core.zookeeper import control_messages

CONTROLLER_SERVICE: Final = "laststand.Controller"
QUORUM_SERVICE: Final = "laststand.Quorum"
"""Served by each of several controllers, beside the controller's."""

BROKER_SERVICE: Final = "laststand.Broker"
ZOOKEEPER_BROKER_SERVICE: Final = "laststand.ZooKeeperBroker"
"""Served by brokers of clusters with ZooKeeper, beside the broker's: each hosts a controller."""

RESPONSE_OF: Final[Mapping[type[Message], type[Message]]] = {
    **messages.RESPONSE_OF,
    **quorum_messages.RESPONSE_OF,
    **dict(zip(get_args(control_messages.ControlMessage), get_args(control_messages.ControlAnswer), strict=True)),
    control_messages.ControlledShutdownRequest: control_messages.ControlledShutdownResponse,
}
"""The response type of each request type."""

STREAMED: Final[tuple[type[Message], ...]] = (messages.ProduceRequest, messages.FetchRequest)
"""Requests of a broker that are streamed."""

UNARY: Final[Mapping[str, tuple[type[Message], ...]]] = {
    CONTROLLER_SERVICE: (
        messages.BrokerRegistrationRequest,
        messages.BrokerHeartbeatRequest,
        messages.AlterPartitionRequest,
        messages.AllocateProducerIdsRequest,
        messages.DescribeTopicPartitionsRequest,
        *get_args(admin_messages.AdminRequest),
    ),
    QUORUM_SERVICE: get_args(quorum_messages.QuorumRequest),
    BROKER_SERVICE: (
        messages.MetadataRequest,
        messages.InitProducerIdRequest,
        messages.ListOffsetsRequest,
        messages.OffsetForLeaderEpochRequest,
        messages.DeleteRecordsRequest,
        messages.DescribeTopicPartitionsRequest,
        messages.GetReplicaLogInfoRequest,
        transaction_messages.InitTransactionRequest,
        transaction_messages.EndTxnRequest,
        transaction_messages.AddPartitionsToTxnRequest,
        transaction_messages.WriteTxnMarkersRequest,
        transaction_messages.TransactionsOfProducersRequest,
        group_messages.OffsetCommitRequest,
        group_messages.OffsetFetchRequest,
        group_messages.JoinGroupRequest,
        group_messages.SyncGroupRequest,
        group_messages.HeartbeatRequest,
        group_messages.LeaveGroupRequest,
    ),
    ZOOKEEPER_BROKER_SERVICE: (
        control_messages.LeaderAndIsrRequest,
        control_messages.UpdateMetadataRequest,
        control_messages.StopReplicaRequest,
        control_messages.ControlledShutdownRequest,
        messages.AlterPartitionRequest,
        admin_messages.ElectLeadersRequest,
        admin_messages.AlterPartitionReassignmentsRequest,
    ),
}
"""Requests that are answered one by one, by service."""


def api_name(request: type[Message]) -> str:
    """Returns Kafka's name of the API that a type of request belongs to, which is the method's too."""
    return request.__name__.removesuffix("Request")
