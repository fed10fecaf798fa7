"""``NodeHost`` on a Docker engine: a container for each incarnation of a node, one for the proxies, one network."""

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

import docker
from docker.models.containers import Container

from emulator.cluster.child import MALLOC, ProcessEnd
from emulator.cluster.containers import labels
from emulator.cluster.containers.compose import METRICS_PORT, NODE_PORT, TOXIPROXY_PORT
from emulator.cluster.containers.container_process import ContainerProcess
from emulator.cluster.containers.engine import connect, in_thread
from emulator.cluster.containers.images import Images
from emulator.cluster.containers.listening import await_listener
from emulator.cluster.containers.mounts import give, let_through, node_user, run_mount
from emulator.cluster.containers.network import ClusterNetwork, own_container
from emulator.cluster.layout import ClusterLayout
from emulator.cluster.node_host import NodeProcess
from emulator.cluster.toxiproxy import PROCESS_NAME, Toxiproxy
from emulator.core.types import NodeId


class ContainerHost:
    """Containers of one run.

    Args:
        images: of nodes and proxies.
    """

    listen_host = "0.0.0.0"

    def __init__(self, images: Images) -> None:
        self._images = images
        self._children: dict[str, ContainerProcess] = {}
        self._user = node_user()
        self._client: docker.DockerClient
        self._layout: ClusterLayout
        self._network: ClusterNetwork
        self._lock: labels.HarnessLock
        self._labels: dict[str, str] = {}
        self._tell_end: Callable[[ProcessEnd], None]

    @property
    def children(self) -> Mapping[str, NodeProcess]:
        """The nodes that run."""
        return self._children

    async def open(self, layout: ClusterLayout, *, on_end: Callable[[ProcessEnd], None]) -> None:
        """Makes the network.

        Raises:
            EngineError: the engine refused.
        """
        self._layout = layout
        self._tell_end = on_end
        self._client = await asyncio.to_thread(connect)
        self._name = f"laststand-{layout.run}-{secrets.token_hex(3)}"
        self._lock = labels.HarnessLock(layout.directory)
        self._labels = {
            labels.RUN: layout.run,
            labels.LOCK: str(self._lock.path),
            labels.PROCESS: labels.process_name(os.getpid()) or "",
        }
        self._mount = run_mount(layout.directory, own_container(self._client))
        members = (PROCESS_NAME, *map(str, layout.node_ids))
        self._network = await in_thread(
            "network",
            lambda: ClusterNetwork(self._client, name=self._name, labels=self._labels, members=members),
        )
        let_through(layout.directory)
        give(layout.directory / "events", self._user)

    async def close(self) -> None:
        """Removes every container and the network."""
        for process in tuple(self._children.values()):
            await process.kill()
        await in_thread("removal", self._remove)
        self._lock.release()
        self._client.close()

    def _remove(self) -> None:
        for container in self._client.containers.list(all=True, filters={"label": f"{labels.RUN}={self._layout.run}"}):
            if container.labels.get(labels.LOCK) == str(self._lock.path):
                container.remove(force=True)
        self._network.remove()

    def address(self, node_id: NodeId) -> str:
        """Returns a container's address on the network."""
        return f"{self._network.addresses[str(node_id)]}:{NODE_PORT}"

    def metrics_address(self, node_id: NodeId) -> str | None:
        """Likewise, of a node's metrics."""
        return f"{self._network.addresses[str(node_id)]}:{METRICS_PORT}" if self._layout.metrics else None

    async def start(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        """Makes a container and starts it.

        Raises:
            EngineError: the engine refused.
            StartError: the node ended, or does not listen.
        """
        name = str(node_id)
        directory = self._layout.node_directory(node_id)
        await asyncio.to_thread(give, directory, self._user)
        process = await self._run(
            name,
            self._images.node,
            ["python", "-m", "emulator.node", *arguments],
            log_path=self._layout.node_log(node_id),
        )
        await await_listener(process, self.address(node_id))
        return process

    async def disconnect(self, node_id: NodeId) -> bool:
        """Disconnects a container from the network.

        Raises:
            EngineError: the engine refused.
        """
        process = self._children.get(str(node_id))
        if process is None:
            return False
        return await in_thread("disconnect", lambda: self._network.disconnect(process.container))

    async def connect(self, node_id: NodeId) -> bool:
        """Connects it again.

        Raises:
            EngineError: the engine refused.
        """
        process = self._children.get(str(node_id))
        if process is None:
            return False
        return await in_thread("connect", lambda: self._network.connect(process.container, str(node_id)))

    async def start_toxiproxy(self, program: Path) -> Toxiproxy:
        """Starts the container of the proxies.

        Raises:
            EngineError: the engine refused.
            ToxiproxyError: the server does not answer.
        """
        command = ["-host", self.listen_host, "-port", str(TOXIPROXY_PORT)]
        process = await self._run(
            PROCESS_NAME,
            self._images.toxiproxy,
            command,
            entrypoint=[str(program)],
            log_path=self._layout.directory / "toxiproxy.log",
        )
        address = f"{self._network.addresses[PROCESS_NAME]}:{TOXIPROXY_PORT}"
        server = Toxiproxy(server=process, address=address, listen_host=self.listen_host)
        await server.await_answer()
        return server

    async def _run(
        self, name: str, image: str, command: list[str], *, log_path: Path, entrypoint: list[str] | None = None
    ) -> ContainerProcess:
        def start() -> Container:
            container = self._client.containers.create(
                image,
                command,
                name=f"{self._name}-{name}-{secrets.token_hex(2)}",
                entrypoint=entrypoint,
                labels={**self._labels, labels.NODE: name},
                network=self._name,
                networking_config=self._network.endpoint(name),
                mounts=[self._mount],
                user=":".join(map(str, self._user)),
                environment=dict(MALLOC),
                init=True,
                read_only=True,
                tmpfs={"/tmp": ""},
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                healthcheck={"test": ["NONE"]},
            )
            container.start()
            container.reload()
            return container

        container = await in_thread(f"container of {name}", start)
        process = ContainerProcess(name, container, log_path=log_path, on_end=self._ended)
        self._children[name] = process
        return process

    def _ended(self, end: ProcessEnd) -> None:
        del self._children[end.name]
        self._tell_end(end)
