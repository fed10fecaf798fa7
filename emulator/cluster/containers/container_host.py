"""``NodeHost`` on a Docker engine: a container for each incarnation of a node, one for the proxies, one network."""

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TypeVar

import docker
from docker.models.containers import Container

from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.containers import labels, zookeeper_server
from laststand.emulator.cluster.containers.compose import EMPTY, METRICS_PORT, NODE_PORT, TOXIPROXY_PORT
from laststand.emulator.cluster.containers.container_process import Afterwards, ContainerProcess
from laststand.emulator.cluster.containers.engine import CONFINED, EngineError, connect, in_thread
from laststand.emulator.cluster.containers.images import Images
from laststand.emulator.cluster.containers.listening import await_listener
from laststand.emulator.cluster.containers.mounts import change_owner, let_through, node_user, run_mount
from laststand.emulator.cluster.containers.network import ClusterNetwork, own_container
from laststand.emulator.cluster.containers.prune import remove_of
from laststand.emulator.cluster.fork_server import MALLOC
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.node_files import LocalFiles, NodeFiles
from laststand.emulator.cluster.node_host import NodeProcess
from laststand.emulator.cluster.toxiproxy import PROCESS_NAME, TOKEN_FILE_VARIABLE, Toxiproxy
from laststand.emulator.cluster.zookeeper_probe import server_probes
from laststand.emulator.core.types import NodeId
from laststand.emulator.node.environment import kafka_port
from laststand.emulator.plan.channels import Link
from laststand.emulator.rpc.run_token import RunToken

ResultT = TypeVar("ResultT")


class ContainerHost:
    """Containers of one run.

    Args:
        images: of nodes and proxies.
    """

    listen_host = "0.0.0.0"

    def __init__(self, images: Images) -> None:
        self._images = images
        self._children: dict[str, ContainerProcess] = {}
        self._creations: set[asyncio.Task[object]] = set()
        self._stack = AsyncExitStack()
        self._user = node_user()
        self._client: docker.DockerClient
        self.files: NodeFiles
        self.token: RunToken
        self._layout: ClusterLayout
        self._network: ClusterNetwork
        self._lock: labels.HarnessLock
        self._labels: dict[str, str] = {}
        self._report_end: Callable[[ProcessEnd], None]

    @property
    def children(self) -> Mapping[str, NodeProcess]:
        return self._children

    async def open(self, layout: ClusterLayout, *, on_end: Callable[[ProcessEnd], None]) -> None:
        """Creates the network, after the leftovers of a killed harness of this run are removed.

        Raises:
            EngineError: the engine refused.
        """
        self._layout = layout
        self.files = LocalFiles(layout.directory)
        self._report_end = on_end
        self._name = f"laststand-{layout.run}-{secrets.token_hex(3)}"
        async with AsyncExitStack() as stack:
            self._client = await asyncio.to_thread(connect)
            stack.callback(self._client.close)
            self._lock = labels.HarnessLock(layout.directory)
            stack.callback(self._lock.release)
            await self._remove()
            stack.push_async_callback(self._remove)
            await self._make_network()
            let_through(layout.directory, self._user)
            change_owner(layout.directory / "events", self._user)
            if layout.kafka_clients:
                change_owner(layout.directory / "history", self._user)
            self.token = RunToken.read_or_draw(layout.token_file)
            stack.callback(layout.token_file.unlink, missing_ok=True)
            os.chown(layout.token_file, *self._user)
            self._stack = stack.pop_all()

    async def _make_network(self) -> None:
        own = await in_thread("own container", lambda: own_container(self._client))
        self._labels = {
            labels.RUN: self._layout.run,
            labels.LOCK: str(self._lock.path),
            labels.PROCESS: labels.process_name(os.getpid()) or "",
            labels.HARNESS: "" if own is None else own.id or "",
        }
        self._mount = run_mount(self._layout.directory, own)
        members = (PROCESS_NAME, *map(str, self._layout.node_ids))
        self._network = await self._create(
            "network",
            lambda: ClusterNetwork(self._client, name=self._name, labels=self._labels, members=members),
        )

    async def close(self) -> None:
        """Removes every container and the network."""
        await asyncio.gather(*map(_kill, self._children.values()))
        await self._stack.aclose()

    async def _create(self, what: str, call: Callable[[], ResultT]) -> ResultT:
        """Lets the engine create something. An interruption does not stop the engine, so ``_remove`` waits for it."""
        creation = asyncio.create_task(in_thread(what, call))
        self._creations.add(creation)
        creation.add_done_callback(self._creations.discard)
        return await asyncio.shield(creation)

    async def _remove(self) -> None:
        await asyncio.gather(*self._creations, return_exceptions=True)
        await in_thread("removal", lambda: remove_of(self._client, self._lock.path))

    def address(self, node_id: NodeId) -> str:
        """Returns a container's address on the network."""
        return f"{self._network.addresses[str(node_id)]}:{NODE_PORT}"

    @property
    def configures_nodes(self) -> bool:
        """A node reads the file that its arguments name."""
        return True

    @property
    def harness_host(self) -> str:
        """The harness's address on the network."""
        return self._network.harness_address

    def kafka_address(self, link: Link[NodeId]) -> str:
        """Returns a container's address with a port of that client's listener."""
        return f"{self._network.addresses[str(link.target)]}:{kafka_port(NODE_PORT, link.source)}"

    def metrics_address(self, node_id: NodeId) -> str | None:
        """Returns a container's address with the port of its metrics."""
        is_served = self._layout.metrics and not self._layout.is_zookeeper(node_id)
        return f"{self._network.addresses[str(node_id)]}:{METRICS_PORT}" if is_served else None

    async def start(self, node_id: NodeId, arguments: tuple[str, ...]) -> NodeProcess:
        """Makes a container and starts it.

        Raises:
            EngineError: the engine refused.
            StartError: the node ended, or does not listen.
        """
        name = str(node_id)
        directory = self._layout.node_directory(node_id)
        await asyncio.to_thread(change_owner, directory, self._user)
        is_zookeeper = self._layout.is_zookeeper(node_id)
        process = await self._run(
            name,
            self._images.analysis if is_zookeeper else self._images.node,
            ["python", "-m", zookeeper_server.MODULE if is_zookeeper else "laststand.emulator.node", *arguments],
            log_path=self._layout.node_log(node_id),
        )
        await await_listener(process, self.address(node_id), is_zookeeper=is_zookeeper)
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
            environment={TOKEN_FILE_VARIABLE: str(self._layout.token_file)},
        )
        address = f"{self._network.addresses[PROCESS_NAME]}:{TOXIPROXY_PORT}"
        server = Toxiproxy(
            server=process,
            address=address,
            token=self.token,
            listen_host=self.listen_host,
            probes=server_probes(self._layout),
        )
        await server.await_answer()
        return server

    async def _run(
        self,
        name: str,
        image: str,
        command: list[str],
        *,
        log_path: Path,
        entrypoint: list[str] | None = None,
        environment: Mapping[str, str] = EMPTY,
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
                environment={**MALLOC, **environment},
                **CONFINED,
            )
            container.start()
            container.reload()
            return container

        container = await self._create(f"container of {name}", start)
        process = ContainerProcess(
            name, container, log_path=log_path, afterwards=Afterwards.REMOVED, on_end=self._ended
        )
        self._children[name] = process
        return process

    def _ended(self, end: ProcessEnd) -> None:
        del self._children[end.name]
        self._report_end(end)


async def _kill(process: ContainerProcess) -> None:
    with suppress(EngineError):  # whoever is left is removed, or the engine is gone
        await process.kill()
