"""A cluster of real processes: one controller, N brokers, and where needed a proxy for each pair of them.

It keeps each node's address, folders and incarnations, and starts, stops, kills and pauses nodes. Recording and
interpretation are up to the caller. Layout below the run's directory::

    events/<node>-<incarnation>.jsonl     written by the nodes; of brokers .packed
    nodes/<node>/config-<incarnation>.json
    nodes/<node>/data/                    log directory; the controller's metadata log
    nodes/<node>/ledger/                  what was synced, for power loss
    nodes/<node>/node.log                 standard error, over all incarnations
"""

import asyncio
import base64
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from emulator.cluster.child import EndCause, ProcessEnd, ProcessSpec, Readiness
from emulator.cluster.ports import LOOPBACK, ReservedPort
from emulator.cluster.supervisor import Supervisor
from emulator.core.node_clock import NORMAL_RATE_PPM
from emulator.core.packed.layout import SUFFIX
from emulator.core.switches import Switches
from emulator.core.types import BrokerId, NodeId, NodeRole
from emulator.node.config import NodeConfig, encode_config
from emulator.plan.channels import Link
from emulator.plan.nodes import CLIENT, CONTROLLER
from emulator.rpc.interception import InterceptionOrder
from emulator.storage.line_file import line_files

if TYPE_CHECKING:
    from emulator.cluster.toxiproxy import Toxiproxy

CLIENT_NAME: Final = "client"
"""Name of the client process among the supervisor's children."""

_SOURCES: Final = Path(__file__).parents[2]


class ClusterLayout(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster is made of.

    Attributes:
        run: the run's id.
        directory: the run's directory, absolute.
        controller_id: the one controller.
        broker_ids: all brokers.
        switches: the rules that every node follows.
        properties: of every node, by Kafka's names.
        toxiproxy: the program, or ``None`` where no link will be broken.
        metrics: whether every node serves ``/metrics``; costs a tenth of a second of each start.
        cluster_id: a UUID in Kafka's text form; drawn if not given. Nodes refuse data of another cluster.
        ports: where nodes listen; those without an entry get a port that is free.
        metrics_ports: the same for ``/metrics``.
    """

    run: str
    directory: Path
    controller_id: NodeId
    broker_ids: tuple[BrokerId, ...]
    switches: Switches
    properties: tuple[tuple[str, str], ...]
    toxiproxy: Path | None
    metrics: bool = False
    cluster_id: str | None = None
    ports: Mapping[int, int] = MappingProxyType({})
    metrics_ports: Mapping[int, int] = MappingProxyType({})

    @property
    def node_ids(self) -> tuple[NodeId, ...]:
        """All nodes, the controller first."""
        return (self.controller_id, *self.broker_ids)

    def node_directory(self, node_id: NodeId) -> Path:
        """Where a node keeps everything but its events."""
        return self.directory / "nodes" / str(node_id)

    def data_directory(self, node_id: NodeId) -> Path:
        """A node's log directory."""
        return self.node_directory(node_id) / "data"

    def ledger_directory(self, node_id: NodeId) -> Path:
        """A node's sync ledger."""
        return self.node_directory(node_id) / "ledger"

    def event_file(self, node_id: NodeId, incarnation: int) -> Path:
        """One incarnation's events."""
        return self.directory / "events" / event_file_name(node_id, incarnation)

    def last_incarnation(self, node_id: NodeId) -> int | None:
        """Returns the number of the last process that a node had in this directory; ``None`` if it had none."""
        found = line_files(self.directory / "events", f"{node_id}-*")
        return max((int(path.stem.rpartition("-")[2]) for path in found), default=None)


def event_file_name(node_id: NodeId, incarnation: int) -> str:
    """Returns the name of a process's event file: brokers pack theirs, controllers have no frequent events."""
    return f"{node_id}-{incarnation}{SUFFIX if node_id < CONTROLLER else '.jsonl'}"


class ProcessCluster:
    """The processes of one run. Use it as an asynchronous context manager: leaving it kills what still runs.

    Attributes:
        cluster_id: that of the layout, or the one that was drawn.
        interceptions: faults of single messages that a node has from its next start on.
        clock_rates: of nodes whose clocks run wrong, in parts per million, likewise.
    """

    def __init__(
        self,
        layout: ClusterLayout,
        *,
        on_start: Callable[[NodeId, int], None],
        on_unexpected_end: Callable[[str, ProcessEnd], None],
    ) -> None:
        """Nothing runs yet.

        Args:
            layout: what the cluster is made of.
            on_start: called with node and incarnation just before each process starts.
            on_unexpected_end: called at once with the name of every process that ended unexpectedly, or failed to stop.
        """
        self.layout = layout
        self.supervisor = Supervisor(on_end=self._ended)
        self.toxiproxy: Toxiproxy | None = None
        self.interceptions: dict[NodeId, tuple[InterceptionOrder, ...]] = {}
        self.clock_rates: dict[NodeId, int] = {}
        self._doomed: set[str] = set()
        self._on_start = on_start
        self._on_unexpected_end = on_unexpected_end
        self._ports: dict[NodeId, ReservedPort] = {}
        self._metrics_ports: dict[NodeId, ReservedPort] = {}
        self._incarnations: dict[NodeId, int] = {}
        self.cluster_id = layout.cluster_id or base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")

    async def __aenter__(self) -> Self:
        """Reserves the nodes' ports, so that addresses are known from now on, and returns this cluster.

        In a directory in which the nodes ran before, their incarnations go on from there.

        Raises:
            ConfigError: a port of the layout is taken.
        """
        await self.supervisor.__aenter__()
        layout = self.layout
        for node_id in layout.node_ids:
            last = layout.last_incarnation(node_id)
            if last is not None:
                self._incarnations[node_id] = last
            self._ports[node_id] = ReservedPort(layout.ports.get(node_id))
            if layout.metrics:
                self._metrics_ports[node_id] = ReservedPort(layout.metrics_ports.get(node_id))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kills what still runs."""
        if self.toxiproxy is not None:
            await self.toxiproxy.stop()
        await self.supervisor.__aexit__(kind, error, trace)
        for port in (*self._ports.values(), *self._metrics_ports.values()):
            port.close()

    # --- Addresses ------------------------------------------------------------------------------------------------

    def ports(self) -> dict[int, int]:
        """Returns the port of every node."""
        return {int(node): port.number for node, port in self._ports.items()}

    def metrics_ports(self) -> dict[int, int]:
        """Returns the port of every node's metrics; nothing where the layout has none."""
        return {int(node): port.number for node, port in self._metrics_ports.items()}

    def direct_addresses(self) -> dict[int, str]:
        """Returns where every node listens, past the proxies."""
        return {int(node): port.address for node, port in self._ports.items()}

    def metrics_addresses(self) -> dict[int, str]:
        """Returns where every node serves ``/metrics``; nothing where the layout has none."""
        return {int(node): port.address for node, port in self._metrics_ports.items()}

    def addresses_for(self, source: NodeId) -> dict[int, str]:
        """Returns where a node, or ``CLIENT``, reaches every node: the node's own port or that of the proxy."""
        if self.toxiproxy is None:
            return self.direct_addresses()
        return {
            link.target: f"{LOOPBACK}:{self.toxiproxy.port(link)}"
            for link in self.toxiproxy.links
            if link.source == source
        }

    # --- Processes ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts every process of the cluster at once; before them the proxies, unless they run already.

        Raises:
            StartError: a node did not become ready.
            ToxiproxyError: the proxies could not be made.
        """
        if self.layout.toxiproxy is not None and self.toxiproxy is None:
            await self.start_proxies(self.layout.toxiproxy)
        async with asyncio.TaskGroup() as tasks:
            for node_id in self.layout.node_ids:
                tasks.create_task(self.start_node(node_id))

    async def start_proxies(self, program: Path) -> None:
        """Starts a proxy for every link, all of them open; addresses lead through them from now on.

        Args:
            program: of toxiproxy-server.

        Raises:
            ToxiproxyError: the proxies could not be made.
        """
        # Imported where there are proxies: its HTTP client takes as long to import as gRPC.
        from emulator.cluster.toxiproxy import Toxiproxy

        self.toxiproxy = await Toxiproxy.start(
            supervisor=self.supervisor, program=program, log_path=self.layout.directory / "toxiproxy.log"
        )
        # Nobody dials the client. The controller dials brokers when it recovers a partition.
        await self.toxiproxy.create(
            {
                Link(source, node): port.address
                for source in (CLIENT, *self.layout.node_ids)
                for node, port in self._ports.items()
                if source != node
            }
        )

    async def start_node(self, node_id: NodeId) -> int:
        """Starts the next incarnation of a node that is down, waits until it listens, and returns its number.

        Raises:
            StartError: it did not become ready.
            InvariantError: it runs.
        """
        incarnation = self._incarnations.get(node_id, -1) + 1
        role = NodeRole.CONTROLLER if node_id == self.layout.controller_id else NodeRole.BROKER
        directory = self.layout.node_directory(node_id)
        directory.mkdir(parents=True, exist_ok=True)
        self.layout.event_file(node_id, incarnation).parent.mkdir(exist_ok=True)
        config_path = directory / f"config-{incarnation}.json"
        config_path.write_bytes(encode_config(self._config(node_id, incarnation)))
        self._incarnations[node_id] = incarnation
        self._on_start(node_id, incarnation)
        await self.supervisor.start(
            ProcessSpec(
                name=str(node_id),
                argv=(sys.executable, "-m", "emulator.node", role.value, "--config", str(config_path)),
                environment=source_environment(),
                stderr_path=directory / "node.log",
                readiness=Readiness.REPORTED,
            )
        )
        return incarnation

    def incarnation(self, node_id: NodeId) -> int:
        """Returns the number of a node's last process.

        Raises:
            KeyError: the node was never started.
        """
        return self._incarnations[node_id]

    def is_running(self, node_id: NodeId) -> bool:
        """Whether a node's process exists, paused or not."""
        return str(node_id) in self.supervisor.children

    def is_paused(self, node_id: NodeId) -> bool:
        """Whether a node's process stands still."""
        return self.is_running(node_id) and self.supervisor.children[str(node_id)].is_paused

    async def stop_node(self, node_id: NodeId) -> ProcessEnd | None:
        """Ends a node in order; ``None`` if it was down."""
        child = self.supervisor.children.get(str(node_id))
        return None if child is None else await child.stop()

    async def kill_node(self, node_id: NodeId) -> ProcessEnd | None:
        """Kills a node; ``None`` if it was down."""
        child = self.supervisor.children.get(str(node_id))
        return None if child is None else await child.kill()

    async def await_failure(self, node_id: NodeId, *, timeout_s: float) -> ProcessEnd | None:
        """Returns how a node ended by itself, as was to be expected; ``None`` if it still runs by then, or was down."""
        child = self.supervisor.children.get(str(node_id))
        if child is None:
            return None
        self._doomed.add(child.spec.name)
        try:
            async with asyncio.timeout(timeout_s):
                return await child.wait()
        except TimeoutError:
            return None
        finally:
            self._doomed.discard(child.spec.name)

    async def pause_node(self, node_id: NodeId) -> bool:
        """Stops a node's process from running; returns whether that changed anything."""
        child = self.supervisor.children.get(str(node_id))
        return child is not None and await child.pause()

    async def resume_node(self, node_id: NodeId) -> bool:
        """Resumes a paused node; returns whether that changed anything."""
        child = self.supervisor.children.get(str(node_id))
        return child is not None and await child.resume()

    def notify_node(self, node_id: NodeId) -> None:
        """Signals a running node to read the faults of its disk."""
        child = self.supervisor.children.get(str(node_id))
        if child is not None:
            child.notify()

    def _config(self, node_id: NodeId, incarnation: int) -> NodeConfig:
        layout = self.layout
        addresses = self.addresses_for(node_id)
        return NodeConfig(
            run=layout.run,
            node_id=node_id,
            incarnation=incarnation,
            cluster_id=self.cluster_id,
            controller_id=layout.controller_id,
            data_dirs=(str(layout.data_directory(node_id)),),
            ledger_dir=str(layout.ledger_directory(node_id)),
            event_file=str(layout.event_file(node_id, incarnation)),
            switches=layout.switches,
            properties=dict(layout.properties),
            port=self._ports[node_id].number,
            metrics_port=self._metrics_ports[node_id].number if self.layout.metrics else None,
            addresses={NodeId(node): address for node, address in addresses.items()},
            clock_rate_ppm=self.clock_rates.get(node_id, NORMAL_RATE_PPM),
            interceptions=self.interceptions.get(node_id, ()),
        )

    def _ended(self, end: ProcessEnd) -> None:
        if end.cause in (EndCause.UNEXPECTED, EndCause.STOP_TIMED_OUT) and end.name not in self._doomed:
            self._on_unexpected_end(end.name, end)


def source_environment() -> dict[str, str]:
    """Returns what a child needs to import this very program, wherever the harness was started."""
    known = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": str(_SOURCES) if not known else f"{_SOURCES}{os.pathsep}{known}"}
