"""Plays a run on a cluster that another party runs: the driver starts only the client process."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from laststand.chaos.external.state import ExternalState
from laststand.chaos.external.target import ExternalTarget
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.play.workload import client_config
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.harness_log import HarnessLog
from laststand.emulator.client.config import Wire
from laststand.emulator.client.history import HISTORY_FILE
from laststand.emulator.cluster.child import EndCause, ProcessEnd
from laststand.emulator.cluster.process_cluster import CLIENT_NAME
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.core import admin_messages
from laststand.emulator.core.errors import EmulatorError, InvariantError
from laststand.emulator.core.properties import node_properties
from laststand.emulator.core.types import TopicPartition, Witness
from laststand.emulator.rpc.run_token import RunToken


class ExternalDriver:
    """``Driver`` of another party's cluster; arguments as in ``MakeDriver``."""

    def __init__(self, order: RunOrder, *, logger: logging.Logger, on_problem: Callable[[str], None]) -> None:
        if order.external is None:
            raise InvariantError("a run on an external cluster without one")
        self._cluster, self._hooks = order.external.cluster, order.external.hooks
        self._keeps_topics = order.external.keeps_topics
        self._order = order
        self._logger = logger
        self._on_problem = on_problem
        self._changes = ChangeSignal()
        self._client = ClientLink(on_counts=self._changes.change)
        self._supervisor = Supervisor(on_end=self._ended)
        self._log = HarnessLog(
            order.directory / "events",
            run=order.directory.name,
            wall_time_ns=time.time_ns(),
            driver=order.driver,
            ending=order.scenario.end,
            witness=Witness.CLIENTS,
        )
        self._target: ExternalTarget

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ExternalTarget]:
        """Starts the client process, and follows the state that brokers report."""
        order, topics = self._order, tuple(topic.name for topic in self._order.scenario.topics)
        token_file = order.layout.token_file
        state = ExternalState(
            self._cluster.addresses,
            topics=lambda: (*topics, *order.scenario.made_topics),
            on_change=self._changes.change,
            numbers=self._cluster.broker_numbers,
        )
        token = RunToken.read_or_draw(token_file)
        try:
            async with self._supervisor, asyncio.TaskGroup() as tasks:
                config = client_config(
                    order.scenario,
                    history_path=order.directory / HISTORY_FILE,
                    control_port=await self._client.listen(token),
                    token_file=token_file,
                    session_timeout_ms=node_properties({}).broker_session_timeout_ms,
                    switches=order.switches,
                    wire=Wire.KAFKA,
                    broker_numbers=self._cluster.broker_numbers,
                )
                await self._client.launch(self._supervisor, config, directory=order.directory)
                following = tasks.create_task(state.run())
                self._target = ExternalTarget(
                    cluster=self._cluster,
                    hooks=self._hooks,
                    state=state,
                    client=self._client,
                    log=self._log,
                    changes=self._changes,
                )
                try:
                    yield self._target
                except BaseException:  # the end of the run, which mends and cleans up, was not reached
                    await self._mend()
                    raise
                following.cancel()
        finally:
            token_file.unlink(missing_ok=True)

    async def start_work(self) -> None:
        """Sends the brokers' addresses to the client process."""
        self._client.start_work(self._addresses())

    async def stop_work(self, *, timeout_ms: int) -> None:
        """Has the client process finish."""
        await self._client.stop_work(timeout_ms=timeout_ms)

    async def read_all(self, partitions: tuple[TopicPartition, ...], *, timeout_ms: int) -> None:
        """Has the client process read partitions."""
        await self._client.read_all(partitions, self._addresses(), timeout_ms=timeout_ms)

    async def stop(self) -> None:
        """Ends the client process, and deletes the topics that this run has made, unless they are kept."""
        client = self._supervisor.children.get(CLIENT_NAME)
        if client is not None:
            await client.stop()
        await self._delete_topics()

    async def _mend(self) -> None:
        self._logger.info("mend what steps have broken")
        try:
            await self._target.mend()
            await self._delete_topics()
        except EmulatorError as error:
            self._logger.error("%s", error)
            self._on_problem(f"after the run was interrupted: {error}")

    async def _delete_topics(self) -> None:
        if self._target.made_topics and not self._keeps_topics:
            request = admin_messages.DeleteTopicsRequest(topics=tuple(sorted(self._target.made_topics)))
            try:
                await self._target.ask_controller(request)
            except EmulatorError as error:
                self._logger.warning("topics=%s are left: %s", ",".join(request.topics), error)

    async def close(self, *, problem: str | None) -> None:
        """Ends the harness's event file."""
        await self._client.close()
        self._log.close(problem=problem)

    def _addresses(self) -> dict[int, str]:
        return {int(broker_id): address for broker_id, address in self._cluster.addresses.items()}

    def _ended(self, end: ProcessEnd) -> None:
        if end.cause in (EndCause.STOPPED, EndCause.KILLED):
            return
        what = f"process {end.name} ended by itself ({end.cause.value}, exit code {end.exit_code})"
        self._logger.error("%s\n%s", what, "\n".join(end.stderr_tail))
        self._on_problem(what)
        self._changes.fail(what)
