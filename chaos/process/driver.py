"""Plays a run on real processes: controller, brokers and one client process, behind proxies where links can break.

The nodes are children of this process, or run in containers; the client process is always a child.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.play.workload import client_config
from laststand.chaos.process.applications import Applications
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.ending import note_crash, stop_nodes
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.hosts import make_host
from laststand.chaos.process.opening import open_target
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.client.config import Wire
from laststand.emulator.client.history import HISTORY_FILE
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.process_cluster import CLIENT_NAME, ProcessCluster
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan.nodes import CLIENT


class ProcessDriver:
    """``Driver`` of real processes.

    Attributes:
        wire: the protocol by which clients call the nodes.

    Args:
        order: the order to play.
        logger: of ``run.log``.
        on_problem: called when a process ends by itself.
    """

    wire = Wire.GRPC

    def __init__(self, order: RunOrder, *, logger: logging.Logger, on_problem: Callable[[str], None]) -> None:
        self._order = order
        self._logger = logger
        self._on_problem = on_problem
        self._changes = ChangeSignal()
        self._client = ClientLink(on_counts=self._changes.change)
        self._session_timeout_ms = node_properties(dict(order.properties)).broker_session_timeout_ms
        self._log = HarnessLog(
            order.directory / "events",
            run=order.directory.name,
            wall_time_ns=time.time_ns(),
            driver=order.driver,
            ending=order.scenario.end,
            kafka_clients=order.scenario.kafka_clients,
            standby_controllers=order.scenario.standby_ids,
        )
        self._cluster = self._make_cluster()
        self._applications = Applications(
            dict(order.scenario.applications), directory=order.directory, logger=logger, on_problem=self._notice_problem
        )
        self._target: ProcessTarget

    def _make_cluster(self) -> ProcessCluster:
        return ProcessCluster(
            self._order.layout,
            on_start=self._log.started,
            on_unexpected_end=self._notice_crash,
            host=make_host(self._order.driver),
        )

    def _open_target(self) -> AbstractAsyncContextManager[ProcessTarget]:
        return open_target(
            self._cluster,
            client=self._client,
            log=self._log,
            changes=self._changes,
            session_timeout_ms=self._session_timeout_ms,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ProcessTarget]:
        """Starts the client process and the nodes side by side, then follows the controller's metadata."""
        async with self._cluster, self._applications:
            directory = self._order.directory
            config = client_config(
                self._order.scenario,
                history_path=directory / HISTORY_FILE,
                control_port=await self._client.listen(self._cluster.token),
                token_file=self._cluster.layout.token_file,
                session_timeout_ms=self._session_timeout_ms,
                switches=self._order.switches,
                wire=self.wire,
            )
            async with asyncio.TaskGroup() as starting:
                starting.create_task(self._client.launch(self._cluster.supervisor, config, directory=directory))
                starting.create_task(self._cluster.start())
            for client, addresses in self._cluster.kafka_addresses().items():
                self._logger.info("client=%s bootstrap.servers=%s", client, ",".join(addresses.values()))
            async with self._open_target() as target:
                self._target = target
                yield target

    async def start_work(self) -> None:
        """Sends the client process the addresses of the nodes, and starts the user's applications."""
        self._client.start_work(self._cluster.addresses_for(CLIENT))
        await self._applications.start(
            {client: ",".join(brokers.values()) for client, brokers in self._cluster.kafka_addresses().items()}
        )

    async def stop_work(self, *, timeout_ms: int) -> None:
        """Has the user's applications and the client process finish."""
        await self._applications.stop(timeout_ms=timeout_ms)
        await self._client.stop_work(timeout_ms=timeout_ms)

    async def read_all(self, partitions: tuple[TopicPartition, ...], *, timeout_ms: int) -> None:
        """Has the client process read partitions at the nodes' own ports."""
        await self._client.read_all(partitions, self._cluster.direct_addresses(), timeout_ms=timeout_ms)

    async def stop(self) -> None:
        """Ends the client process, then the nodes."""
        client = self._cluster.supervisor.children.get(CLIENT_NAME)
        if client is not None:
            await client.stop()
        await stop_nodes(self._target)

    async def close(self, *, problem: str | None) -> None:
        """Ends the harness's event file, the last one to be written."""
        await self._client.close()
        self._log.close(problem=problem)

    def _notice_crash(self, name: str, end: ProcessEnd) -> None:
        what = note_crash(self._cluster, self._log, name, end)
        self._logger.error("%s\n%s", what, "\n".join(end.stderr_tail))
        self._notice_problem(what)

    def _notice_problem(self, what: str) -> None:
        self._on_problem(what)
        self._changes.fail(what)
