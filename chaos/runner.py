"""Plays one scenario under one set of switches, and leaves a run directory.

A run always goes through the same phases: start, topics, steps, end, final read, orderly stop. A barrier that is
missed, a fault that cannot be played or a process that ends by itself stops the steps, not the phases after them, so
that the evidence is as whole as it can be; the run's *problem* then makes the verdict ``unknown`` at best.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc.aio

from chaos.admin import create_topics
from chaos.barriers import Sight
from chaos.client_link import ClientLink
from chaos.ending import restore, settled, stop_nodes
from chaos.faults.stage import Stage
from chaos.harness_log import HarnessLog
from chaos.metadata_watch import MetadataWatch
from chaos.plan import PlayedStep, write_plan
from chaos.run_directory import write_cluster_file
from chaos.scenario import CONTROLLER, Ending, Scenario
from chaos.step_player import StepPlayer
from chaos.waiting import Lookout, Missed
from chaos.workload import client_config
from emulator.client.config import write_config
from emulator.cluster.child import ProcessEnd, ProcessSpec
from emulator.cluster.process_cluster import CLIENT_NAME, ClusterLayout, ProcessCluster, source_environment
from emulator.core.errors import EmulatorError
from emulator.core.events import IncarnationEnd
from emulator.core.properties import node_properties
from emulator.core.switches import Switches
from emulator.core.types import CauseId, NodeId
from emulator.rpc.channel import keepalive_for

READY_TIMEOUT_S: Final = 30.0
"""For all brokers to be registered and unfenced, and then for the topics to exist."""

DRAIN_TIMEOUT_MS: Final = 10_000
"""For producers to get answers once they send nothing new."""

SETTLE_TIMEOUT_S: Final = 45.0
"""For leaders and full ISRs after everything was restored."""

FINAL_READ_TIMEOUT_MS: Final = 30_000

_LOG_FORMAT: Final = "[%(asctime)s] %(levelname)s %(message)s"


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """Where a run is. ``step`` counts from 1; 0 is before the steps, ``steps`` + 1 after them."""

    era: str
    step: int
    steps: int
    text: str
    seen: str | None


@dataclass(frozen=True, kw_only=True)
class RunOrder:
    """What to play, and where.

    Attributes:
        directory: the run's, which exists and is absolute.
        era: its name, for people.
        switches: the rules of the era, changed as asked for.
        properties: of every node: the scenario's with what was asked for on top.
        toxiproxy: the program; needed where the scenario has network faults.
    """

    scenario: Scenario
    directory: Path
    era: str
    switches: Switches
    properties: tuple[tuple[str, str], ...]
    seed: int
    toxiproxy: Path | None


class Run:
    """One run.

    Attributes:
        problem: why its plan did not reach its end; ``None`` if it did.
    """

    def __init__(self, order: RunOrder, *, on_status: Callable[[RunStatus], None]) -> None:
        self.problem: str | None = None
        self._order = order
        self._on_status = on_status
        self._lookout = Lookout()
        self._played: list[PlayedStep] = []
        self._logger = _open_log(order.directory)
        self._client = ClientLink(on_progress=self._lookout.change)
        properties = node_properties(dict(order.properties))
        self._session_timeout_ms = properties.broker_session_timeout_ms
        self._keepalive = keepalive_for(session_timeout_ms=self._session_timeout_ms)
        self._log = HarnessLog(
            order.directory / "events" / "harness-0.jsonl", run=order.directory.name, wall_time_ns=time.time_ns()
        )
        self._layout = ClusterLayout(
            run=order.directory.name,
            directory=order.directory,
            controller_id=CONTROLLER,
            broker_ids=order.scenario.broker_ids,
            switches=order.switches,
            properties=order.properties,
            toxiproxy=order.toxiproxy if order.scenario.has_network_faults else None,
        )
        self._cluster = ProcessCluster(self._layout, on_start=self._log.started, on_unexpected_end=self._notice_crash)

    async def play(self) -> None:
        """Plays the scenario to its end; afterwards nothing runs any more."""
        order = self._order
        write_cluster_file(
            order.directory / "cluster.yaml",
            self._layout,
            era=order.era,
            scenario=order.scenario.name,
            seed=order.seed,
        )
        try:
            async with self._cluster:
                await self._play_or_note_interrupt()
        except* (EmulatorError, grpc.aio.AioRpcError, OSError, Missed) as errors:
            self._fail("; ".join(str(error) for error in _leaves(errors)))
        finally:
            await self._client.close()
            self._log.close(problem=self.problem)
            write_plan(
                order.directory / "plan.yaml",
                scenario_text=order.scenario.text,
                steps=self._played,
                seed=order.seed,
            )
            _close_log(self._logger)

    async def _play_or_note_interrupt(self) -> None:
        try:
            await self._play()
        except asyncio.CancelledError:
            self._fail("interrupted")
            raise

    # --- Phases ---------------------------------------------------------------------------------------------------

    async def _play(self) -> None:
        self._tell(0, "start the cluster")
        port = await self._client.listen()
        config = client_config(
            self._order.scenario,
            history_path=self._order.directory / "history.jsonl",
            control_port=port,
            session_timeout_ms=self._session_timeout_ms,
        )
        config_path = self._order.directory / "client.json"
        write_config(config_path, config)
        async with asyncio.TaskGroup() as starting:
            starting.create_task(self._start_client(config_path))
            starting.create_task(self._cluster.start())
        watch = MetadataWatch(
            self._cluster.direct_addresses()[CONTROLLER], keepalive=self._keepalive, on_change=self._lookout.change
        )
        stage = Stage(cluster=self._cluster, watch=watch, log=self._log, session_timeout_ms=self._session_timeout_ms)
        player = StepPlayer(stage=stage, client=self._client, lookout=self._lookout, seed=self._order.seed)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(watch.run())
            await self._prepare(stage)
            await self._play_steps(player)
            await self._end(stage, player)
            following.cancel()

    async def _start_client(self, config_path: Path) -> None:
        await self._cluster.supervisor.start(
            ProcessSpec(
                name=CLIENT_NAME,
                argv=(sys.executable, "-m", "emulator.client", "--config", str(config_path)),
                environment=source_environment(),
                stderr_path=self._order.directory / "client.log",
            )
        )
        await self._client.ready()

    async def _prepare(self, stage: Stage) -> None:
        image, scenario = stage.watch.image, self._order.scenario

        def unfenced() -> Sight:
            missing = [b for b in scenario.broker_ids if b not in image.brokers or image.brokers[b].fenced]
            return Sight(reached=not missing, text=f"brokers {missing} are not unfenced")

        def created() -> Sight:
            missing = [str(partition) for partition in scenario.partitions if partition not in image.partitions]
            return Sight(reached=not missing, text=f"partitions {missing} do not exist")

        await self._lookout.wait(unfenced, timeout_s=READY_TIMEOUT_S)
        address = self._cluster.direct_addresses()[CONTROLLER]
        await create_topics(address, scenario.topics, keepalive=self._keepalive)
        await self._lookout.wait(created, timeout_s=READY_TIMEOUT_S)
        self._client.start_work(self._cluster.addresses_for(CLIENT_NAME))

    async def _play_steps(self, player: StepPlayer) -> None:
        for number, step in enumerate(self._order.scenario.steps, start=1):
            self._log.cause_id = CauseId(f"step-{number}")
            self._tell(number, step.text)
            try:
                played = await player.play(number, step)
            except (Missed, EmulatorError, grpc.aio.AioRpcError) as error:
                self._fail(f"step {number} {step.text}: {error}")
                return
            self._played.append(played)
            self._log.step_reached(number, played.text, seen=played.seen)
            self._tell(number, step.text, seen=played.seen)

    async def _end(self, stage: Stage, player: StepPlayer) -> None:
        after = len(self._order.scenario.steps) + 1
        self._log.cause_id = CauseId("end")
        self._tell(after, "stop the workload")
        await self._client.stop_work(timeout_ms=DRAIN_TIMEOUT_MS)
        if self._order.scenario.end is Ending.RESTORE:
            self._tell(after, "restore everything, wait for leaders and full ISRs")
            await restore(stage, player)
            try:
                await self._lookout.wait(lambda: settled(stage), timeout_s=SETTLE_TIMEOUT_S)
            except Missed as missed:
                self._fail(f"after everything was restored: {missed}")
        self._tell(after, "read everything")
        await self._client.read_all(self._cluster.direct_addresses(), timeout_ms=FINAL_READ_TIMEOUT_MS)
        self._tell(after, "stop the cluster")
        await self._stop_everything(stage)
        self._tell(after, "stop the cluster", seen="stopped")

    async def _stop_everything(self, stage: Stage) -> None:
        client = self._cluster.supervisor.children.get(CLIENT_NAME)
        if client is not None:
            await client.stop()
        await stop_nodes(stage)

    # --- Mishaps and news -----------------------------------------------------------------------------------------

    def _notice_crash(self, name: str, end: ProcessEnd) -> None:
        what = f"process {name} ended by itself ({end.cause.value}, exit code {end.exit_code})"
        self._logger.error("%s\n%s", what, "\n".join(end.stderr_tail))
        if name.isdigit():
            node_id = NodeId(int(name))
            self._log.ended(
                node_id,
                self._cluster.incarnation(node_id),
                IncarnationEnd.UNEXPECTED,
                process_end=end,
                metadata_offset=None,
            )
        self._fail(what)
        self._lookout.fail(what)

    def _fail(self, problem: str) -> None:
        self._logger.error("%s", problem)
        self.problem = self.problem or problem

    def _tell(self, step: int, text: str, *, seen: str | None = None) -> None:
        self._logger.info("era=%s step=%d %s%s", self._order.era, step, text, "" if seen is None else f" -> {seen}")
        status = RunStatus(era=self._order.era, step=step, steps=len(self._order.scenario.steps), text=text, seen=seen)
        self._on_status(status)


def _open_log(directory: Path) -> logging.Logger:
    """Returns a logger that writes ``run.log``; runs side by side have one each."""
    logger = logging.getLogger(f"laststand.run.{directory.name}")
    handler = logging.FileHandler(directory / "run.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter(_LOG_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return logger


def _close_log(logger: logging.Logger) -> None:
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def _leaves(errors: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in errors.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
