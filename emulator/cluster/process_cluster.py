"""A cluster of real processes: one or several controllers, N brokers, and where needed a proxy for each pair of them.

It keeps each node's address, folders and incarnations, and starts, stops, kills and pauses nodes. Recording and
interpretation are up to the caller.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from laststand.emulator.cluster.child import EndCause, ProcessEnd, StartError
from laststand.emulator.cluster.layout import ClusterLayout, key_file
from laststand.emulator.cluster.node_files import NodeFiles
from laststand.emulator.cluster.node_host import LocalHost, NodeHost, NodeProcess
from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core.address import host_and_port
from laststand.emulator.core.eras import node_rules, plain_switches
from laststand.emulator.core.node_clock import NORMAL_RATE_PPM
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, NodeId, kafka_client_ids
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.core.zookeeper.inter_broker_protocol import IbpLevel
from laststand.emulator.node.config import KafkaConfig, KafkaListenerConfig, NodeConfig, encode_config, zookeeper_config
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.rpc.certificates import Certificates
from laststand.emulator.rpc.interception import InterceptionOrder
from laststand.emulator.rpc.run_token import RunToken

if TYPE_CHECKING:
    from laststand.emulator.cluster.toxiproxy import Toxiproxy

CLIENT_NAME: Final = "client"
"""Name of the client process among the supervisor's children."""


class ProcessCluster:
    """The processes of one run. Use it as an asynchronous context manager: leaving it kills what still runs.

    Attributes:
        records_unreachable_peers: whether brokers record events about peers that they cannot reach.
        cluster_id: the layout's, or the random one.
        interceptions: faults of single messages that a node has from its next start on.
        clock_rates: of nodes whose clocks are wrong, in parts per million, by node.
        eras: rules of nodes that differ from the layout's, by node, in the form of ``node_rules``.
        protocols: of brokers in a cluster with ZooKeeper that use another protocol version than the rules name, by
            broker.
    """

    records_unreachable_peers: bool = True

    def __init__(
        self,
        layout: ClusterLayout,
        *,
        on_start: Callable[[NodeId, int, Switches | None], None],
        on_unexpected_end: Callable[[str, ProcessEnd], None],
        host: NodeHost | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            layout: the nodes of the cluster, and the places of its files.
            on_start: called with node, incarnation and the node's own rules, if any, just before each process starts.
            on_unexpected_end: called at once with the name of every process that ended unexpectedly, or failed to stop.
            host: where the nodes run; by default, on this machine's loopback.
        """
        self.layout = layout
        self.supervisor = Supervisor(on_end=self._ended)
        self._host = host or LocalHost(self.supervisor)
        self.toxiproxy: Toxiproxy | None = None
        self.interceptions: dict[NodeId, tuple[InterceptionOrder, ...]] = {}
        self.clock_rates: dict[NodeId, int] = {}
        self.eras: dict[NodeId, str] = {}
        self.protocols: dict[NodeId, IbpLevel] = {}
        self._doomed: dict[str, ProcessEnd | None] = {}
        self._on_start = on_start
        self._on_unexpected_end = on_unexpected_end
        self._incarnations: dict[NodeId, int] = {}
        self.cluster_id = layout.cluster_id or uuid_text(os.urandom(16))

    async def __aenter__(self) -> Self:
        """Reserves the nodes' ports, so that addresses are known from now on, and returns this cluster.

        In a directory in which the nodes ran before, their incarnation numbers continue.

        Raises:
            EmulatorError: a port of the layout is taken, or the host cannot be used.
        """
        await self.supervisor.__aenter__()
        layout = self.layout
        await self._host.open(layout, on_end=self._ended)
        for node_id in layout.node_ids:
            last = layout.last_incarnation(node_id)
            if last is not None:
                self._incarnations[node_id] = last
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kills what still runs."""
        if self.toxiproxy is not None:
            await self.toxiproxy.stop()
        try:
            await self.supervisor.__aexit__(kind, error, trace)
        finally:
            await self._host.close()

    @property
    def files(self) -> NodeFiles:
        """The nodes' files."""
        return self._host.files

    @property
    def token(self) -> RunToken:
        """The token by which the cluster's processes authenticate each other."""
        return self._host.token

    @property
    def configures_nodes(self) -> bool:
        return self._host.configures_nodes

    # --- Addresses ------------------------------------------------------------------------------------------------

    def ports(self) -> dict[int, int]:
        """Returns the port of every node."""
        return {node: _port(address) for node, address in self.direct_addresses().items()}

    def metrics_ports(self) -> dict[int, int]:
        """Returns the metrics port of every node; empty if the layout has none."""
        return {node: _port(address) for node, address in self.metrics_addresses().items()}

    def direct_addresses(self) -> dict[int, str]:
        """Returns the address of every node, bypassing the proxies."""
        return {int(node): self._host.address(node) for node in self.layout.node_ids}

    def metrics_addresses(self) -> dict[int, str]:
        """Returns the address of every node's ``/metrics``; empty if the layout has none."""
        served = {int(node): self._host.metrics_address(node) for node in self.layout.node_ids}
        return {node: address for node, address in served.items() if address is not None}

    def addresses_for(self, source: NodeId) -> dict[int, str]:
        """Returns the addresses at which a node, or ``CLIENT``, reaches every node: its own port or its proxy's."""
        if self.toxiproxy is None:
            return self.direct_addresses()
        return {link.target: self.toxiproxy.address(link) for link in self.toxiproxy.links if link.source == source}

    # --- Processes ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts every process of the cluster at once; before them the proxies, unless they run already.

        Nodes that run already, because another party started them, are only recorded. A standby controller that never
        ran stays down.

        Raises:
            StartError: a node did not become ready.
            ToxiproxyError: the proxies could not be made.
        """
        if self.layout.toxiproxy is not None and self.toxiproxy is None:
            await self.start_proxies(self.layout.toxiproxy)
        await self._start_together([node_id for node_id in self.layout.node_ids if not self.is_awaited(node_id)])

    def is_awaited(self, node_id: NodeId) -> bool:
        """Returns whether a node is a standby controller that was never started."""
        return node_id in self.layout.standby_ids and node_id not in self._incarnations

    async def _start_together(self, node_ids: Sequence[NodeId]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for node_id in self.layout.processes_of(node_ids):
                if self.is_running(node_id):
                    self._note_running(node_id)
                else:
                    tasks.create_task(self.start_node(node_id))

    def _note_running(self, node_id: NodeId) -> None:
        self._on_start(node_id, self._incarnations[node_id], self.own_rules(node_id))

    async def start_proxies(self, program: Path) -> None:
        """Starts a proxy for every link, all links open; from now on addresses are those of the proxies.

        Args:
            program: of toxiproxy-server.

        Raises:
            ToxiproxyError: the proxies could not be made.
        """
        self.toxiproxy = await self._host.start_toxiproxy(program)
        if self.toxiproxy.links:
            return  # somebody else made them
        # Nobody dials the client. The controller dials brokers when it recovers a partition.
        upstreams = {
            Link(source, node): self._host.address(node)
            for source in (CLIENT, *self.layout.node_ids)
            for node in self.layout.node_ids
            if source != node
        }
        upstreams |= await self._detours()
        upstreams |= {link: self._host.kafka_address(link) for link in self.layout.kafka_links}
        with self._reserved_kafka_ports() as reserved:
            await self.toxiproxy.create(upstreams, listeners={**reserved, **self._listeners(upstreams)})

    async def _detours(self) -> Mapping[Link[NodeId], str]:
        """Returns the addresses to which the proxies of links forward, if not to the node."""
        return {}

    @contextmanager
    def _reserved_kafka_ports(self) -> Iterator[Mapping[Link[NodeId], str]]:
        """Chooses the brokers' ports for Kafka clients; a cluster that is started again will find these ports free."""
        with ExitStack() as stack:
            chosen: dict[Link[NodeId], str] = {}
            if self._host.listen_host == LOOPBACK:
                for link in self.layout.kafka_links:
                    port = stack.enter_context(closing(ReservedPort()))
                    port.lend()
                    chosen[link] = port.address
            yield chosen

    def _listeners(self, _: Iterable[Link[NodeId]]) -> Mapping[Link[NodeId], str]:
        """Returns the listening addresses of the links' proxies, if they are fixed."""
        ports = {link: self.layout.kafka_port(link) for link in self.layout.kafka_links}
        return {link: f"{LOOPBACK}:{port}" for link, port in ports.items() if port is not None}

    async def start_node(self, node_id: NodeId) -> int:
        """Starts the next incarnation of a node that is down, waits until it listens, and returns its number.

        Nodes that share its process are started with it.

        Raises:
            StartError: the process did not become ready.
            InvariantError: the node runs.
        """
        machine = self.layout.machine_of(node_id)
        incarnations = {each: self._incarnations.get(each, -1) + 1 for each in machine}
        for each, incarnation in incarnations.items():
            self.layout.node_directory(each).mkdir(parents=True, exist_ok=True)
            self.layout.event_file(each, incarnation).parent.mkdir(exist_ok=True)
        arguments = self._arguments(incarnations) if self.configures_nodes else ()
        self._incarnations.update(incarnations)
        for each, incarnation in incarnations.items():
            self._on_start(each, incarnation, self.own_rules(each))
        await self._host.start(machine[0], arguments)
        return incarnations[node_id]

    def _arguments(self, incarnations: Mapping[NodeId, int]) -> tuple[str, ...]:
        """Configures all nodes of a process, and returns its arguments: all roles, then the arguments of each role."""
        configured = [self._configure(node_id, incarnation) for node_id, incarnation in incarnations.items()]
        roles = ",".join(role for role, *_ in configured)
        return roles, *(argument for _, *of_role in configured for argument in of_role)

    def _configure(self, node_id: NodeId, incarnation: int) -> tuple[str, ...]:
        """Writes a node's configuration, and returns its arguments."""
        config_path = self._config_path(node_id, incarnation)
        config_path.write_bytes(encode_config(self._config(node_id, incarnation)))
        return self.layout.role_of(node_id).value, "--config", str(config_path)

    def _config_path(self, node_id: NodeId, incarnation: int) -> Path:
        return self.layout.node_directory(node_id) / f"config-{incarnation}.json"

    def own_rules(self, node_id: NodeId) -> Switches | None:
        """Returns the rules of a node's next process, if they are not the layout's."""
        era = self.eras.get(node_id)
        return None if era is None else node_rules(era)

    def set_release(self, node_id: NodeId, *, era: str | None, kafka: str | None) -> None:
        """Sets the rules of a node's next processes, if any are named.

        Args:
            node_id: the node.
            era: in the form of ``node_rules``.
            kafka: a release, only for nodes of Apache Kafka.
        """
        if era is not None:
            self.eras[node_id] = era

    def incarnation(self, node_id: NodeId) -> int:
        """Returns the number of a node's last process.

        Raises:
            KeyError: the node was never started.
        """
        return self._incarnations[node_id]

    def is_running(self, node_id: NodeId) -> bool:
        """Returns whether a node's process exists, paused or not."""
        return self.process_of(node_id) is not None

    def is_paused(self, node_id: NodeId) -> bool:
        """Returns whether a node's process stands still."""
        process = self.process_of(node_id)
        return process is not None and process.is_paused

    async def stop_node(self, node_id: NodeId) -> ProcessEnd | None:
        """Ends a node in order; ``None`` if it was down."""
        child = self.process_of(node_id)
        return None if child is None else await child.stop()

    def end_broker(self, broker_id: BrokerId) -> None:
        """Ends the broker of a process with both roles in order; its controller continues until the node is stopped."""
        child = self.process_of(broker_id)
        if child is not None:
            child.notify(signal.SIGUSR2)

    async def kill_node(self, node_id: NodeId) -> ProcessEnd | None:
        """Kills a node; ``None`` if it was down."""
        child = self.process_of(node_id)
        return None if child is None else await child.kill()

    async def await_failure(self, node_id: NodeId, *, timeout_s: float) -> ProcessEnd | None:
        """Returns the unexpected end of a node; ``None`` if the node still runs at the deadline, or was down."""
        with self._expecting_end(node_id):
            return await self._end_within(node_id, timeout_s)

    async def start_to_fail(self, node_id: NodeId, *, timeout_s: float) -> ProcessEnd | None:
        """Starts a node that is expected to end by itself; returns its end, ``None`` if it still runs by then."""
        with self._expecting_end(node_id):
            try:
                await self.start_node(node_id)
            except StartError as error:
                return error.end
            end = await self._end_within(node_id, timeout_s)
            return self._doomed[self._process_name(node_id)] if end is None else end

    @contextmanager
    def _expecting_end(self, node_id: NodeId) -> Iterator[None]:
        self._doomed[self._process_name(node_id)] = None
        try:
            yield
        finally:
            del self._doomed[self._process_name(node_id)]

    async def _end_within(self, node_id: NodeId, timeout_s: float) -> ProcessEnd | None:
        child = self.process_of(node_id)
        if child is None:
            return None
        try:
            async with asyncio.timeout(timeout_s):
                return await child.wait()
        except TimeoutError:
            return None

    async def pause_node(self, node_id: NodeId) -> bool:
        """Pauses a node's process; returns whether that changed anything."""
        child = self.process_of(node_id)
        return child is not None and await child.pause()

    async def resume_node(self, node_id: NodeId) -> bool:
        """Resumes a paused node; returns whether that changed anything."""
        child = self.process_of(node_id)
        return child is not None and await child.resume()

    async def disconnect_node(self, node_id: NodeId) -> bool:
        """Takes a node off its network; returns whether that changed anything."""
        return await self._host.disconnect(node_id)

    async def connect_node(self, node_id: NodeId) -> bool:
        """Puts a node back on its network; returns whether that changed anything."""
        return await self._host.connect(node_id)

    def process_of(self, node_id: NodeId) -> NodeProcess | None:
        """Returns a node's process; ``None`` if it is down."""
        return self._host.children.get(self._process_name(node_id))

    def _process_name(self, node_id: NodeId) -> str:
        return str(self.layout.machine_of(node_id)[0])

    def has_sync_ledger(self, _: NodeId) -> bool:
        """Returns whether a node's syncs are recorded, so that it can lose power."""
        return True

    def notify_node(self, node_id: NodeId) -> None:
        """Signals a running node to read the faults of its disk."""
        child = self.process_of(node_id)
        if child is not None:
            child.notify()

    def _config(self, node_id: NodeId, incarnation: int) -> NodeConfig:
        layout = self.layout
        addresses = self.addresses_for(node_id)
        metrics_address = self._host.metrics_address(node_id)
        return NodeConfig(
            run=layout.run,
            node_id=node_id,
            incarnation=incarnation,
            cluster_id=self.cluster_id,
            controller_ids=layout.controller_ids,
            standby_ids=layout.standby_ids,
            data_dirs=(str(layout.data_directory(node_id)),),
            ledger_dir=str(layout.ledger_directory(node_id)),
            event_file=str(layout.event_file(node_id, incarnation)),
            token_file=str(layout.token_file),
            switches=plain_switches(self.own_rules(node_id) or layout.switches),
            zookeeper=zookeeper_config(layout.switches, started_with=self.protocols.get(node_id)),
            properties={**self._certificate_properties(node_id), **dict(layout.properties)},
            host=self._host.listen_host,
            port=_port(self._host.address(node_id)),
            metrics_port=None if metrics_address is None else _port(metrics_address),
            kafka=self._kafka_config(node_id, incarnation),
            addresses={NodeId(node): address for node, address in addresses.items()},
            clock_rate_ppm=self.clock_rates.get(node_id, NORMAL_RATE_PPM),
            interceptions=self.interceptions.get(node_id, ()),
        )

    def _certificate_properties(self, node_id: NodeId) -> dict[str, str]:
        layout = self.layout
        return Certificates(layout.tls_folder, node_name(node_id)).properties if layout.has_tls else {}

    def kafka_addresses(self) -> dict[str, dict[BrokerId, str]]:
        """Returns the addresses at which each client of Apache Kafka reaches the brokers, by its name."""
        reached = self._host.kafka_address
        if self.toxiproxy is not None and self.configures_nodes:
            reached = self.toxiproxy.address
        return {
            name: {broker_id: reached(Link(client_id, broker_id)) for broker_id in self.layout.broker_ids}
            for client_id, name in kafka_client_ids(self.layout.kafka_clients).items()
        }

    def kafka_ports(self) -> dict[str, dict[int, int]]:
        """Returns the ports of these addresses."""
        return {
            name: {int(broker_id): _port(address) for broker_id, address in addresses.items()}
            for name, addresses in self.kafka_addresses().items()
        }

    def _kafka_config(self, node_id: NodeId, incarnation: int) -> KafkaConfig | None:
        advertised = self.kafka_addresses()
        if not advertised or node_id not in self.layout.broker_ids:
            return None
        history = self.layout.foreign_history_file(node_id, incarnation)
        history.parent.mkdir(exist_ok=True)
        keys = key_file(self.layout.directory, node_id, incarnation=incarnation)
        listeners = tuple(
            KafkaListenerConfig(
                client_id=client_id,
                port=_port(self._host.kafka_address(Link(client_id, node_id))),
                advertised=advertised[name],
            )
            for client_id, name in kafka_client_ids(self.layout.kafka_clients).items()
        )
        return KafkaConfig(listeners=listeners, history=str(history), keys=str(keys))

    def _ended(self, end: ProcessEnd) -> None:
        if end.name in self._doomed:
            self._doomed[end.name] = end
        elif end.cause in (EndCause.UNEXPECTED, EndCause.STOP_TIMED_OUT, EndCause.UNSEEN):
            self._on_unexpected_end(end.name, end)


def _port(address: str) -> int:
    return host_and_port(address)[1]
