"""A cluster with ZooKeeper: its server in the place of the controller, and brokers that each host a controller.

The server is a JVM that is started, killed and paused as any other node. It keeps its tree and its transaction log in
the run's directory.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emulator.cluster.child import ProcessEnd, ProcessSpec, StartError
from emulator.cluster.layout import ClusterLayout
from emulator.cluster.node_host import LocalHost, NodeProcess
from emulator.cluster.process_cluster import ProcessCluster, source_environment
from emulator.cluster.supervisor import Supervisor
from emulator.cluster.zookeeper_probe import ZooKeeperProbeConnection, await_zookeeper
from emulator.cluster.zookeeper_program import ZooKeeperProgram, server_settings
from emulator.core.properties import node_properties
from emulator.core.types import NodeId

if TYPE_CHECKING:
    from emulator.cluster.toxiproxy import Toxiproxy

SERVES_WITHIN_S: Final = 30.0
"""A server that is slower does not come up."""


class ZooKeeperHost(LocalHost):
    """``LocalHost`` on which one node is a ZooKeeper server."""

    def __init__(self, supervisor: Supervisor, *, program: str, zookeeper: ZooKeeperProgram) -> None:
        super().__init__(supervisor, program=program, environment=source_environment())
        self._zookeeper = zookeeper

    async def start(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        """Starts a child and waits until it serves.

        Raises:
            StartError: it does not.
        """
        if node_id != self._layout.controller_id:
            return await super().start(node_id, arguments)
        process = await self._supervisor.start(
            ProcessSpec(
                name=str(node_id),
                argv=self._zookeeper.command(Path(*arguments)),
                stderr_path=self._layout.node_log(node_id),
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

    def metrics_address(self, node_id: NodeId) -> str | None:
        """Returns the port of a broker's metrics; the server serves none."""
        return None if node_id == self._layout.controller_id else super().metrics_address(node_id)

    async def start_toxiproxy(self, program: Path) -> "Toxiproxy":
        """Starts a child that knows how to ask the server for a sign of life."""
        from emulator.cluster.toxiproxy import Toxiproxy

        return await Toxiproxy.start(
            supervisor=self._supervisor,
            program=program,
            log_path=self._layout.directory / "toxiproxy.log",
            probes={self._layout.controller_id: ZooKeeperProbeConnection},
        )


class ZooKeeperCluster(ProcessCluster):
    """The processes of one run.

    Args:
        layout: what the cluster is made of; its controller is the server.
        zookeeper: what starts the server.
        program: that runs ``-m emulator.node``.
        on_start: as for ``ProcessCluster``.
        on_server_end: called with the incarnation and the end of each process of the server, before
            ``on_unexpected_end``.
        on_unexpected_end: as for ``ProcessCluster``.
        before_brokers: awaited at the start of the cluster, once the server serves and before a broker runs; if not
            given, all are started at once.
    """

    def __init__(
        self,
        layout: ClusterLayout,
        *,
        zookeeper: ZooKeeperProgram,
        program: str,
        on_start: Callable[[NodeId, int], None],
        on_server_end: Callable[[int, ProcessEnd], None],
        on_unexpected_end: Callable[[str, ProcessEnd], None],
        before_brokers: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(layout, on_start=on_start, on_unexpected_end=on_unexpected_end)
        self._before_brokers = before_brokers
        self._host = ZooKeeperHost(self.supervisor, program=program, zookeeper=zookeeper)
        self._on_server_end = on_server_end

    async def start(self) -> None:
        """Starts every process; see ``ProcessCluster``."""
        if self._before_brokers is not None:
            if self.layout.toxiproxy is not None:
                await self.start_proxies(self.layout.toxiproxy)
            await self.start_node(self.layout.controller_id)
            await self._before_brokers()
        await super().start()

    def _note_running(self, node_id: NodeId) -> None:
        """The server that runs already was started by this cluster, and is on record."""
        if node_id != self.layout.controller_id:
            super()._note_running(node_id)

    def addresses_for(self, source: NodeId) -> dict[int, str]:
        """Returns where a node, or ``CLIENT``, reaches every node; a controller tells its own broker, too."""
        addresses = super().addresses_for(source)
        return {**addresses, source: self._host.address(source)} if source in self.layout.node_ids else addresses

    def _configure(self, node_id: NodeId, incarnation: int) -> tuple[str, ...]:
        if node_id != self.layout.controller_id:
            return super()._configure(node_id, incarnation)
        data = self.layout.data_directory(node_id)
        data.mkdir(parents=True, exist_ok=True)
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
