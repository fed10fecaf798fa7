"""Plays a run on real processes: controller, brokers and one client process, behind proxies where links can break."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from chaos.client_link import ClientLink
from chaos.ending import note_crash, stop_nodes
from chaos.faults.stage import Stage
from chaos.harness_log import HarnessLog
from chaos.process_scene import ProcessScene, open_scene
from chaos.run_order import RunOrder
from chaos.waiting import Lookout
from chaos.workload import client_config
from emulator.cluster.child import ProcessEnd
from emulator.cluster.process_cluster import CLIENT_NAME, ProcessCluster
from emulator.core.properties import node_properties


class ProcessDriver:
    """``Driver`` of real processes.

    Args:
        order: what to play.
        logger: of ``run.log``.
        on_problem: told when a process ends by itself.
    """

    def __init__(self, order: RunOrder, *, logger: logging.Logger, on_problem: Callable[[str], None]) -> None:
        self._order = order
        self._logger = logger
        self._on_problem = on_problem
        self._lookout = Lookout()
        self._client = ClientLink(on_progress=self._lookout.change)
        self._session_timeout_ms = node_properties(dict(order.properties)).broker_session_timeout_ms
        self._log = HarnessLog(
            order.directory / "events" / "harness-0.jsonl", run=order.directory.name, wall_time_ns=time.time_ns()
        )
        self._cluster = ProcessCluster(order.layout, on_start=self._log.started, on_unexpected_end=self._notice_crash)
        self._stage: Stage

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ProcessScene]:
        """Starts the client process and the nodes side by side, then follows the controller's metadata."""
        async with self._cluster:
            directory = self._order.directory
            config = client_config(
                self._order.scenario,
                history_path=directory / "history.jsonl",
                control_port=await self._client.listen(),
                session_timeout_ms=self._session_timeout_ms,
            )
            async with asyncio.TaskGroup() as starting:
                starting.create_task(self._client.launch(self._cluster.supervisor, config, directory=directory))
                starting.create_task(self._cluster.start())
            async with open_scene(
                self._cluster,
                client=self._client,
                log=self._log,
                lookout=self._lookout,
                session_timeout_ms=self._session_timeout_ms,
            ) as scene:
                self._stage = scene.stage
                yield scene

    def start_work(self) -> None:
        """Tells the client process where the nodes are."""
        self._client.start_work(self._cluster.addresses_for(CLIENT_NAME))

    async def stop_work(self, *, timeout_ms: int) -> None:
        """Has the client process finish."""
        await self._client.stop_work(timeout_ms=timeout_ms)

    async def read_all(self, *, timeout_ms: int) -> None:
        """Has the client process read at the nodes' own ports."""
        await self._client.read_all(self._cluster.direct_addresses(), timeout_ms=timeout_ms)

    async def stop(self) -> None:
        """Ends the client process, then the nodes."""
        client = self._cluster.supervisor.children.get(CLIENT_NAME)
        if client is not None:
            await client.stop()
        await stop_nodes(self._stage)

    async def close(self, *, problem: str | None) -> None:
        """Ends the harness's event file; everything else was written when it happened."""
        await self._client.close()
        self._log.close(problem=problem)

    def _notice_crash(self, name: str, end: ProcessEnd) -> None:
        what = note_crash(self._cluster, self._log, name, end)
        self._logger.error("%s\n%s", what, "\n".join(end.stderr_tail))
        self._on_problem(what)
        self._lookout.fail(what)
