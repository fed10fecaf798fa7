"""``NodeHost`` of a compose project: containers that somebody else made. They are started again, and never removed.

Nodes choose their incarnation themselves (``laststand.emulator.node.environment``), so that a node always starts with
the environment that its container was created with.
"""

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

import docker
from docker.models.containers import Container

from laststand.emulator.cluster.child import EndCause, ProcessEnd
from laststand.emulator.cluster.containers import labels
from laststand.emulator.cluster.containers.compose import METRICS_PORT, NODE_PORT, TOXIPROXY_PORT, service_name
from laststand.emulator.cluster.containers.container_process import Afterwards, ContainerProcess
from laststand.emulator.cluster.containers.engine import connect, in_thread
from laststand.emulator.cluster.containers.labels import HarnessLock
from laststand.emulator.cluster.containers.listening import await_listener, listens
from laststand.emulator.cluster.containers.project import Project
from laststand.emulator.cluster.containers.volume_files import VolumeFiles, VolumesTakenError
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.node_files import LocalFiles, NodeFiles
from laststand.emulator.cluster.node_host import NodeProcess, probe_contexts, remove_secrets
from laststand.emulator.cluster.ports import LOOPBACK
from laststand.emulator.cluster.toxiproxy import PROCESS_NAME, Toxiproxy
from laststand.emulator.cluster.zookeeper_probe import server_probes
from laststand.emulator.core.errors import ConfigError, EmulatorError, StorageError
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.types import CLIENT_ID, BrokerId, NodeId
from laststand.emulator.node.environment import kafka_listeners
from laststand.emulator.plan.channels import Link
from laststand.emulator.rpc.authority import certify
from laststand.emulator.rpc.certificates import HARNESS
from laststand.emulator.rpc.run_token import RunToken

_RUNNING: Final = ("running", "paused")


class AttachedHost:
    """The containers of a project.

    Args:
        project: name of the project.
    """

    listen_host = ""  # each node has its own in its environment

    def __init__(self, project: str) -> None:
        self._name = project
        self._children: dict[str, ContainerProcess] = {}
        self.files: NodeFiles
        self.token: RunToken
        self._stack = AsyncExitStack()
        self._layout: ClusterLayout
        self._project: Project
        self._lock: HarnessLock
        self._report_end: Callable[[ProcessEnd], None]

    @property
    def children(self) -> Mapping[str, NodeProcess]:
        return self._children

    async def open(self, layout: ClusterLayout, *, on_end: Callable[[ProcessEnd], None]) -> None:
        """Finds the containers, and watches those that run.

        Raises:
            ConfigError: there is no such project.
            EngineError: the engine refused.
            StorageError: the volumes cannot be read.
        """
        self._layout = layout
        self._report_end = on_end
        client = await asyncio.to_thread(connect)
        self._project = await asyncio.to_thread(Project, client, self._name)
        async with AsyncExitStack() as stack:
            await self._open_files(client, stack)
            stack.callback(remove_secrets, layout)
            self.token = await asyncio.to_thread(self._project.token)
            self.token.write(layout.token_file)
            if layout.has_tls:
                await asyncio.to_thread(self._project.copy_authority, layout.tls_folder)
                certify(layout.tls_folder, (HARNESS, node_name(CLIENT_ID)))
                self.token = RunToken.read(layout.token_file)
            for name, container in self._project.members.items():
                if container.status in _RUNNING and name.isdigit():
                    self._watch(name, container)
            async with asyncio.TaskGroup() as waiting:
                for process in self._children.values():
                    waiting.create_task(self._await_begun(process))
            self.files.catch_up()
            self._stack = stack.pop_all()

    async def _open_files(self, client: docker.DockerClient, stack: AsyncExitStack) -> None:
        """Locks the nodes' files for this harness, and opens them.

        Raises:
            ConfigError: another harness has locked them.
            StorageError: the volumes cannot be read.
        """
        directory = self._layout.directory
        events = directory / "events"
        is_linked = events.is_symlink()  # to the volume
        try:
            self._lock = HarnessLock(events if is_linked else directory)
            stack.callback(self._lock.release)
            if is_linked:
                self.files = LocalFiles(directory)
                return
            for node_id in self._layout.node_ids:
                self._layout.node_directory(node_id).mkdir(parents=True, exist_ok=True)  # for what they print
            self.files = volumes = await self._open_volumes(client)
            stack.push_async_callback(self._close_volumes, volumes)
        except (BlockingIOError, VolumesTakenError):
            raise ConfigError(
                key="--compose-project",
                value=self._name,
                expected="a project to which nobody is attached; its service `harness` is, unless it was stopped",
            ) from None

    async def _await_begun(self, process: ContainerProcess) -> None:
        """Waits until a node that may just have been started listens: its event file then names its process."""
        node_id = NodeId(int(process.name))
        if not process.is_paused:
            await listens(
                process,
                self.address(node_id),
                is_zookeeper=self._layout.is_zookeeper(node_id),
                context=self.token.dialling_context,
            )

    async def _open_volumes(self, client: docker.DockerClient) -> VolumeFiles:
        """Starts the helper container. An interruption would not stop the engine, so the start is awaited."""
        loop = asyncio.get_running_loop()
        own = self._project.own
        found = {
            labels.RUN: self._layout.run,
            labels.LOCK: str(self._lock.path),
            labels.PROCESS: labels.process_name(os.getpid()) or "",
            labels.HARNESS: "" if own is None else own.id or "",
        }

        def report(reason: str) -> None:
            with suppress(RuntimeError):  # the event loop is closed: nobody wants to know
                loop.call_soon_threadsafe(self._report_volumes_gone, reason)

        def start() -> VolumeFiles:
            return VolumeFiles(
                client,
                image=self._project.node_image,
                name=f"laststand-{self._layout.run}-volumes-{secrets.token_hex(3)}",
                labels=found,
                mounts=self._project.volumes(),
                run=self._layout.directory,
                run_there=self._project.run_directory,
                on_end=report,
            )

        starting = asyncio.create_task(in_thread("helper container of the volumes", start))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with suppress(EmulatorError):
                await asyncio.to_thread((await starting).close, ())
            raise

    def _report_volumes_gone(self, reason: str) -> None:
        self._report_end(
            ProcessEnd(
                name="volumes",
                pid=0,
                cause=EndCause.UNSEEN,
                exit_code=None,
                signal_number=None,
                stderr_tail=(),
                explanation=reason,
            )
        )

    async def close(self) -> None:
        """Leaves every container of the project as it is; copies the files of nodes that have ended."""
        await self._stack.aclose()
        self._children.clear()

    async def _close_volumes(self, volumes: VolumeFiles) -> None:
        ended = tuple(node_id for node_id in self._layout.node_ids if str(node_id) not in self._children)
        try:
            await asyncio.to_thread(volumes.close, ended)
        except StorageError as error:
            self._report_volumes_gone(str(error))

    def address(self, node_id: NodeId) -> str:
        """Returns a node's service on the project's network, or its published port on this machine."""
        return self._reach(str(node_id), service_name(node_id), NODE_PORT)

    @property
    def configures_nodes(self) -> bool:
        """A node reads its own environment."""
        return False

    @property
    def harness_host(self) -> str:
        """Loopback: nodes of a project do not connect to the harness; they got all addresses before."""
        return LOOPBACK

    def kafka_address(self, link: Link[NodeId]) -> str:
        """Returns the address in the brokers' environment."""
        listeners = kafka_listeners(self._project.variables()).values()
        [advertised] = [each.advertised for each in listeners if each.client_id == link.source]
        return advertised[BrokerId(link.target)]

    def metrics_address(self, node_id: NodeId) -> str | None:
        """Returns the address of a node's metrics; on this machine, that of its container."""
        return None if self._layout.is_zookeeper(node_id) else f"{self._network_address(str(node_id))}:{METRICS_PORT}"

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
        await await_listener(
            process,
            self.address(node_id),
            is_zookeeper=self._layout.is_zookeeper(node_id),
            context=self.token.dialling_context,
        )
        return process

    async def disconnect(self, node_id: NodeId) -> bool:
        """Takes a container that runs off the project's network.

        Raises:
            EngineError: the engine refused.
        """
        name = str(node_id)
        return name in self._children and await in_thread("disconnect", lambda: self._project.disconnect(name))

    async def connect(self, node_id: NodeId) -> bool:
        """Puts a container back on its network.

        Raises:
            EngineError: the engine refused.
        """
        name = str(node_id)
        return name in self._children and await in_thread("connect", lambda: self._project.connect(name))

    async def start_toxiproxy(self, program: Path) -> Toxiproxy:
        """Finds the server that runs, with its proxies.

        Raises:
            ToxiproxyError: the server does not answer.
        """
        container = self._project.members[PROCESS_NAME]
        process = self._process(PROCESS_NAME, container, on_end=self._report_end)
        address = f"{self._network_address(PROCESS_NAME)}:{TOXIPROXY_PORT}"
        server = Toxiproxy(
            server=process,
            address=address,
            token=self.token,
            probes=server_probes(self._layout),
            **probe_contexts(self.token, self._layout),
        )
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
        self._report_end(end)

    def _reach(self, member: str, service: str, port: int) -> str:
        if self._project.own is not None:
            return f"{service}:{port}"
        published = self._project.members[member].attrs["HostConfig"]["PortBindings"].get(f"{port}/tcp")
        return f"127.0.0.1:{published[0]['HostPort']}"

    def _network_address(self, member: str) -> str:
        networks = self._project.members[member].attrs["NetworkSettings"]["Networks"]
        return str(next(iter(networks.values()))["IPAddress"])
