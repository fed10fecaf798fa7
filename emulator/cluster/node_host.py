"""The places where the nodes of a cluster run: as children of this process, or in containers.

``ProcessCluster`` decides which node runs when and with which configuration; a host only starts processes and knows
their addresses.
"""

import shutil
import signal
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict

from laststand.emulator.cluster.child import STOP_TIMEOUT_S, ProcessEnd, ProcessSpec, Readiness
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.node_files import LocalFiles, NodeFiles
from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.cluster.toxiproxy_build import check_asks_for_token
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import NodeId
from laststand.emulator.module_command import module_command
from laststand.emulator.node.module_names import modules_of
from laststand.emulator.plan.channels import Link
from laststand.emulator.rpc.run_token import RunToken

if TYPE_CHECKING:
    from laststand.emulator.cluster.toxiproxy import Toxiproxy


class NodeProcess(Protocol):
    """One process of a node, from its start to its end: the methods of ``laststand.emulator.cluster.child.Child``."""

    @property
    def pid(self) -> int:
        """The process id on this machine."""
        ...

    @property
    def is_paused(self) -> bool:
        """All threads of the process are stopped."""
        ...

    async def wait(self) -> ProcessEnd:
        """Waits until it has ended."""
        ...

    async def stop(self) -> ProcessEnd:
        """Ends the process in order, or kills it if it does not end in time."""
        ...

    async def kill(self) -> ProcessEnd:
        """Kills the process, and waits until it is gone."""
        ...

    async def pause(self) -> bool:
        """Pauses the process; returns whether that changed anything."""
        ...

    async def resume(self) -> bool:
        """Resumes the process; returns whether that changed anything."""
        ...

    def notify(self, number: signal.Signals = signal.SIGUSR1) -> None:
        """Sends the process a signal."""


class NodeHost(Protocol):
    """Starts nodes and proxies, and ends the remaining ones when it is closed."""

    @property
    def children(self) -> Mapping[str, NodeProcess]:
        """The nodes that run, by the text of their ids."""
        ...

    @property
    def listen_host(self) -> str:
        """The address on which nodes listen."""
        ...

    @property
    def harness_host(self) -> str:
        """The address on which this process serves nodes."""
        ...

    @property
    def configures_nodes(self) -> bool:
        """True if a node starts with the configuration that this cluster writes, not with one of its own."""
        ...

    @property
    def files(self) -> NodeFiles:
        """The nodes' files; only while this is open."""
        ...

    @property
    def token(self) -> RunToken:
        """The token by which nodes authenticate each other; ``ClusterLayout.token_file`` has it while this is open."""
        ...

    async def open(self, layout: ClusterLayout, *, on_end: Callable[[ProcessEnd], None]) -> None:
        """Determines addresses. ``on_end`` is called with every process that ended, expected or not.

        Raises:
            EmulatorError: a host or port is not available.
        """

    async def close(self) -> None:
        """Kills the remaining processes, and releases the addresses."""

    def address(self, node_id: NodeId) -> str:
        """Returns ``host:port`` of a node, for the harness and for other nodes, bypassing all proxies."""
        ...

    def kafka_address(self, link: Link[NodeId]) -> str:
        """Returns host and port of a broker's listener for a client of Apache Kafka, bypassing all proxies.

        If nodes are not configured by this host, it is the address in their own configuration.
        """
        ...

    def metrics_address(self, node_id: NodeId) -> str | None:
        """Returns where a node serves ``/metrics``; ``None`` if it does not."""
        ...

    async def start(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        """Starts ``python -m laststand.emulator.node`` with these arguments, and waits until it listens.

        Raises:
            StartError: the node does not listen in time.
        """
        ...

    async def disconnect(self, node_id: NodeId) -> bool:
        """Takes a running node off its network; returns whether that changed anything."""
        ...

    async def connect(self, node_id: NodeId) -> bool:
        """Puts a node back on its network, at its former address; returns whether that changed anything."""
        ...

    async def start_toxiproxy(self, program: Path) -> "Toxiproxy":
        """Starts a toxiproxy-server without proxies.

        Raises:
            ToxiproxyError: the server does not answer.
            MissingToolError: nodes use TLS, and the server's API accepts requests from everyone.
        """
        ...


def make_certificates(layout: ClusterLayout) -> None:
    """Makes certificates of nodes and clients, if nodes use TLS between each other.

    Raises:
        ConfigError: they cannot be made.
    """
    if layout.has_tls:
        # Imported where it is asked for: only those who make certificates need the library.
        from laststand.emulator.rpc.authority import certify

        certify(layout.tls_folder, layout.certificate_names)


class ProbeContexts(TypedDict):
    """TLS of probes: of nodes, and of their listeners for Kafka's clients; ``None`` without TLS."""

    context: ssl.SSLContext | None
    kafka_context: ssl.SSLContext | None


def probe_contexts(token: RunToken, layout: ClusterLayout) -> ProbeContexts:
    """Returns the TLS contexts with which the harness probes nodes."""
    context = token.dialling_context
    return ProbeContexts(context=context, kafka_context=context if layout.kafka_has_tls else None)


def remove_secrets(layout: ClusterLayout) -> None:
    """Removes secrets that are valid only while a cluster runs: its token and certificates."""
    layout.token_file.unlink(missing_ok=True)
    shutil.rmtree(layout.tls_folder, ignore_errors=True)


class LocalHost:
    """``NodeHost`` on this machine's loopback: nodes are children of this process.

    Args:
        supervisor: of the children.
    """

    listen_host = LOOPBACK
    harness_host = LOOPBACK
    configures_nodes = True

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._stack = ExitStack()
        self._layout: ClusterLayout
        self.files: NodeFiles
        self.token: RunToken
        self._ports: dict[NodeId, ReservedPort] = {}
        self._metrics_ports: dict[NodeId, ReservedPort] = {}
        self._kafka_ports: dict[Link[NodeId], ReservedPort] = {}

    @property
    def children(self) -> Mapping[str, NodeProcess]:
        """All children of the supervisor, including the client and the proxies."""
        return self._supervisor.children

    async def open(self, layout: ClusterLayout, *, on_end: Callable[[ProcessEnd], None]) -> None:
        """Reserves a port for each node, and hands over the token. The supervisor reports ends.

        Raises:
            ConfigError: a port of the layout is taken.
        """
        self._layout = layout
        self.files = LocalFiles(layout.directory)
        with ExitStack() as stack:

            def reserve(number: int | None) -> ReservedPort:
                return stack.enter_context(closing(ReservedPort(number)))

            stack.callback(remove_secrets, layout)
            make_certificates(layout)
            self.token = RunToken.read_or_draw(layout.token_file)
            for node_id in layout.node_ids:
                self._ports[node_id] = reserve(layout.ports.get(node_id))
                if layout.metrics:
                    self._metrics_ports[node_id] = reserve(layout.metrics_ports.get(node_id))
            for link in layout.kafka_links:
                # Proxies listen at the ports of the layout where there are any.
                self._kafka_ports[link] = reserve(layout.kafka_port(link) if layout.toxiproxy is None else None)
            self._stack = stack.pop_all()

    async def close(self) -> None:
        """Releases the ports, and removes the token; the supervisor ends the children."""
        self._stack.close()

    def address(self, node_id: NodeId) -> str:
        """Returns a node's port with its host."""
        return self._ports[node_id].address

    def metrics_address(self, node_id: NodeId) -> str | None:
        """Returns the port of a node's metrics with its host."""
        port = self._metrics_ports.get(node_id)
        return None if port is None else port.address

    def kafka_address(self, link: Link[NodeId]) -> str:
        """Returns the address of a broker's listener for a client of Apache Kafka."""
        return self._kafka_ports[link].address

    async def start(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        """Starts a child and waits for its ready line."""
        with self._ports_lent(node_id):
            return await self._supervisor.start(
                ProcessSpec(
                    name=str(node_id),
                    argv=module_command("laststand.emulator.node", *arguments),
                    imports=self._imports(node_id),
                    stderr_path=self._layout.node_log(node_id),
                    readiness=Readiness.REPORTED,
                    stop_timeout_s=self._stop_timeout_s(node_id),
                )
            )

    def _imports(self, node_id: NodeId) -> tuple[str, ...]:
        return tuple(
            name
            for each in self._layout.machine_of(node_id)
            for name in modules_of(
                self._layout.role_of(each),
                has_zookeeper=self._layout.is_zookeeper(self._layout.controller_id),
                has_metrics=self._layout.metrics,
                has_kafka=bool(self._layout.kafka_clients),
            )
        )

    def _stop_timeout_s(self, node_id: NodeId) -> float:
        """Returns how long a process may take to stop: if controllers stop with brokers, the last ones get no answers.

        A broker that cannot shut down in a controlled way gives up after a session timeout.
        """
        if len(self._layout.machine_of(node_id)) == 1:
            return STOP_TIMEOUT_S
        properties = node_properties(dict(self._layout.properties))
        return STOP_TIMEOUT_S + properties.broker_session_timeout_ms / 1000

    @contextmanager
    def _ports_lent(self, node_id: NodeId) -> Iterator[None]:
        """Lends a starting node its ports, which no other process can take while the node is down."""
        with ExitStack() as lent:
            for ports in (self._ports, self._metrics_ports):
                for each in self._layout.machine_of(node_id):
                    if each in ports:
                        lent.enter_context(ports[each].lent())
            for link, port in self._kafka_ports.items():
                if link.target == node_id:
                    lent.enter_context(port.lent())
            yield

    async def disconnect(self, node_id: NodeId) -> bool:
        """Changes nothing: no node leaves the loopback network."""
        return False

    async def connect(self, node_id: NodeId) -> bool:
        """Changes nothing."""
        return False

    async def start_toxiproxy(self, program: Path) -> "Toxiproxy":
        """Starts a child."""
        # Imported where there are proxies: its HTTP client takes as long to import as gRPC.
        from laststand.emulator.cluster.toxiproxy import Toxiproxy

        if self._layout.has_tls:
            check_asks_for_token(program)
        return await Toxiproxy.start(
            supervisor=self._supervisor,
            program=program,
            log_path=self._layout.directory / "toxiproxy.log",
            token_file=self._layout.token_file,
            **probe_contexts(self.token, self._layout),
        )
