"""Serves the live view of runs while they are played."""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from laststand.chaos.play.recorded_plan import PlayedStep
from laststand.chaos.play.runner import Run
from laststand.chaos.play.waiting import StepError
from laststand.chaos.process.single_step import nothing_to_do, step_of
from laststand.chaos.process.stage import ProcessStage
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.live.server import LiveView
from laststand.emulator.plan import actions


@contextlib.asynccontextmanager
async def view_of(runs: Sequence[Run], *, on_address: Callable[[str], None]) -> AsyncIterator[None]:
    """Serves a page with runs on processes as long as the context lasts; calls ``on_address`` with its address.

    Raises:
        OSError: the page cannot be served.
    """
    stages = [_stage(run) for run in runs]
    async with LiveView(stages, title=runs[0].order.scenario.name) as view:
        on_address(view.address)
        yield
        await view.end("the run is over: its report is in the run directory")


def _stage(run: Run) -> ProcessStage:
    order = run.order

    def target() -> ProcessTarget | None:
        return run.target if isinstance(run.target, ProcessTarget) else None

    async def play(text: str) -> PlayedStep:
        processes = target()
        if processes is None:
            raise StepError("the steps of the plan are not being played")
        step = step_of(text, processes, driver=order.driver)
        idle = nothing_to_do(step.action, processes)
        if idle is not None:
            return PlayedStep(action=step.action, outcome=actions.no_op(idle))
        return await run.play_beside(step)

    return ProcessStage(
        name=order.scenario.name,
        era=order.name,
        directory=order.directory,
        driver=order.driver,
        target=target,
        play=play,
    )
