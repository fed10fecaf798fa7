"""Plays the cells of a suite, several at a time, and has them judged in batches while others play."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, TypeAlias

from laststand.chaos.campaign import held_against
from laststand.chaos.drivers import make_driver
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.runner import Run, RunStatus
from laststand.chaos.suite.cells import Cell
from laststand.chaos.suite.results import CellResult, CellStatus, judged_result, unplayed_result
from laststand.chaos.suite.virtual_time import VirtualTimePlayers
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.report.failure_picture import failure_picture
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verdict.report import Expected, VerdictReport

Judge: TypeAlias = Callable[[Sequence[Path]], Sequence[VerdictReport]]
"""Judges run directories; called in a thread of its own, one call at a time."""

MakeOrder: TypeAlias = Callable[[Cell], RunOrder]
"""Makes a cell's run directory, and says what to play in it."""

BATCH: Final = 8
"""Runs that are worth a Spark job while others play."""


class Keep(Enum):
    """The run directories that stay."""

    ALL = "all"
    FAILURES = "failures"
    NONE = "none"


class Listener:
    """A listener for the progress of a suite; this one ignores it."""

    def began(self, cell: Cell) -> None:
        """A cell is played from now on."""

    def status(self, cell: Cell, status: RunStatus) -> None:
        """A step of a cell began or ended."""

    def played(self, cell: Cell) -> None:
        """Notes that a cell was played; it is not judged yet."""

    def judged(self, result: CellResult) -> None:
        """A cell has a result."""


@dataclass(frozen=True, kw_only=True)
class SuiteSettings:
    """The settings of playing a suite.

    Attributes:
        jobs: number of cells that are played at a time.
        timeout_s: a cell that takes longer is stopped, and its verdict is unknown at best; ``None`` for no limit.
        stops_at_failure: whether no further cell is begun once one has not passed.
        keep: which run directories stay.
    """

    jobs: int
    timeout_s: float | None = None
    stops_at_failure: bool = False
    keep: Keep = Keep.ALL


@dataclass(frozen=True, kw_only=True)
class _Played:
    """A cell that was played and is not judged yet."""

    cell: Cell
    order: RunOrder
    left_out: str | None


class SuitePlayer:
    """Plays one suite.

    Attributes:
        results: of the cells that are judged or skipped, in the order of completion.
        reports: the verdicts of these cells, by the cells' names.
    """

    def __init__(
        self, cells: Iterator[Cell], *, settings: SuiteSettings, make_order: MakeOrder, judge: Judge, listener: Listener
    ) -> None:
        self.results: dict[str, CellResult] = {}
        self.reports: dict[str, VerdictReport] = {}
        self._cells = cells
        self._settings = settings
        self._make_order = make_order
        self._judge = judge
        self._listener = listener
        self._begun: list[Cell] = []
        self._waiting: list[_Played] = []
        self._playing = 0
        self._unjudged = 0
        self._changed = asyncio.Condition()
        self._is_stopped = False
        self._virtual_time = VirtualTimePlayers(min(settings.jobs, os.cpu_count() or 1))

    async def play(self) -> None:
        """Plays and judges everything.

        Raises:
            ExceptionGroup: no further cell could be played, or no verdict was obtained; ``results`` stays valid.
        """
        self._playing = self._settings.jobs
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(self._settings.jobs):
                    tasks.create_task(self._play_cells(), name=f"player {number}")
                tasks.create_task(self._judge_cells(), name="judge")
        finally:
            self._virtual_time.close()

    def all_results(self) -> tuple[CellResult, ...]:
        """Returns a result for each cell that was begun, in order; a cell without a verdict counts as not played."""
        reason = "the suite ended before its verdict"
        return tuple(
            self.results.get(cell.name) or unplayed_result(cell, status=CellStatus.NOT_PLAYED, reason=reason)
            for cell in self._begun
        )

    # --- Playing --------------------------------------------------------------------------------------------------

    async def _play_cells(self) -> None:
        while (cell := await self._next_cell()) is not None:
            self._begun.append(cell)
            if cell.skipped is not None:
                self._add(unplayed_result(cell, status=CellStatus.SKIPPED, reason=cell.skipped))
                continue
            order = self._make_order(cell)
            self._listener.began(cell)
            self._unjudged += 1
            left_out = await self._play_cell(cell, order)
            self._listener.played(cell)
            async with self._changed:
                self._waiting.append(_Played(cell=cell, order=order, left_out=left_out))
                self._changed.notify_all()
        async with self._changed:
            self._playing -= 1
            self._changed.notify_all()

    async def _next_cell(self) -> Cell | None:
        """Returns the next cell; ``None`` if none is to be begun.

        If a failure ends the suite, no further cell begins while a batch of played cells waits for its verdicts.
        """
        async with self._changed:
            await self._changed.wait_for(self._may_begin)
        return None if self._is_stopped else next(self._cells, None)

    def _may_begin(self) -> bool:
        return not self._settings.stops_at_failure or self._is_stopped or self._unjudged < self._settings.jobs + BATCH

    async def _play_cell(self, cell: Cell, order: RunOrder) -> str | None:
        """Plays a cell; returns the first step that was left out, and why, if any was."""
        if order.driver is DriverName.SIMULATOR:
            return await self._virtual_time.play(order, timeout_s=self._settings.timeout_s)
        run = Run(order, make_driver=make_driver, on_status=lambda status: self._listener.status(cell, status))
        playing = asyncio.create_task(run.play(), name=cell.name)
        timeout_s = self._settings.timeout_s
        is_late = False

        def stop() -> None:
            nonlocal is_late
            is_late = playing.cancel(f"stopped after {timeout_s:g} s")

        limit = None if timeout_s is None else asyncio.get_running_loop().call_later(timeout_s, stop)
        try:
            await playing
        except asyncio.CancelledError:
            if not is_late:
                raise
        finally:
            if limit is not None:
                limit.cancel()
        return run.left_out

    # --- Judging --------------------------------------------------------------------------------------------------

    async def _judge_cells(self) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(self._is_batch_ready)
                batch, self._waiting = self._waiting, []
            if not batch:
                return
            reports = await asyncio.to_thread(self._judge, [played.order.directory for played in batch])
            for played, report in zip(batch, reports, strict=True):
                self._settle(played, report)
            async with self._changed:
                self._unjudged -= len(batch)
                self._changed.notify_all()

    def _is_batch_ready(self) -> bool:
        size = 1 if self._settings.stops_at_failure else BATCH
        return not self._playing or len(self._waiting) >= size

    def _settle(self, played: _Played, report: VerdictReport) -> None:
        cell, directory = played.cell, played.order.directory
        final = held_against(played.order, report)
        self.reports[cell.name] = final
        picture = failure_picture(final, directory)
        write_verdict(final, directory, picture=picture)
        is_kept = self._is_kept(final)
        result = judged_result(
            cell,
            final,
            directory=directory if is_kept else None,
            picture=picture,
            left_out=played.left_out,
        )
        self._add(result)
        if not is_kept:
            shutil.rmtree(directory)
        if self._settings.stops_at_failure and final.outcome is not Expected.MET:
            self._is_stopped = True

    def _is_kept(self, report: VerdictReport) -> bool:
        if self._settings.keep is Keep.FAILURES:
            return report.outcome is not Expected.MET
        return self._settings.keep is Keep.ALL

    def _add(self, result: CellResult) -> None:
        self.results[result.name] = result
        self._listener.judged(result)
