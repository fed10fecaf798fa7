"""A request of a client, and the broker that received it."""

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from laststand.emulator.core import events, messages
from laststand.emulator.core.acls import AclOperation, Resource, ResourceType
from laststand.emulator.core.address import host_and_port
from laststand.emulator.core.admin_messages import ElectLeadersRequest, RequestedElection
from laststand.emulator.core.authorizer.denials import RecordingAuthorizer
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties, TopicProperties
from laststand.emulator.core.types import BrokerId, CauseId, IsolationLevel, NodeId, TopicId, TopicPartition
from laststand.emulator.kafka_listener.client_history import ClientHistory
from laststand.emulator.kafka_listener.connection import KafkaConnection
from laststand.emulator.kafka_listener.fetch_sessions import FetchSessions
from laststand.emulator.kafka_listener.gateway import Controller, CoreGateway
from laststand.emulator.kafka_listener.messages import Message, VersionRange, all_apis
from laststand.emulator.kafka_listener.quota_usage import QuotaUsage
from laststand.emulator.rpc.orders import is_order, order_relayed

_ISOLATION_LEVELS: Final[dict[int, IsolationLevel]] = {level.value: level for level in IsolationLevel}


class Endpoint(NamedTuple):
    """The address at which clients of a listener reach a broker."""

    host: str
    port: int

    @classmethod
    def parse(cls, address: str) -> "Endpoint":
        """Reads ``host:port``."""
        return cls(*host_and_port(address))


Endpoints: TypeAlias = Mapping[BrokerId, Endpoint]
"""The addresses at which a client reaches each broker."""


class BrokerView(Protocol):
    """The part of its broker that the listener reads."""

    @property
    def image(self) -> MetadataImage:
        """The metadata that the broker has applied."""
        ...

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The replicas that the broker hosts."""
        ...

    @property
    def controller(self) -> BrokerId | None:
        """The broker that is the controller; ``None`` if none is known, or the controller is no broker."""
        ...

    def partition(self, name: TopicPartition) -> Partition | None:
        """Returns a replica that the broker hosts."""
        ...

    def topic_properties(self, topic: str) -> TopicProperties:
        """Returns a topic's effective properties."""
        ...


ResponseT = TypeVar("ResponseT", bound=messages.Response)


class ClientRequest(NamedTuple):
    """A decoded request.

    Attributes:
        key: of the API.
        version: of the request.
        body: fields of the request.
        connection: the connection of the request.
        size: in bytes, with its header.
    """

    key: int
    version: int
    body: Message
    connection: KafkaConnection
    size: int = 0

    @property
    def isolation_level(self) -> IsolationLevel | None:
        """The isolation level of a request that has one; ``None`` for an unknown number."""
        return _ISOLATION_LEVELS.get(self.body["isolationLevel"])


class SaslConfig(NamedTuple):
    """The configuration of a listener with SASL.

    Attributes:
        mechanisms: that may be used.
        passwords: by user.
    """

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str]


class Served(NamedTuple):
    """The broker that a listener serves.

    Attributes:
        broker_id: of the broker.
        cluster_id: of the cluster.
        controllers: nodes to which administrators' requests are forwarded, with their addresses.
        broker: the broker's state.
        log_dir: directory of its logs.
        properties: of the node.
        versions: of each API that the cluster's era serves, by key.
        endpoints: of brokers, for the client of this listener.
        core: takes requests to this broker.
        controller: takes administrators' requests.
        fetch_sessions: of its clients.
        history: of its clients.
        produced: usage of ``producer_byte_rate``.
        fetched: usage of ``consumer_byte_rate``.
        note_order: records an order of a client.
        note_denial: records a denied operation of a client, or its failed authentication.
        permissions: of clients; ``None`` if every client may do everything.
        sasl: of a listener whose clients have to authenticate; ``None`` for other listeners.
        transaction_version: of the era's transactions, as of the feature of this name.
    """

    broker_id: BrokerId
    cluster_id: str
    controllers: Mapping[NodeId, Endpoint]
    broker: BrokerView
    log_dir: str
    properties: NodeProperties
    versions: Mapping[int, VersionRange]
    endpoints: Endpoints
    core: CoreGateway
    controller: Controller
    fetch_sessions: FetchSessions
    history: ClientHistory
    produced: QuotaUsage
    fetched: QuotaUsage
    note_order: Callable[[events.OrderRelayed], None]
    transaction_version: int = 2
    note_denial: Callable[[events.AuthorizationDenied | events.AuthenticationFailed], None] = lambda _: None
    permissions: RecordingAuthorizer | None = None
    sasl: SaslConfig | None = None

    @property
    def controller_id(self) -> NodeId:
        """The controller that is active, as far as this broker knows."""
        active = self.broker.image.controller_id
        return next(iter(self.controllers)) if active is None else active

    async def ask(self, request: messages.Request, expected: type[ResponseT]) -> ResponseT:
        """Returns this broker's own answer to a request of the core."""
        response = (await self.core.ask(request)).response
        assert isinstance(response, expected), "each request has its response"
        return response

    def note(self, request: ClientRequest, asked: messages.Request, *, to: NodeId) -> None:
        """Records an administrator's request before a node gets it, if it changes anything."""
        if is_order(asked):
            client = self.history.process_of(request.connection)
            relayed = order_relayed(
                asked,
                client=client,
                to=to,
                cause_id=CauseId(client),
                metadata_offset=self.broker.image.next_offset,
                unclean_elections=self._unclean_elections(asked),
            )
            self.note_order(relayed)

    def may(self, request: ClientRequest, operation: AclOperation, resource: Resource) -> bool:
        """Returns whether a client may do an operation; records the denial if not."""
        if self.permissions is None:
            return True
        api, cause_id = all_apis()[request.key].name, CauseId(self.history.process_of(request.connection))
        is_allowed = self.permissions.is_allowed(
            api, request.connection.requester, operation, resource, cause_id=cause_id
        )
        if not is_allowed:
            for denial in self.permissions.pop_denials():
                self.note_denial(denial)
        return is_allowed

    def might(self, request: ClientRequest, operation: AclOperation, resource: Resource) -> bool:
        """Returns whether a client is permitted an operation; a denial is not recorded."""
        if self.permissions is None:
            return True
        return self.permissions.authorizer.is_allowed(request.connection.requester, operation, resource)

    def might_on_any(self, request: ClientRequest, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Returns whether a client may do an operation on any resource of a type."""
        if self.permissions is None:
            return True
        return self.permissions.authorizer.is_allowed_on_any(request.connection.requester, operation, resource_type)

    def undescribable(self, request: ClientRequest, topics: Iterable[str]) -> frozenset[str]:
        """Returns the topics that a client names and may not describe; records the denials."""
        return frozenset(
            name for name in topics if not self.may(request, AclOperation.DESCRIBE, Resource(ResourceType.TOPIC, name))
        )

    def unseen(self, request: ClientRequest, topics: Iterable[str]) -> frozenset[str]:
        """Returns the topics that a client does not name and may not describe."""
        if self.permissions is None:
            return frozenset()
        return self.permissions.authorizer.unseen(request.connection.requester, topics)

    def _unclean_elections(self, asked: messages.Request) -> tuple[str, ...]:
        if not isinstance(asked, ElectLeadersRequest) or asked.election_type == RequestedElection.PREFERRED.value:
            return ()
        if asked.partitions is None:
            return tuple(map(str, self.broker.image.partitions))
        return tuple(str(TopicPartition(each.topic, each.partition)) for each in asked.partitions)

    def live_brokers(self) -> list[BrokerId]:
        """Returns the brokers that are not fenced and that this listener's clients can reach, ascending."""
        brokers = self.broker.image.brokers
        return [
            broker_id for broker_id in sorted(brokers) if not brokers[broker_id].fenced and broker_id in self.endpoints
        ]

    def controller_for_clients(self) -> int:
        """Returns the broker named to clients as the controller: any live one, as each forwards requests; -1 for none.

        In a ZooKeeper cluster it is the controller itself.
        """
        if self.broker.controller is not None:
            return self.broker.controller
        return random.choice(self.live_brokers() or [-1])

    def node_endpoints(self, broker_ids: Iterable[int]) -> list[Message]:
        """Returns the addresses of brokers, as hints for the leaders that a response names (KIP-951)."""
        brokers = self.broker.image.brokers
        return [
            {"nodeId": node, "host": endpoint.host, "port": endpoint.port, "rack": brokers[broker_id].rack or None}
            for node in sorted(broker_ids)
            if (broker_id := BrokerId(NodeId(node))) in brokers
            and (endpoint := self.endpoints.get(broker_id)) is not None
        ]

    def topic_name(self, topic: Message) -> str | None:
        """Returns the name of a topic that a request names by name or id; ``None`` for an unknown id."""
        name: str = topic.get("name") or topic.get("topic") or ""
        if name or topic.get("topicId") is None:
            return name
        return self.broker.image.topic_names.get(topic["topicId"])

    def topic_of(self, name: str | None, topic_id: TopicId | None) -> tuple[str, TopicId | None]:
        """Returns name and id of a topic, given one of them by a request."""
        image = self.broker.image
        if name is None:
            return image.topic_names.get(topic_id or TopicId(""), f"?{topic_id}"), topic_id
        return name, image.topics.get(name)


Handler: TypeAlias = Callable[[Served, ClientRequest], Awaitable[Message | None]]
"""Answers the requests of an API; ``None`` to a request that has no answer."""
