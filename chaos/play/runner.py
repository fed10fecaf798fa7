"""Plays one scenario under one set of switches, and leaves a run directory.

A run always goes through the same phases: start, topics, steps, end, final read, orderly stop. A barrier that is
missed, a fault that cannot be played or a process that ends by itself stops the steps, not the phases after them, so
that the evidence is as whole as it can be; the run's *problem* then makes the verdict ``unknown`` at best.
"""

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

import grpc.aio

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.driver import MakeDriver
from laststand.chaos.play.ending import restore_and_settle
from laststand.chaos.play.recorded_plan import PlayedStep, write_plan
from laststand.chaos.play.run_directory import write_cluster_file
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.step_player import StepPlayer
from laststand.chaos.play.target import Target
from laststand.chaos.play.topics import create_topics
from laststand.chaos.play.waiting import StepError
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario import Ending, MissedStep, Step
from laststand.emulator.core import events
from laststand.emulator.core.errors import EmulatorError, causes_of
from laststand.emulator.core.types import CauseId
from laststand.emulator.plan import actions

READY_TIMEOUT_S: Final = 30.0
"""For all brokers to be registered and unfenced, and then for the topics to exist."""

DRAIN_TIMEOUT_MS: Final = 10_000
"""For producers to get answers once they send nothing new."""

FINAL_READ_TIMEOUT_MS: Final = 30_000

_LOG_FORMAT: Final = "[%(asctime)s] %(levelname)s %(message)s"


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """The progress of a run.

    Attributes:
        run: what distinguishes it from other runs that are played at the same time.
        step: counts from 1; 0 is before the steps, ``steps`` + 1 after them.

    """

    run: str
    step: int
    steps: int
    text: str
    seen: str | None


class Run:
    """One run.

    Attributes:
        problem: why its plan did not reach its end; ``None`` if it did, or if that is no problem.
        left_out: the first step that was left out, and why, if the scenario allows that; ``None`` if all steps were
            played.
        order: the order that it plays.
        target: the target of its steps, while they are played; ``None`` before and after.
        stopped: the reason of a cancellation, if the cancellation itself cannot carry it.
    """

    def __init__(self, order: RunOrder, *, make_driver: MakeDriver, on_status: Callable[[RunStatus], None]) -> None:
        self.problem: str | None = None
        self.left_out: str | None = None
        self.target: Target | None = None
        self.stopped: str | None = None
        self.order = order
        self._beside: StepPlayer | None = None
        self._acting = asyncio.Lock()
        self._asked_for = 0
        self._started = datetime.now(UTC)
        self._on_status = on_status
        self._played: list[PlayedStep] = []
        self._logger = _open_log(order.directory)
        self._driver = make_driver(order, logger=self._logger, on_problem=self._fail)

    async def play(self) -> None:
        """Plays the scenario to its end; afterwards nothing runs any more."""
        started_s = time.monotonic()
        self._write_cluster_file()
        try:
            await self._play_or_note_interrupt()
        except* (EmulatorError, grpc.aio.AioRpcError, OSError) as errors:
            self._fail("; ".join(str(error) for error in causes_of(errors)))
        finally:
            try:
                await self._complete_directory(duration_s=time.monotonic() - started_s)
            except OSError as error:
                self._fail(f"the run's record could not be completed: {error}")
            finally:
                _close_log(self._logger)

    async def _complete_directory(self, *, duration_s: float) -> None:
        """Writes the run's files; the driver comes last, because it records the written files."""
        order = self.order
        try:
            write_plan(
                order.directory / "plan.yaml",
                scenario_text=order.scenario.text,
                steps=self._played,
                era=order.era,
                switches=order.switches,
                properties=order.properties,
                seed=order.seed,
            )
            self._write_cluster_file(duration_s=duration_s)
        except OSError as error:
            self._fail(f"the run's record could not be completed: {error}")
        await self._driver.close(problem=self.problem)

    def _write_cluster_file(self, *, duration_s: float | None = None) -> None:
        order = self.order
        write_cluster_file(
            order.directory / "cluster.yaml",
            order.layout,
            era=order.era,
            changed=order.changed,
            scenario=order.scenario.name,
            seed=order.seed,
            driver=order.driver,
            started=self._started,
            duration_s=duration_s,
        )

    async def _play_or_note_interrupt(self) -> None:
        try:
            await self._play()
        except asyncio.CancelledError as cancelled:
            self._fail(str(cancelled) or self.stopped or "interrupted")
            raise

    # --- Phases ---------------------------------------------------------------------------------------------------

    async def _play(self) -> None:
        self._report(0, "start the cluster")
        async with self._driver.open() as target:
            player = StepPlayer(target=target, seed=self.order.seed, kafka_clients=self.order.scenario.kafka_clients)
            await self._prepare(target)
            self.target = target
            try:
                await self._play_steps(target, player)
            finally:
                async with self._acting:
                    self.target = None
            await self._end(target, player)

    async def _prepare(self, target: Target) -> None:
        scenario = self.order.scenario

        def unfenced() -> Observation:
            brokers = target.image.brokers
            missing = [b for b in scenario.broker_ids if b not in brokers or brokers[b].fenced]
            return Observation(reached=not missing, text=f"brokers {missing} are not unfenced")

        def created() -> Observation:
            missing = [str(partition) for partition in scenario.partitions if partition not in target.image.partitions]
            return Observation(reached=not missing, text=f"partitions {missing} do not exist")

        await target.wait(unfenced, timeout_s=READY_TIMEOUT_S)
        await create_topics(target.ask_controller, scenario.topics, chance=Random(f"{self.order.seed}:topics"))
        await target.wait(created, timeout_s=READY_TIMEOUT_S)
        await self._driver.start_work()

    async def _play_steps(self, target: Target, player: StepPlayer) -> None:
        numbered = enumerate(self.order.scenario.steps, start=1)
        left_out = 0
        for _, together in itertools.groupby(numbered, key=lambda each: each[1].together or each[0]):
            steps = tuple(together)
            left_out = left_out or player.left_out(steps[0][1])
            if left_out:
                player.leave_out(len(steps))
                left_out -= len(steps)
                continue
            if not await self._play_at_once(target, player, steps):
                return

    async def _play_at_once(self, target: Target, player: StepPlayer, steps: Sequence[tuple[int, Step]]) -> bool:
        """Plays one step, or several in parallel; returns whether all were completed."""
        for number, step in steps:
            self._report(number, step.text)
        cause_id = CauseId(f"step-{steps[0][0]}")
        is_waiting = all(isinstance(step.action, conditions.Until) for _, step in steps)
        async with contextlib.nullcontext() if is_waiting else self._acting:
            if not (is_waiting and self._acting.locked()):
                target.cause_id = cause_id
            playing = (player.play(number, step) for number, step in steps)
            outcomes = await asyncio.gather(*playing, return_exceptions=True)
        for (number, step), played in zip(steps, outcomes, strict=True):
            if isinstance(played, PlayedStep):
                self._record_step(target, number, played, cause_id=cause_id)
                self._report(number, step.text, seen=played.outcome.seen)
            elif isinstance(played, StepError) and self._may_be_missed(step):
                self._leave_out(target, number, step, played, cause_id=cause_id)
            elif isinstance(played, EmulatorError | grpc.aio.AioRpcError):
                self._fail(f"step {number} {step.text}: {played}")
            else:
                raise played
        return all(isinstance(played, PlayedStep) for played in outcomes)

    def _may_be_missed(self, step: Step) -> bool:
        is_missed = isinstance(step.action, conditions.Until | actions.AdminAction)
        return is_missed and self.order.scenario.missed_step is MissedStep.END

    def _leave_out(self, target: Target, number: int, step: Step, error: StepError, *, cause_id: CauseId) -> None:
        """Records that a step was missed, and that the steps after it are left out."""
        total = len(self.order.scenario.steps)
        self.left_out = self.left_out or f"from step {number} of {total} on: {step.text}: {error}"
        seen = f"missed, so that the steps after it are left out: {error}"
        target.note(events.StepReached(cause_id=cause_id, step=number, text=step.text, seen=seen))
        self._report(number, step.text, seen=seen)

    def _record_step(self, target: Target, number: int, played: PlayedStep, *, cause_id: CauseId) -> None:
        self._played.append(played)
        target.note(played.reached(number, cause_id=cause_id))

    async def play_beside(self, step: Step) -> PlayedStep:
        """Plays a step that a user requests while the plan's steps are played, and records it among them.

        It waits for an action of the plan to be done, not for a state that the plan waits for. Its number follows those
        of the plan's steps.

        Raises:
            StepError: the steps are not being played, or this step was not completed.
            EmulatorError: the step could not be completed.
        """
        async with self._acting:
            if self.target is None:
                raise StepError("the steps of the plan are not being played")
            if self._beside is None:
                self._beside = StepPlayer(
                    target=self.target, seed=self.order.seed, kafka_clients=self.order.scenario.kafka_clients
                )
            self._asked_for += 1
            number = len(self.order.scenario.steps) + self._asked_for
            self.target.cause_id = CauseId(f"step-{number}")
            played = await self._beside.play(number, step)
            self._record_step(self.target, number, played, cause_id=self.target.cause_id)
        self._logger.info("era=%s step=%d %s -> %s", self.order.era, number, step.text, played.outcome.seen)
        return played

    async def _end(self, target: Target, player: StepPlayer) -> None:
        after = len(self.order.scenario.steps) + 1
        target.cause_id = CauseId("end")
        self._report(after, "stop the workload")
        await self._driver.stop_work(timeout_ms=DRAIN_TIMEOUT_MS)
        if self.order.scenario.end is Ending.RESTORE:
            self._report(after, "restore everything, wait for leaders and full ISRs")
            try:
                nodes = (*self.order.scenario.controller_ids, *self.order.scenario.broker_ids)
                more = () if self._beside is None else self._beside.repairs
                await restore_and_settle(target, nodes, more=(*player.repairs, *more))
            except EmulatorError as error:
                self._fail(f"after everything was restored: {error}")
        scenario = self.order.scenario
        made = (each for each in scenario.made_partitions if each in target.image.partitions)
        if partitions := (*scenario.partitions, *made):
            self._report(after, "read everything")
            await self._driver.read_all(partitions, timeout_ms=FINAL_READ_TIMEOUT_MS)
        self._report(after, "stop the cluster")
        target.note(events.ShutdownBegan(cause_id=target.cause_id))
        await self._driver.stop()
        self._report(after, "stop the cluster", seen="stopped")

    # --- Mishaps and news -----------------------------------------------------------------------------------------

    def _fail(self, problem: str) -> None:
        self._logger.error("%s", problem)
        self.problem = self.problem or problem

    def _report(self, step: int, text: str, *, seen: str | None = None) -> None:
        self._logger.info("era=%s step=%d %s%s", self.order.era, step, text, "" if seen is None else f" -> {seen}")
        status = RunStatus(run=self.order.name, step=step, steps=len(self.order.scenario.steps), text=text, seen=seen)
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
