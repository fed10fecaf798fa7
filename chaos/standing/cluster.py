"""A standing cluster from inside its supervisor: processes, what is done to them, and the record of all of it.

It goes through the phases of a run, with a pause of any length where a run has its steps: start, *stand*, end, final
read, orderly stop. Steps come one at a time from whoever asks, and leave the same record as a scenario's.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Final

import grpc.aio

from chaos.barriers import Sight
from chaos.client_link import ClientLink
from chaos.ending import note_crash, restore, settled, stop_nodes
from chaos.faults.stage import Stage
from chaos.harness_log import HarnessLog
from chaos.plan import PlayedStep
from chaos.process_scene import ProcessScene, open_scene
from chaos.run_directory import write_cluster_file
from chaos.scenario import Ending
from chaos.standing.clients import ClientRegister
from chaos.standing.order import STANDING, StandingOrder
from chaos.standing.status import StatusReport, look_around
from chaos.standing.steps import nothing_to_do, read_step
from chaos.step_player import StepPlayer
from chaos.waiting import Lookout, Missed
from emulator.client.config import ClientConfig
from emulator.cluster.child import ProcessEnd
from emulator.cluster.process_cluster import CLIENT_NAME, ProcessCluster
from emulator.core.errors import EmulatorError
from emulator.core.events import ClientStarted, StepReached
from emulator.core.types import CauseId

READY_TIMEOUT_S: Final = 60.0
"""For all brokers to be registered and unfenced."""

SETTLE_TIMEOUT_S: Final = 45.0
"""For leaders and full ISRs after everything was restored."""

FINAL_READ_TIMEOUT_MS: Final = 30_000

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
        self._lookout = Lookout()
        self._log = HarnessLog(
            order.path / "events" / "harness-0.jsonl", run=self._layout.run, wall_time_ns=time.time_ns()
        )
        self._cluster = ProcessCluster(self._layout, on_start=self._log.started, on_unexpected_end=self._notice_crash)
        self._client_link = ClientLink(on_progress=self._lookout.change)
        self._one_step = asyncio.Lock()
        self._is_starting = True
        self._steps = 0
        self._stack = AsyncExitStack()
        self._stage: Stage
        self._scene: ProcessScene
        self._player: StepPlayer

    async def __aenter__(self) -> "StandingCluster":
        """Starts every process and waits until every broker serves.

        Raises:
            EmulatorError: a process did not start.
            Missed: a broker did not come up in time.
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
            self._scene = await stack.enter_async_context(
                open_scene(
                    self._cluster,
                    client=self._client_link,
                    log=self._log,
                    lookout=self._lookout,
                    session_timeout_ms=self._session_timeout_ms,
                )
            )
            self._stage = self._scene.stage
            self._player = StepPlayer(scene=self._scene, seed=self._order.seed)
            await self._lookout.wait(self._is_serving, timeout_s=READY_TIMEOUT_S)
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

    def _is_serving(self) -> Sight:
        brokers = self._stage.watch.image.brokers
        missing = [b for b in self._layout.broker_ids if b not in brokers or brokers[b].fenced]
        return Sight(reached=not missing, text=f"brokers {missing} are not unfenced")

    # --- While it stands ------------------------------------------------------------------------------------------

    @property
    def session_timeout_ms(self) -> int:
        """Of the brokers."""
        return self._session_timeout_ms

    def status(self) -> StatusReport:
        """Returns how everything is now."""
        return look_around(
            self._stage,
            era=self._order.era,
            properties=self._properties,
            clients=self.clients.connected,
            problem=self.problem,
        )

    def client_addresses(self) -> dict[int, str]:
        """Returns where a client reaches each node: through the proxies, where there are any."""
        return self._cluster.addresses_for(CLIENT_NAME)

    async def play(self, text: str) -> tuple[PlayedStep, bool]:
        """Plays one step, as a scenario file writes it; steps take turns.

        Returns:
            What was played, and whether it changed or reached anything.

        Raises:
            UnplayableStep: it is no step for this cluster; nothing was done.
            Missed: a state was not reached in time, or nobody has the role that the step names.
            EmulatorError: it could not be played to its end.
        """
        async with self._one_step:
            step = read_step(text, self._stage)
            reason = nothing_to_do(step.action, self._stage)
            if reason is not None:
                return PlayedStep(text=step.text, seen=f"no-op: {reason}"), False
            self._steps += 1
            self._log.cause_id = CauseId(f"step-{self._steps}")
            _log.info("step=%d %s", self._steps, step.text)
            played = await self._player.play(self._steps, step)
            self._log.note(
                StepReached(cause_id=self._log.cause_id, step=self._steps, text=played.text, seen=played.seen)
            )
            _log.info("step=%d %s -> %s", self._steps, played.text, played.seen)
            return played, not played.seen.startswith("no-op")

    def open_client(self, verb: str) -> str:
        """Lets a producer or consumer in, which is then on record; returns its name."""
        name = self.clients.open(verb)
        history_file = str(self.clients.history_path(name).relative_to(self._order.path))
        self._log.note(ClientStarted(cause_id=self._log.cause_id, process=name, history_file=history_file))
        return name

    def client_gone(self, name: str) -> None:
        """A client went away without a word."""
        unknown = self.clients.bury(name)
        _log.warning("client=%s went away, sends with unknown outcome: %d", name, unknown)

    def fail(self, problem: str) -> None:
        """Something happened that leaves the evidence in doubt; the first such thing counts."""
        _log.error("%s", problem)
        self.problem = self.problem or problem

    def _notice_crash(self, name: str, end: ProcessEnd) -> None:
        what = note_crash(self._cluster, self._log, name, end)
        if self._is_starting:
            self._lookout.fail(what)
        self.fail(what)
        if end.stderr_tail:
            _log.error("last lines of %s:\n%s", name, "\n".join(end.stderr_tail))

    # --- The end --------------------------------------------------------------------------------------------------

    async def end(self, ending: Ending, *, tell: Callable[[str], None]) -> None:
        """Mends what is broken if asked to, reads everything, and stops all nodes in order; ``tell`` hears of it.

        What goes wrong on the way becomes the run's problem, and the rest is still done.
        """
        async with self._one_step:
            self._log.cause_id = CauseId("end")
            if ending is Ending.RESTORE:
                tell("restore everything, wait for leaders and full ISRs")
                await self._attempt("after everything was restored", self._restore)
            tell("read everything")
            await self._attempt("the final read", self._read_all)
            tell("stop the nodes")
            await self._attempt("the orderly stop", lambda: stop_nodes(self._stage))

    async def _attempt(self, phase: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        except (EmulatorError, grpc.aio.AioRpcError, OSError, Missed) as error:
            self.fail(f"{phase}: {error}")

    async def _restore(self) -> None:
        await restore(self._scene, self._player, self._layout.node_ids)
        await self._lookout.wait(lambda: settled(self._scene.image), timeout_s=SETTLE_TIMEOUT_S)

    async def _read_all(self) -> None:
        """Has a client process read every partition, as at the end of a run; its history is ``history.jsonl``."""
        partitions = tuple(sorted(self._stage.watch.image.partitions))
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
