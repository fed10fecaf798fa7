"""``NodeHost`` of a compose project: containers that somebody else made. They are started again, and never removed.

Nodes draw their incarnation themselves (``emulator.node.environment``), so what a node is told from outside at its
start is what its container was made with.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docker.models.containers import Container

from emulator.cluster.child import ProcessEnd
from emulator.cluster.containers.compose import METRICS_PORT, NODE_PORT, TOXIPROXY_PORT, service_name
from emulator.cluster.containers.container_process import Afterwards, ContainerProcess
from emulator.cluster.containers.engine import connect, in_thread
from emulator.cluster.containers.labels import HarnessLock
from emulator.cluster.containers.listening import await_listener
from emulator.cluster.containers.project import Project
from emulator.cluster.layout import ClusterLayout
from emulator.cluster.node_host import NodeProcess
from emulator.cluster.toxiproxy import PROCESS_NAME, Toxiproxy
from emulator.core.errors import ConfigError
from emulator.core.types import NodeId

_RUNNING: Final = ("running", "paused")


class AttachedHost:
    """The containers of a project.

    Args:
        project: its name.
    """

    listen_host = ""  # each node was told its own

    def __init__(self, project: str) -> None:
        self._name = project
        self._children: dict[str, ContainerProcess] = {}
        self._layout: ClusterLayout
        self._project: Project
        self._lock: HarnessLock
        self._tell_end: Callable[[ProcessEnd], None]

    @property
    def children(self) -> Mapping[str, NodeProcess]:
        """The nodes that run."""
        return self._children

    async def open(self, layout: ClusterLayout, *, on_end: Callable[[ProcessEnd], None]) -> None:
        """Finds the containers, and watches those that run.

        Raises:
            ConfigError: there is no such project.
            EngineError: the engine refused.
        """
        self._layout = layout
        self._tell_end = on_end
        try:
            self._lock = HarnessLock(layout.directory / "events")
        except BlockingIOError:
            raise ConfigError(
                key="--compose-project",
                value=self._name,
                expected="a project to which nobody is attached; its service `client` is, unless it was stopped",
            ) from None
        client = await asyncio.to_thread(connect)
        self._project = await asyncio.to_thread(Project, client, self._name)
        for name, container in self._project.members.items():
            if container.status in _RUNNING and name.isdigit():
                self._watch(name, container)

    async def close(self) -> None:
        """Leaves every container as it is."""
        self._children.clear()
        self._lock.release()

    def address(self, node_id: NodeId) -> str:
        """Returns a node's service on the project's network, or its published port on this machine."""
        return self._reach(str(node_id), service_name(node_id), NODE_PORT)

    def metrics_address(self, node_id: NodeId) -> str | None:
        """Returns where a node serves metrics; on this machine, at its container's address."""
        return f"{self._network_address(str(node_id))}:{METRICS_PORT}"

    async def start(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        """Starts a container again; a node reads its own environment, so that ``arguments`` are not needed.

        Raises:
            EngineError: the engine refused.
            StartError: the node ended, or does not listen.
        """
        name = str(node_id)
        container = self._project.members[name]
        await in_thread(f"start of {name}", container.start)
        await in_thread(f"look at {name}", container.reload)
        process = self._watch(name, container)
        await await_listener(process, self.address(node_id))
        return process

    async def disconnect(self, node_id: NodeId) -> bool:
        """Takes a container that runs off the project's network.

        Raises:
            EngineError: the engine refused.
        """
        name = str(node_id)
        return name in self._children and await in_thread("disconnect", lambda: self._project.disconnect(name))

    async def connect(self, node_id: NodeId) -> bool:
        """Puts it back.

        Raises:
            EngineError: the engine refused.
        """
        name = str(node_id)
        return name in self._children and await in_thread("connect", lambda: self._project.connect(name))

    async def start_toxiproxy(self, program: Path) -> Toxiproxy:
        """Finds the server that runs, with its proxies.

        Raises:
            ToxiproxyError: it does not answer.
        """
        container = self._project.members[PROCESS_NAME]
        process = self._process(PROCESS_NAME, container, on_end=self._tell_end)
        address = f"{self._network_address(PROCESS_NAME)}:{TOXIPROXY_PORT}"
        server = Toxiproxy(server=process, address=address)
        await server.await_answer()
        await server.adopt()
        return server

    def _watch(self, name: str, container: Container) -> ContainerProcess:
        process = self._process(name, container, on_end=self._ended)
        process.is_paused = container.status == "paused"
        self._children[name] = process
        return process

    def _process(self, name: str, container: Container, *, on_end: Callable[[ProcessEnd], None]) -> ContainerProcess:
        is_node = name != PROCESS_NAME
        log_path = self._layout.node_log(NodeId(int(name))) if is_node else self._layout.directory / "toxiproxy.log"
        return ContainerProcess(name, container, log_path=log_path, afterwards=Afterwards.KEPT, on_end=on_end)

    def _ended(self, end: ProcessEnd) -> None:
        self._children.pop(end.name, None)
        self._tell_end(end)

    def _reach(self, member: str, service: str, port: int) -> str:
        if self._project.own is not None:
            return f"{service}:{port}"
        published = self._project.members[member].attrs["HostConfig"]["PortBindings"].get(f"{port}/tcp")
        return f"127.0.0.1:{published[0]['HostPort']}"

    def _network_address(self, member: str) -> str:
        networks = self._project.members[member].attrs["NetworkSettings"]["Networks"]
        return str(next(iter(networks.values()))["IPAddress"])
