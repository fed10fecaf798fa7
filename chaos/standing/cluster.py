"""A standing cluster inside its supervisor: its processes, the steps that are played on it, and their record.

It goes through the phases of a run, with commands in place of a scenario's steps: start, *stand*, end, final read,
orderly stop. Steps come one at a time from any command, and leave the same record as a scenario's.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Final

import grpc.aio

from chaos.play.barriers import Observation
from chaos.play.ending import restore_and_settle
from chaos.play.recorded_plan import PlayedStep, write_plan
from chaos.play.run_directory import write_cluster_file
from chaos.play.step_player import StepPlayer
from chaos.play.waiting import ChangeSignal
from chaos.process.client_link import ClientLink
from chaos.process.ending import note_crash, stop_nodes
from chaos.process.harness_log import HarnessLog
from chaos.process.target import ProcessTarget, open_target
from chaos.scenario.scenario import Ending
from chaos.standing.clients import ClientRegister
from chaos.standing.order import STANDING, StandingOrder
from chaos.standing.status import StatusReport, status_report
from chaos.standing.steps import nothing_to_do, step_of
from emulator.client.config import ClientConfig
from emulator.cluster.child import ProcessEnd
from emulator.cluster.process_cluster import ProcessCluster
from emulator.core.errors import EmulatorError
from emulator.core.events import ClientStarted, StepReached
from emulator.core.types import CauseId
from emulator.plan.actions import ActionTemplate, Administration, CreateTopic, effective, no_op
from emulator.plan.nodes import CLIENT
from emulator.plan.requests import existing_topic

READY_TIMEOUT_S: Final = 60.0
"""For all brokers to be registered and unfenced."""

FINAL_READ_TIMEOUT_MS: Final = 30_000

_RECORD_TIMEOUT_S: Final = 5.0
"""For what the controller answered to be seen in its metadata."""

_log: Final = logging.getLogger(__name__)


class StandingCluster:
    """Use it as an asynchronous context manager: inside, the cluster serves; leaving it kills what still runs.

    Attributes:
        problem: what will make the verdict ``unknown``; ``None`` if nothing will.
        clients: producers and consumers at work.
    """

    def __init__(self, order: StandingOrder) -> None:
        """Starts nothing yet.

        Raises:
            ConfigError: the properties are none.
        """
        self.problem: str | None = None
        self.clients = ClientRegister(order.path)
        self._order = order
        self._properties = order.node_properties()
        self._session_timeout_ms = self._properties.broker_session_timeout_ms
        self._layout = order.layout()
        self._changes = ChangeSignal()
        self._log = HarnessLog(
            order.path / "events" / "harness-0.jsonl", run=self._layout.run, wall_time_ns=time.time_ns()
        )
        self._cluster = ProcessCluster(self._layout, on_start=self._log.started, on_unexpected_end=self._notice_crash)
        self._client_link = ClientLink(on_counts=self._changes.change)
        self._one_step = asyncio.Lock()
        self._is_starting = True
        self._played: list[PlayedStep] = []
        self._stack = AsyncExitStack()
        self._target: ProcessTarget
        self._player: StepPlayer

    async def __aenter__(self) -> "StandingCluster":
        """Starts every process and waits until every broker serves.

        Raises:
            EmulatorError: a process did not start.
            StepError: a broker did not come up in time.
        """
        async with AsyncExitStack() as stack:
            stack.callback(self._close_log)
            await stack.enter_async_context(self._cluster)
            write_cluster_file(
                self._order.path / "cluster.yaml",
                self._layout,
                era=self._order.era,
                scenario=STANDING,
                seed=self._order.seed,
                metrics=self._cluster.metrics_addresses(),
            )
            stack.push_async_callback(self._client_link.close)
            await self._cluster.start()
            self._target = await stack.enter_async_context(
                open_target(
                    self._cluster,
                    client=self._client_link,
                    log=self._log,
                    changes=self._changes,
                    session_timeout_ms=self._session_timeout_ms,
                )
            )
            self._player = StepPlayer(target=self._target, seed=self._order.seed)
            await self._changes.wait(self._is_serving, timeout_s=READY_TIMEOUT_S)
            self._is_starting = False
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Kills what still runs and closes the log."""
        await self._stack.aclose()

    def _close_log(self) -> None:
        if self._is_starting:
            self.fail("the cluster did not come up")
        self._log.close(problem=self.problem)

    def _is_serving(self) -> Observation:
        brokers = self._target.image.brokers
        missing = [b for b in self._layout.broker_ids if b not in brokers or brokers[b].fenced]
        return Observation(reached=not missing, text=f"brokers {missing} are not unfenced")

    # --- While it stands ------------------------------------------------------------------------------------------

    @property
    def session_timeout_ms(self) -> int:
        """Of the brokers."""
        return self._session_timeout_ms

    def status(self) -> StatusReport:
        """Returns how everything is now."""
        return status_report(
            self._target.faults,
            era=self._order.era,
            properties=self._properties,
            clients=self.clients.connected,
            problem=self.problem,
        )

    def client_addresses(self) -> dict[int, str]:
        """Returns where a client reaches each node: through the proxies, where there are any."""
        return self._cluster.addresses_for(CLIENT)

    async def play(self, wanted: str | ActionTemplate) -> PlayedStep:
        """Plays one step, given as a scenario file writes it or as an action; steps take turns.

        Raises:
            UnplayableStepError: it is no step for this cluster; nothing was done.
            StepError: a state was not reached in time, or no node has the role that the step names.
            EmulatorError: it could not be played to its end.
        """
        async with self._one_step:
            step = step_of(wanted, self._target.faults)
            reason = nothing_to_do(step.action, self._target.faults)
            if reason is not None:
                return PlayedStep(action=step.action, outcome=no_op(reason))
            number = len(self._played) + 1
            self._log.cause_id = CauseId(f"step-{number}")
            _log.info("step=%d %s", number, step.text)
            played = await self._player.play(number, step)
            self._put_on_record(played)
            return played

    async def record(self, actions: Sequence[Administration], seen: str) -> None:
        """Records a request that an administrator sent to the controller directly, with its response."""
        async with self._one_step:
            for action in actions:
                self._log.cause_id = CauseId(f"step-{len(self._played) + 1}")
                placed = await self._with_replicas(action)
                self._put_on_record(PlayedStep(action=placed, outcome=effective(seen)))

    async def _with_replicas(self, action: Administration) -> Administration:
        """Returns an action in which a topic that was created has the replicas that the controller gave it."""
        if not isinstance(action, CreateTopic) or action.topic.replicas:
            return action
        name, image = action.topic.name, self._target.image

        def created() -> Observation:
            return Observation(reached=name in image.topics, text=f"topic {name} does not exist")

        await self._target.wait(created, timeout_s=_RECORD_TIMEOUT_S)
        return CreateTopic(topic=existing_topic(name, image))

    def _put_on_record(self, played: PlayedStep) -> None:
        self._played.append(played)
        number, seen = len(self._played), played.outcome.seen
        self._log.note(StepReached(cause_id=self._log.cause_id, step=number, text=played.text, seen=seen))
        _log.info("step=%d %s -> %s", number, played.text, seen)
        write_plan(
            self._order.path / "plan.yaml",
            scenario_text=self._order.scenario_text(),
            steps=self._played,
            era=self._order.era,
            switches=self._order.switches,
            properties=tuple(self._order.properties.items()),
            seed=self._order.seed,
        )

    def open_client(self, verb: str) -> str:
        """Registers and records a producer or consumer; returns its name."""
        name = self.clients.open(verb)
        history_file = str(self.clients.history_path(name).relative_to(self._order.path))
        self._log.note(ClientStarted(cause_id=self._log.cause_id, process=name, history_file=history_file))
        return name

    def client_gone(self, name: str) -> None:
        """A client disappeared without closing."""
        unknown = self.clients.bury(name)
        _log.warning("client=%s went away, sends with unknown outcome: %d", name, unknown)

    def fail(self, problem: str) -> None:
        """Records a problem that makes the evidence incomplete; the first one counts."""
        _log.error("%s", problem)
        self.problem = self.problem or problem

    def _notice_crash(self, name: str, end: ProcessEnd) -> None:
        what = note_crash(self._cluster, self._log, name, end)
        if self._is_starting:
            self._changes.fail(what)
        self.fail(what)
        if end.stderr_tail:
            _log.error("last lines of %s:\n%s", name, "\n".join(end.stderr_tail))

    # --- The end --------------------------------------------------------------------------------------------------

    async def end(self, ending: Ending, *, tell: Callable[[str], None]) -> None:
        """Heals all faults if asked to, reads everything, and stops all nodes in order; reports phases to ``tell``.

        A failure on the way becomes the run's problem, and the rest is still done.
        """
        async with self._one_step:
            self._log.cause_id = CauseId("end")
            if ending is Ending.RESTORE:
                tell("restore everything, wait for leaders and full ISRs")
                await self._attempt("after everything was restored", self._restore)
            tell("read everything")
            await self._attempt("the final read", self._read_all)
            tell("stop the nodes")
            await self._attempt("the orderly stop", lambda: stop_nodes(self._target.faults))

    async def _attempt(self, phase: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        except (EmulatorError, grpc.aio.AioRpcError, OSError) as error:
            self.fail(f"{phase}: {error}")

    async def _restore(self) -> None:
        await restore_and_settle(self._target, self._layout.node_ids, more=self._player.repairs)

    async def _read_all(self) -> None:
        """Has a client process read every partition, as at the end of a run; its history is ``history.jsonl``."""
        partitions = tuple(sorted(self._target.image.partitions))
        if not partitions:
            return
        directory = self._order.path
        config = ClientConfig(
            history_path=str(directory / "history.jsonl"),
            control_port=await self._client_link.listen(),
            brokers=self._layout.broker_ids,
            session_timeout_ms=self._session_timeout_ms,
            partitions=partitions,
            producers=(),
            consumers=(),
        )
        client = await self._client_link.launch(self._cluster.supervisor, config, directory=directory)
        await self._client_link.read_all(self._cluster.direct_addresses(), timeout_ms=FINAL_READ_TIMEOUT_MS)
        await client.stop()
