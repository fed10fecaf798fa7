"""A cluster with ZooKeeper: its server instead of the controller, and brokers that each host a controller.

The server is a JVM that is started, killed and paused as any other node. It keeps its tree and its transaction log in
the run's directory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from laststand.emulator.cluster.child import ProcessEnd, ProcessSpec, StartError
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.cluster.node_host import LocalHost, NodeHost, NodeProcess
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.cluster.sync_shim import sync_shim_environment
from laststand.emulator.cluster.zookeeper_probe import await_zookeeper, server_probes
from laststand.emulator.cluster.zookeeper_program import ZooKeeperProgram, records_syncs, server_settings
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import NodeId
from laststand.emulator.node.config import read_config
from laststand.emulator.plan.channels import Link
from laststand.emulator.storage.power_loss import count_as_durable
from laststand.emulator.storage.sync_ledger import has_ledger
from laststand.emulator.zookeeper.transaction_log import LOG_FOLDER

if TYPE_CHECKING:
    from laststand.emulator.cluster.toxiproxy import Toxiproxy

SERVES_WITHIN_S: Final = 30.0
"""A server that is slower does not come up."""


class ZooKeeperHost(LocalHost):
    """``LocalHost`` on which one node is a ZooKeeper server."""

    def __init__(self, supervisor: Supervisor, *, zookeeper: ZooKeeperProgram) -> None:
        super().__init__(supervisor)
        self._zookeeper = zookeeper

    async def start(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        """Starts a child and waits until it serves.

        Raises:
            StartError: the child does not serve in time.
        """
        if node_id != self._layout.controller_id:
            return await super().start(node_id, arguments)
        with self._ports_lent(node_id):
            return await self._start_server(node_id, arguments)

    async def _start_server(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        process = await self._supervisor.start(
            ProcessSpec(
                name=str(node_id),
                argv=self._zookeeper.command(Path(*arguments)),
                stderr_path=self._layout.node_log(node_id),
                environment=self._sync_environment(),
                exits_with_signal_number=True,
            )
        )
        serving = asyncio.ensure_future(await_zookeeper(self.address(node_id), timeout_s=SERVES_WITHIN_S))
        ended = asyncio.ensure_future(process.wait())
        try:
            await asyncio.wait((serving, ended), return_when=asyncio.FIRST_COMPLETED)
            if ended.done() or not serving.result():
                raise StartError(name="zookeeper", reason="does not serve", end=await process.kill())
        finally:
            serving.cancel()
            ended.cancel()
        return process

    def _sync_environment(self) -> dict[str, str]:
        shim, layout = self._zookeeper.sync_shim, self._layout
        if shim is None:
            return {}
        server = layout.controller_id
        data, ledger = layout.data_directory(server), layout.ledger_directory(server)
        if not has_ledger(str(ledger)):
            count_as_durable(str(data), ledger_folder=str(ledger))
        return sync_shim_environment(shim, data=data, ledger=ledger)

    def metrics_address(self, node_id: NodeId) -> str | None:
        """Returns the metrics port of a broker; the server has none."""
        return None if node_id == self._layout.controller_id else super().metrics_address(node_id)

    async def start_toxiproxy(self, program: Path) -> "Toxiproxy":
        """Starts a child that knows how to ask the server for a sign of life."""
        from laststand.emulator.cluster.toxiproxy import Toxiproxy

        return await Toxiproxy.start(
            supervisor=self._supervisor,
            program=program,
            log_path=self._layout.directory / "toxiproxy.log",
            token_file=self._layout.token_file,
            probes=server_probes(self._layout),
        )


class ZooKeeperCluster(ProcessCluster):
    """The processes of one run.

    Args:
        layout: the nodes of the cluster and the places of its files; its controller is the ZooKeeper server.
        zookeeper: the program of the server; ``None`` if the host starts it.
        messages: the links to the server on which faults of single messages are possible.
        on_start: as in ``ProcessCluster``.
        on_server_end: called with the incarnation and the end of each process of the server, before
            ``on_unexpected_end``.
        on_unexpected_end: as in ``ProcessCluster``.
        before_brokers: awaited at the start of the cluster, once the server serves and before a broker runs; if not
            given, all are started at once.
        host: where the nodes run; by default, on this machine's loopback.
    """

    def __init__(
        self,
        layout: ClusterLayout,
        *,
        zookeeper: ZooKeeperProgram | None,
        messages: LinkMessages,
        on_start: Callable[[NodeId, int, Switches | None], None],
        on_server_end: Callable[[int, ProcessEnd], None],
        on_unexpected_end: Callable[[str, ProcessEnd], None],
        before_brokers: Callable[[], Awaitable[None]] | None = None,
        host: NodeHost | None = None,
    ) -> None:
        super().__init__(layout, on_start=on_start, on_unexpected_end=on_unexpected_end, host=host)
        self._before_brokers = before_brokers
        if zookeeper is not None:
            self._host = ZooKeeperHost(self.supervisor, zookeeper=zookeeper)
        self._is_under_shim = records_syncs(zookeeper)
        self._messages = messages
        self._on_server_end = on_server_end
        self._unproxied: Mapping[Link[NodeId], str] = {}

    async def __aenter__(self) -> Self:
        """As in ``ProcessCluster``; a broker continues with the protocol version of its last process."""
        await super().__aenter__()
        for broker_id in self.layout.broker_ids if self.configures_nodes else ():
            last = self.layout.last_incarnation(broker_id)
            zookeeper = None if last is None else read_config(str(self._config_path(broker_id, last))).zookeeper
            if zookeeper is not None and zookeeper.started_with is not None:
                self.protocols[broker_id] = zookeeper.started_with
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kills what still runs, and closes the proxies that know messages."""
        await super().__aexit__(kind, error, trace)
        await self._messages.close()

    async def start(self) -> None:
        """Starts every process; see ``ProcessCluster``."""
        if self.layout.toxiproxy is None:
            self._unproxied = await self._detours()
        if self._before_brokers is not None:
            if self.layout.toxiproxy is not None:
                await self.start_proxies(self.layout.toxiproxy)
            await self.start_node(self.layout.controller_id)
            await self._before_brokers()
        await super().start()

    async def start_node(self, node_id: NodeId) -> int:
        """Starts a node; faults of messages to the server continue, except those of a counted number of messages."""
        if node_id == self.layout.controller_id:
            self._messages.starting(node_id, self.interceptions.get(node_id, ()))
        return await super().start_node(node_id)

    async def _detours(self) -> Mapping[Link[NodeId], str]:
        return await self._messages.open(self._host.address, host=self._host.harness_host)

    def _note_running(self, node_id: NodeId) -> None:
        """Records that a node runs that another process started; a server is recorded once, and writes no events."""
        if node_id == self.layout.controller_id:
            if node_id in self._incarnations:
                return
            self._incarnations[node_id] = 0
            self._messages.starting(node_id, ())
        super()._note_running(node_id)

    def has_sync_ledger(self, node_id: NodeId) -> bool:
        """Returns whether a node keeps a sync ledger itself, or runs under the shim."""
        return self._is_under_shim or node_id != self.layout.controller_id

    def addresses_for(self, source: NodeId) -> dict[int, str]:
        """Returns the addresses of all nodes for a node, or ``CLIENT``; a controller also reaches its own broker."""
        addresses = super().addresses_for(source)
        addresses |= {link.target: address for link, address in self._unproxied.items() if link.source == source}
        return {**addresses, source: self._host.address(source)} if source in self.layout.node_ids else addresses

    def _configure(self, node_id: NodeId, incarnation: int) -> tuple[str, ...]:
        if node_id != self.layout.controller_id:
            return super()._configure(node_id, incarnation)
        data = self.layout.data_directory(node_id)
        (data / LOG_FOLDER).mkdir(parents=True, exist_ok=True)  # durable from the start: the server syncs no folder
        path = self.layout.node_directory(node_id) / "zoo.cfg"
        properties = node_properties(dict(self.layout.properties))
        settings = server_settings(
            data=data,
            host=self._host.listen_host,
            port=self.ports()[node_id],
            session_timeout_ms=properties.broker_session_timeout_ms,
        )
        path.write_text(settings, encoding="utf-8")
        return (str(path),)

    def _ended(self, end: ProcessEnd) -> None:
        server = self.layout.controller_id
        if end.name == str(server):
            self._on_server_end(self.incarnation(server), end)
        super()._ended(end)
