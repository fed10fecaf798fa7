"""A tap: proxies between unmodified clients of Kafka and a cluster, which write down what each client was answered.

There is a proxy for each broker, and in responses the brokers' addresses are replaced by those of their proxies, so
that clients stay on the tap. A broker that a response names for the first time gets a proxy at the next port.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from laststand.emulator.cluster.external_cluster import ExternalCluster
from laststand.emulator.cluster.tapped_connection import TappedBroker, TappedConnection
from laststand.emulator.core import messages
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import BrokerId, TopicId, TopicPartition
from laststand.emulator.kafka.client_calls import metadata_call
from laststand.emulator.kafka.connection import connected
from laststand.emulator.kafka.topic_configs import configs_that_change_batches
from laststand.emulator.rpc.frame_end import FrameEnd

_log: Final = logging.getLogger(__name__)

_ASKS_WITHIN_S: Final = 5.0


class Listen(NamedTuple):
    """The addresses to which clients connect.

    Attributes:
        host: the interface.
        port: of the first broker's proxy; the other proxies have the next ones. 0 stands for free ports.
        advertised: the host in answers to clients.
    """

    host: str
    port: int
    advertised: str


class KafkaTap:
    """Proxies for the brokers of a cluster; ``open`` starts them.

    Args:
        cluster: the cluster as it was found.
        listen: the addresses to which clients connect.
        history_file: returns the file for a broker's clients.
        key_file: returns the file for the keys of acknowledged records; ``None`` if they are not recorded.

    Attributes:
        addresses: of the brokers.
        problem: why not everything was recorded; ``None`` if everything was.
        failed: is set if there is a problem.
    """

    def __init__(
        self,
        cluster: ExternalCluster,
        listen: Listen,
        *,
        history_file: Callable[[BrokerId], Path],
        key_file: Callable[[BrokerId], Path | None],
    ) -> None:
        self.addresses = dict(cluster.addresses)
        self.problem: str | None = None
        self.failed = asyncio.Event()
        self._listen = listen
        self._history_file = history_file
        self._key_file = key_file
        self._proxies: dict[BrokerId, _BrokerProxy] = {}
        self._topic_ids: dict[str, TopicId] = {}
        self._names: dict[TopicId, str] = {}
        self._configured: set[str] = set()
        self._changed: dict[str, str] = {}
        self._opening = asyncio.Lock()

    @property
    def bootstrap(self) -> str:
        """Addresses for clients, as ``bootstrap.servers``."""
        return ",".join(f"{self._listen.advertised}:{port}" for port in self._ports().values())

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Partitions that clients have written to or read from."""
        return frozenset().union(*(proxy.broker.partitions for proxy in self._proxies.values()))

    async def open(self) -> None:
        """Starts the proxies.

        Raises:
            ConfigError: another process listens at one of the ports.
        """
        for broker_id, address in sorted(self.addresses.items()):
            await self._proxy(broker_id, address)

    async def close(self) -> None:
        """Ends all connections, and seals the histories."""
        for proxy in self._proxies.values():
            proxy.close()
            proxy.broker.close()

    async def place_of(self, broker_id: BrokerId, address: str) -> tuple[str, int]:
        """Returns the address at which clients reach a broker that a response names."""
        async with self._opening:
            self.addresses[broker_id] = address
            if broker_id in self._proxies:  # it may have come back at another address
                self._proxies[broker_id].broker.address = address
            else:
                await self._proxy(broker_id, address)
        return self._listen.advertised, self._ports()[broker_id]

    async def learn_topics(self, topics: Iterable[tuple[str, TopicId | None]]) -> None:
        """Notes the topic names and ids in a response; asks the cluster for missing ids, and for configurations."""
        named = list(topics)
        for name, topic_id in named:
            if topic_id is not None:
                self._learn_topic(name, topic_id)
        if any(name not in self._topic_ids for name, _ in named):
            await self._ask_topics()
        new = [name for name, _ in named if name not in self._configured]
        if new:
            await self._ask_configs(new)

    def is_judged(self, topic: str) -> bool:
        """Returns whether brokers store the topic's batches as they were sent."""
        return topic not in self._changed

    def topic_of(self, name: str | None, topic_id: TopicId | None) -> tuple[str, TopicId | None]:
        """Returns name and id of a topic, given one of them by a request."""
        if name is None:
            return self._names.get(topic_id or TopicId(""), f"?{topic_id}"), topic_id
        return name, self._topic_ids.get(name)

    def fail(self, problem: str) -> None:
        """Ends the tap, as the requests of clients can no longer be recorded."""
        self.problem = self.problem or problem
        self.failed.set()

    def _learn_topic(self, name: str, topic_id: TopicId) -> None:
        self._topic_ids[name] = topic_id
        self._names[topic_id] = name

    async def _ask_topics(self) -> None:
        call = metadata_call(messages.MetadataRequest(topics=()))
        for address in self.addresses.values():
            try:
                async with asyncio.timeout(_ASKS_WITHIN_S), connected(address) as connection:
                    response, _ = call.decode(await connection.ask(call.request, call.response))
            except OSError:  # a timeout is one
                continue
            assert isinstance(response, messages.MetadataResponse)
            for topic in response.topics:
                if topic.topic_id is not None:
                    self._learn_topic(topic.name, topic.topic_id)
            return

    async def _ask_configs(self, topics: Sequence[str]) -> None:
        for address in self.addresses.values():
            try:
                async with asyncio.timeout(_ASKS_WITHIN_S), connected(address) as connection:
                    changed = await configs_that_change_batches(connection, topics)
            except OSError:
                continue
            for topic, config in changed.items():
                _log.warning("topic %s has %s, so its records are not judged", topic, config)
            self._changed |= changed
            self._configured.update(topics)
            return

    def _ports(self) -> Mapping[BrokerId, int]:
        return {broker_id: proxy.port for broker_id, proxy in self._proxies.items()}

    async def _proxy(self, broker_id: BrokerId, address: str) -> None:
        broker = TappedBroker(
            broker_id,
            address,
            history_file=self._history_file(broker_id),
            key_file=self._key_file(broker_id),
            cluster=self,
        )
        proxy = _BrokerProxy(broker)
        port = self._listen.port + len(self._proxies) if self._listen.port else 0
        try:
            await proxy.open(self._listen.host, port)
        except (OSError, OverflowError) as error:  # asyncio raises the latter for a port that cannot exist
            listen = f"{self._listen.host}:{port}"
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(key="--listen", value=listen, expected=f"an address that is free: {reason}") from None
        self._proxies[broker_id] = proxy


class _BrokerProxy:
    """Connections of clients to one broker; ``open`` starts to listen for them."""

    def __init__(self, broker: TappedBroker) -> None:
        self.broker = broker
        self.port = 0
        self._server: asyncio.Server
        self._connections: set[TappedConnection] = set()
        self._count = 0

    async def open(self, host: str, port: int) -> None:
        """Listens on a port of an interface, or on a free one.

        Raises:
            OSError: another process uses the port.
        """
        self._server = await asyncio.get_running_loop().create_server(self._connect, host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Closes the port and all connections."""
        self._server.close()
        for connection in list(self._connections):
            connection.close()

    def _connect(self) -> FrameEnd:
        self._count += 1
        connection = TappedConnection(self.broker, number=self._count, on_end=self._connections.discard)
        self._connections.add(connection)
        connection.dial()
        return connection.client
