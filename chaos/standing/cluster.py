"""A standing cluster inside its supervisor: its processes, the steps that are played on it, and their record.

It goes through the phases of a run, with a pause of any length instead of a run's steps: start, *stand*, end, final
read, orderly stop. Commands send steps one at a time, which leave the same record as a scenario's. A cluster that was
stopped, or whose supervisor died, is started again by another supervisor, which continues the record.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

import grpc.aio
import msgspec

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.ending import repairs, restore_and_settle
from laststand.chaos.play.recorded_plan import PlayedStep, recorded_steps, write_plan
from laststand.chaos.play.run_directory import write_cluster_file
from laststand.chaos.play.step_player import StepPlayer
from laststand.chaos.play.waiting import ChangeSignal
from laststand.chaos.process.client_link import ClientLink
from laststand.chaos.process.ending import note_crash, stop_nodes
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.hosts import make_host
from laststand.chaos.process.opening import open_target
from laststand.chaos.process.single_step import nothing_to_do, step_of
from laststand.chaos.process.target import ProcessTarget
from laststand.chaos.scenario.scenario import Ending
from laststand.chaos.standing.clients import ClientRegister, complete_histories
from laststand.chaos.standing.order import STANDING, StandingOrder
from laststand.chaos.standing.resumption import find_leftovers, find_unrecorded
from laststand.chaos.standing.state import Ended, StandingState, new_state, read_state, write_state
from laststand.chaos.standing.status import StatusReport, ZooKeeperStatus, status_report
from laststand.emulator.client.config import ClientConfig
from laststand.emulator.client.history import HISTORY_FILE
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import events, messages
from laststand.emulator.core.errors import EmulatorError, ErrorCode
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.plan.actions import (
    ActionTemplate,
    Administration,
    CreateTopic,
    Kill,
    Start,
    Stop,
    effective,
    no_op,
)
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.plan.requests import existing_topic

READY_TIMEOUT_S: Final = 60.0
"""For all brokers to be registered and unfenced."""

FINAL_READ_TIMEOUT_MS: Final = 30_000

PLAN_FILE: Final = "plan.yaml"
"""The plan of all actions on the cluster, over all its supervisors."""

_RECORD_TIMEOUT_S: Final = 5.0
"""For what the controller answered to be seen in its metadata."""

_log: Final = logging.getLogger(__name__)


class StandingCluster:
    """Use it as an asynchronous context manager: inside, the cluster serves; leaving it kills what still runs.

    Attributes:
        problem: the reason why the verdict will be ``unknown``; ``None`` if there is none.
        clients: producers and consumers at work.
        view: address of the live view; ``None`` without one.
    """

    def __init__(self, order: StandingOrder) -> None:
        """Starts nothing yet.

        Raises:
            ConfigError: a property is unknown or has a wrong value, or the earlier supervisor's files cannot be read.
            ClientAtWorkError: a client of the earlier supervisor has not ended yet.
        """
        self._before = read_state(order.path)
        self._started_s = time.monotonic()
        self._stood_before_s = 0.0 if self._before is None else self._before.stood_s
        self._leftovers = find_leftovers(order.path)
        self.view: str | None = None
        self.problem = None if self._before is None else self._before.doubt()
        self._complete_histories(order)
        self.clients = ClientRegister(order.path)
        self._order = order
        self._properties = order.node_properties()
        self._session_timeout_ms = self._properties.broker_session_timeout_ms
        self._layout = order.layout(self._before)
        self._changes = ChangeSignal()
        self._log = HarnessLog(
            order.path / "events",
            run=self._layout.run,
            wall_time_ns=time.time_ns(),
            driver=order.driver,
            ending=None,
            incarnation=self._leftovers.harnesses,
            kafka_clients=self._layout.kafka_clients,
            standby_controllers=self._layout.standby_ids,
        )
        self._cluster = self._make_cluster()
        if order.started_as is not None:
            self._cluster.eras.update(dict.fromkeys(self._layout.node_ids, order.started_as))
        self._client_link = ClientLink(on_counts=self._changes.change)
        self._one_step = asyncio.Lock()
        self._is_starting = True
        self._ended: Ended | None = None
        self._earlier_steps = recorded_steps(order.path / PLAN_FILE)
        self._played: list[PlayedStep] = []
        self._steps = 0 if self._before is None else self._before.steps
        self._stack = AsyncExitStack()
        self._state: StandingState
        self._target: ProcessTarget
        self._player: StepPlayer

    def _make_cluster(self) -> ProcessCluster:
        return ProcessCluster(
            self._layout,
            on_start=self._log.started,
            on_unexpected_end=self._notice_crash,
            host=make_host(self._order.driver, project=self._order.project),
        )

    def _open_target(self) -> AbstractAsyncContextManager[ProcessTarget]:
        return open_target(
            self._cluster,
            client=self._client_link,
            log=self._log,
            changes=self._changes,
            session_timeout_ms=self._session_timeout_ms,
        )

    def _complete_histories(self, order: StandingOrder) -> None:
        """Completes the histories of clients whose supervisor died."""
        for history_file in self._leftovers.histories:
            (order.path / history_file).touch()
        unknown = complete_histories(order.path)
        if unknown:
            _log.warning("clients of the supervisor before went away, sends with unknown outcome: %d", unknown)

    async def __aenter__(self) -> "StandingCluster":
        """Starts every process and waits until every broker serves.

        Raises:
            EmulatorError: a process did not start.
            StepError: a broker did not come up in time.
        """
        async with AsyncExitStack() as stack:
            stack.callback(self._close_log)
            await stack.enter_async_context(self._cluster)
            self._state = new_state(
                incarnation=self._leftovers.harnesses,
                cluster_id=self._cluster.cluster_id,
                ports=self._cluster.ports(),
                metrics=self._cluster.metrics_ports(),
                before=self._before,
            )
            self._remember()
            self._note_unrecorded()
            self._note_deaths()
            self._write_cluster_file()
            stack.push_async_callback(self._client_link.close)
            await self._cluster.start()
            self._remember()
            self._target = await stack.enter_async_context(self._open_target())
            self._player = StepPlayer(
                target=self._target, seed=self._order.seed, kafka_clients=self._layout.kafka_clients
            )
            await self._changes.wait(self._is_serving, timeout_s=READY_TIMEOUT_S)
            if self._before is not None:
                running = tuple(node_id for node_id in self._layout.node_ids if self._cluster.is_running(node_id))
                self._record_step(PlayedStep(action=Start(nodes=running), outcome=effective("all serve")))
            self._is_starting = False
            self._stack = stack.pop_all()
        return self

    def _write_cluster_file(self, *, duration_s: float | None = None) -> None:
        write_cluster_file(
            self._order.path / "cluster.yaml",
            self._layout,
            era=self._order.era,
            changed=self._order.changed,
            scenario=STANDING,
            seed=self._order.seed,
            driver=self._order.driver,
            started=self._state.began,
            duration_s=duration_s,
            metrics=self._cluster.metrics_addresses(),
        )

    def _note_unrecorded(self) -> None:
        """Records processes that ended before this harness began: containers may have been restarted without it.

        A process that did not stop in order is recorded as ended unexpectedly.
        """
        for process in find_unrecorded(self._order.path, self._leftovers.started):
            node_id, incarnation = process.node_id, process.incarnation
            if self._cluster.is_running(node_id) and incarnation == self._cluster.incarnation(node_id):
                continue  # it is on record with the others that run
            end = events.IncarnationEnd.STOPPED if process.has_stopped else events.IncarnationEnd.UNEXPECTED
            self._log.started(node_id, incarnation)
            self._log.ended(node_id, incarnation, end, exit_code=None, metadata_offset=None)

    def _note_deaths(self) -> None:
        """Records that processes were killed together with their supervisor."""
        for node_id, incarnation in self._leftovers.processes:
            self._log.ended(node_id, incarnation, events.IncarnationEnd.KILLED, exit_code=None, metadata_offset=None)
        dead = tuple(node_id for node_id, _ in self._leftovers.processes)
        if dead:
            self._record_step(PlayedStep(action=Kill(nodes=dead), outcome=effective("died with the supervisor")))

    async def __aexit__(self, *_: object) -> None:
        """Kills what still runs and closes the log."""
        await self._stack.aclose()

    def _close_log(self) -> None:
        is_stopped = self._ended is Ended.STOPPED
        if self._is_starting and self._before is None:
            self.fail("the cluster did not come up")
        if not self._is_starting:
            self._remember()
            self._write_cluster_file(duration_s=self._state.stood_s)
        if is_stopped or (self._is_starting and self._before is not None):
            self._log.suspend()
        else:
            self._log.close(problem=self.problem)

    def _remember(self, step: str | None = None) -> None:
        """Writes the state that the next supervisor needs."""
        self._state = msgspec.structs.replace(
            self._state,
            kafka_ports=self._cluster.kafka_ports(),
            stood_s=self._stood_before_s + time.monotonic() - self._started_s,
            steps=self._steps,
            step=step,
            problem=self.problem,
            ended=self._ended,
        )
        write_state(self._order.path, self._state)

    def _is_serving(self) -> Observation:
        brokers = self._target.image.brokers
        missing = [b for b in self._layout.broker_ids if b not in brokers or brokers[b].fenced]
        return Observation(reached=not missing, text=f"brokers {missing} are not unfenced")

    # --- While it stands ------------------------------------------------------------------------------------------

    @property
    def session_timeout_ms(self) -> int:
        """The session timeout of the brokers."""
        return self._session_timeout_ms

    def status(self) -> StatusReport:
        """Returns the status of nodes, partitions and faults."""
        return status_report(
            self._target,
            era=self._order.era_label,
            switches=self._order.rules(),
            properties=self._properties,
            clients=self.clients.connected,
            problem=self.problem,
            view=self.view,
            zookeeper=self._zookeeper_status(),
        )

    def _zookeeper_status(self) -> ZooKeeperStatus | None:
        """Returns the controller's state in a ZooKeeper server: ``None``, as there is no server."""
        return None

    def announce(self, given: events.OrderGiven) -> None:
        """Records an order that an administrator is about to send."""
        self._log.note(given)

    async def ask_controller(self, request: messages.Request) -> messages.Response:
        """Carries out a request of an administrator that cannot reach the controller directly.

        Raises:
            EmulatorError: no answer came.
        """
        return await self._target.ask_controller(request)

    @property
    def target(self) -> ProcessTarget:
        """The processes, as a target of steps."""
        return self._target

    def client_addresses(self) -> dict[int, str]:
        """Returns the addresses at which a client reaches each node: those of the proxies, if there are any."""
        return self._cluster.addresses_for(CLIENT)

    async def play(self, wanted: str | ActionTemplate) -> PlayedStep:
        """Plays one step, given in the form of a scenario file or as an action; steps take turns.

        Raises:
            UnplayableStepError: this cluster cannot play the step; nothing was done.
            StepError: a state was not reached in time, or no node has the role that the step names.
            EmulatorError: the step could not be completed.
        """
        async with self._one_step:
            step = step_of(wanted, self._target, driver=self._order.driver)
            reason = nothing_to_do(step.action, self._target)
            if reason is not None:
                return PlayedStep(action=step.action, outcome=no_op(reason))
            number = self._steps + 1
            self._log.cause_id = CauseId(f"step-{number}")
            _log.info("step=%d %s", number, step.text)
            self._remember(step.text)
            try:
                played = await self._player.play(number, step)
                self._record_step(played)
            finally:
                self._remember()
            return played

    async def record(self, actions: Sequence[Administration], seen: str) -> None:
        """Records a request that an administrator sent to the controller directly, with its response.

        A refused topic whose replicas the controller would have chosen is left out: it cannot be played.
        """
        async with self._one_step:
            for action in actions:
                if isinstance(action, CreateTopic) and not action.topic.replicas and seen != ErrorCode.NONE.name:
                    continue
                self._log.cause_id = CauseId(f"step-{self._steps + 1}")
                placed = await self._with_replicas(action)
                self._record_step(PlayedStep(action=placed, outcome=effective(seen)))

    async def _with_replicas(self, action: Administration) -> Administration:
        """Returns an action in which a topic that was created has the replicas that the controller gave it."""
        if not isinstance(action, CreateTopic) or action.topic.replicas:
            return action
        name, image = action.topic.name, self._target.image

        def created() -> Observation:
            return Observation(reached=name in image.topics, text=f"topic {name} does not exist")

        await self._target.wait(created, timeout_s=_RECORD_TIMEOUT_S)
        return CreateTopic(topic=existing_topic(name, image))

    def _record_step(self, played: PlayedStep) -> None:
        self._played.append(played)
        self._steps += 1
        self._log.note(played.reached(self._steps, cause_id=self._log.cause_id))
        _log.info("step=%d %s -> %s", self._steps, played.text, played.outcome.seen)
        write_plan(
            self._order.path / PLAN_FILE,
            scenario_text=self._order.scenario_text(),
            steps=self._played,
            era=self._order.era,
            switches=self._order.rules(),
            properties=tuple(self._order.properties.items()),
            seed=self._order.seed,
            earlier=self._earlier_steps,
        )

    def open_client(self, verb: str) -> str:
        """Registers and records a producer or consumer; returns its name."""
        name = self.clients.open(verb)
        history_file = str(self.clients.history_path(name).relative_to(self._order.path))
        self._log.note(events.ClientStarted(cause_id=self._log.cause_id, process=name, history_file=history_file))
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

    async def end(self, ending: Ending, *, report: Callable[[str], None]) -> None:
        """Heals all faults if asked to, reads everything, and stops all nodes in order; reports each phase.

        A failure on the way becomes the run's problem, and the rest is still done.
        """
        async with self._one_step:
            self._log.cause_id = CauseId("end")
            if ending is Ending.RESTORE:
                report("restore everything, wait for leaders and full ISRs")
                await self._attempt("after everything was restored", self._restore)
            report("read everything")
            await self._attempt("the final read", self._read_all)
            report("stop the nodes")
            await self._attempt("the orderly stop", lambda: stop_nodes(self._target))
            self._ended = Ended.DOWN

    async def stop(self, *, report: Callable[[str], None]) -> None:
        """Stops all processes in order, so that another supervisor can start them again; reports each phase.

        Links are healed and paused nodes resumed first: a controlled shutdown needs the controller.
        """
        async with self._one_step:
            self._log.cause_id = CauseId("stop")
            report("mend links, resume what is paused")
            await self._attempt("before the stop", self._mend)
            layout = self._layout
            running = tuple(node_id for node_id in layout.node_ids if self._cluster.is_running(node_id))
            report("stop the nodes")
            await self._attempt("the orderly stop", lambda: stop_nodes(self._target))
            for nodes in _brokers_then_controllers(running, layout.controller_ids):
                self._record_step(PlayedStep(action=Stop(nodes=nodes), outcome=effective("in order")))
            self._ended = Ended.STOPPED

    async def _mend(self) -> None:
        for action in [*repairs(self._target, self._layout.node_ids), *self._player.repairs]:
            if not isinstance(action, Start):
                await self._target.perform(action)

    async def _attempt(self, phase: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        except (EmulatorError, grpc.aio.AioRpcError, OSError) as error:
            self.fail(f"{phase}: {error}")

    async def _restore(self) -> None:
        await restore_and_settle(self._target, self._layout.node_ids, more=self._player.repairs)

    async def _read_all(self) -> None:
        """Has a client process read every partition, as at the end of a run; its history is ``history.packed``."""
        partitions = tuple(sorted(self._target.image.partitions))
        if not partitions:
            return
        directory = self._order.path
        config = ClientConfig(
            history_path=str(directory / HISTORY_FILE),
            control_port=await self._client_link.listen(self._cluster.token),
            token_file=str(self._layout.token_file),
            brokers=self._layout.broker_ids,
            session_timeout_ms=self._session_timeout_ms,
            producers=(),
            consumers=(),
        )
        client = await self._client_link.launch(self._cluster.supervisor, config, directory=directory)
        await self._client_link.read_all(partitions, self._cluster.direct_addresses(), timeout_ms=FINAL_READ_TIMEOUT_MS)
        await client.stop()


def _brokers_then_controllers(
    nodes: tuple[NodeId, ...], controller_ids: tuple[NodeId, ...]
) -> tuple[tuple[NodeId, ...], ...]:
    """Returns the groups in which nodes stop in order; none of them is empty."""
    brokers = tuple(node for node in nodes if node not in controller_ids)
    return tuple(group for group in (brokers, tuple(node for node in nodes if node in controller_ids)) if group)
