"""Links between nodes, and the kinds of messages on them."""

from enum import Enum
from typing import Final, Generic, NamedTuple, TypeVar

from laststand.emulator.core.types import Way
from laststand.emulator.plan.nodes import CLIENT, CONTROLLER, NodeRef

STREAM: Final = "Stream"
"""The metadata stream's messages, as an API."""

SYNC: Final = "Sync"
"""Completions of the controller's disk, as an API of the controller with itself."""

EXECUTE: Final = "Execute"
"""The API name of every request to ZooKeeper within a session."""

ZOOKEEPER_OPERATIONS: Final = (
    "Create",
    "Delete",
    "Exists",
    "GetChildren",
    "GetData",
    "Multi",
    "SetData",
)
"""The kinds of ZooKeeper operations by class; a transaction is ``Multi``."""

SESSION_APIS: Final = ("CloseSession", "Connect", EXECUTE, "OpenSession", "Poll", *ZOOKEEPER_OPERATIONS)
"""Messages between brokers and ZooKeeper's server."""

ZOOKEEPER_APIS: Final = (
    *SESSION_APIS,
    "ControlledShutdown",
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
)
"""Messages that only clusters with ZooKeeper have: of sessions with its server, and of controllers with brokers."""

KAFKA_APIS: Final = (
    "AddOffsetsToTxn",
    "AlterClientQuotas",
    "ApiVersions",
    "CreateAcls",
    "DeleteAcls",
    "DeleteGroups",
    "DescribeAcls",
    "DescribeClientQuotas",
    "DescribeGroups",
    "DescribeLogDirs",
    "DescribeProducers",
    "DescribeQuorum",
    "DescribeTransactions",
    "FindCoordinator",
    "GetTelemetrySubscriptions",
    "ListConfigResources",
    "ListGroups",
    "ListTransactions",
    "OffsetDelete",
    "SaslAuthenticate",
    "SaslHandshake",
    "TxnOffsetCommit",
)
"""Messages that only clients of Kafka exchange with brokers."""

NodeT_co = TypeVar("NodeT_co", bound=NodeRef, covariant=True)
"""``NodeId`` where the node is known, ``NodeRef`` where it may still be a role."""


class Link(NamedTuple, Generic[NodeT_co]):
    """Connections that ``source`` dials to ``target``; prints as ``0->100``, and as ``client->0`` for the clients'."""

    source: NodeT_co
    target: NodeT_co

    def __str__(self) -> str:
        source = "client" if self.source == CLIENT else self.source
        return f"{source}->{self.target}"


class Direction(Enum):
    """The messages of a link that an action means."""

    BOTH = "both"
    REQUESTS = "requests"
    RESPONSES = "responses"

    def includes(self, way: Way) -> bool:
        """Returns whether messages that travel this way are meant."""
        return self is Direction.BOTH or (self is Direction.REQUESTS) == (way is Way.REQUEST)


class Channel(NamedTuple, Generic[NodeT_co]):
    """Messages of one API between two nodes, one way; prints as ``0->1 Fetch response``."""

    source: NodeT_co
    target: NodeT_co
    api: str
    way: Way

    def __str__(self) -> str:
        return f"{self.source}->{self.target} {self.api} {self.way.value}"


CONTROLLER_SYNC: Final = Channel(CONTROLLER, CONTROLLER, SYNC, Way.RESPONSE)
"""Completions of the controller's fsyncs."""
