"""Plays runs and judges them, for ``run`` and ``replay``. Every error is reported in one clear line."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.output.output import Output
from laststand.cli.output.pictures import leave_reports
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.failure import CommandFailedError
from laststand.cli.program.user_error import UserError
from laststand.emulator.core.errors import EmulatorError, causes_of
from laststand.emulator.verification.spark.executors import ExecutorsError

if TYPE_CHECKING:
    from laststand.chaos.campaign import EraResult, Watch
    from laststand.chaos.play.run_order import RunOrder
    from laststand.chaos.play.runner import Run
    from laststand.chaos.scenario.scenario import Scenario
    from laststand.cli.output.progress import Progress
    from laststand.emulator.plan.drivers import DriverName
    from laststand.emulator.verification.judges import JudgeName

view_option = click.option(
    "--view", "is_viewed", is_flag=True, help="Serve a live page on loopback while it is played, and print its address."
)
"""Adds ``--view``; the function gets ``is_viewed``."""


def check_view(driver: "DriverName") -> None:
    """Checks that the runs of a driver can be shown in a live view.

    Raises:
        UserError: the runs of this driver cannot be watched.
        MissingToolError: the web server of the page is not installed.
    """
    from laststand.cli.program.requirements import require_view
    from laststand.emulator.plan.drivers import DriverName

    if driver is DriverName.SIMULATOR:
        raise UserError("--view shows processes; in virtual time a run is over before it can be watched")
    require_view()


def play_and_judge(
    scenario: "Scenario",
    orders: "tuple[RunOrder, ...]",
    *,
    judge: "JudgeName",
    is_reported: bool,
    output: Output,
    is_viewed: bool = False,
    is_compared: bool = False,
) -> "tuple[EraResult, ...]":
    """Plays orders side by side, verifies them together, prints the results, and writes reports if ``is_reported``.

    Args:
        scenario: of all orders.
        orders: the orders to play.
        judge: the judge to use.
        is_reported: whether to write reports.
        output: the form of the output.
        is_viewed: whether to serve a live view meanwhile.
        is_compared: whether there are two runs, and the output ends with their first difference.

    Raises:
        CommandFailedError: the runs could not be judged.
    """
    from laststand.chaos.campaign import play_and_verify
    from laststand.cli.output.progress import progress
    from laststand.cli.output.results import print_results

    with (
        reported_if_unjudged([order.directory for order in orders]),
        progress(tuple(each.name for each in orders)) as shown,
    ):
        watch = _watch(shown, is_viewed=is_viewed)
        results = play_and_verify(orders, judge=judge, on_status=shown.status, on_phase=shown.phase, watch=watch)
    reports = leave_reports([result.order.directory for result in results]) if is_reported else (None,) * len(results)
    print_results(scenario, results, reports, is_compared=is_compared, output=output)
    return results


def _watch(shown: "Progress", *, is_viewed: bool) -> "Watch":
    """Returns the watchers of runs: the progress, and a live view if one is wanted."""

    @contextlib.asynccontextmanager
    async def watch(runs: "Sequence[Run]") -> AsyncIterator[None]:
        shown.watch(runs)
        async with contextlib.AsyncExitStack() as stack:
            if is_viewed:
                from laststand.chaos.viewing import view_of

                await stack.enter_async_context(view_of(runs, on_address=_print_address))
            yield

    return watch


def _print_address(address: str) -> None:
    click.echo(f"live view: {address}", err=True)


def play_only(
    scenario: "Scenario", orders: "tuple[RunOrder, ...]", *, output: Output, is_viewed: bool = False
) -> ExitCode:
    """Plays orders side by side, and prints their run directories, which are to be judged elsewhere.

    Raises:
        CommandFailedError: a run could not be kept.
    """
    from laststand.chaos.campaign import play_runs
    from laststand.cli.output.progress import progress
    from laststand.cli.output.tables import print_json

    with (
        reported_if_unjudged([order.directory for order in orders]),
        progress(tuple(each.name for each in orders)) as shown,
    ):
        problems = play_runs(orders, on_status=shown.status, watch=_watch(shown, is_viewed=is_viewed))
    if output is Output.JSON:
        runs = [
            {"era": order.era, "changed": order.changed, "directory": str(order.directory), "problem": problem}
            for order, problem in zip(orders, problems, strict=True)
        ]
        print_json({"scenario": scenario.name, "runs": runs})
    else:
        for order, problem in zip(orders, problems, strict=True):
            click.echo(f"{order.name}: {'played' if problem is None else f'did not reach its end: {problem}'}")
            click.echo(f"  run directory: {order.directory}")
            click.echo(f"  judge it with: laststand verify {order.directory}")
    return ExitCode.VALID if all(problem is None for problem in problems) else ExitCode.UNKNOWN


@contextlib.contextmanager
def reported_if_unjudged(runs: Sequence[Path | str]) -> Iterator[None]:
    """Reports which runs were not judged, if judging is interrupted or fails for a reason outside of this program.

    Args:
        runs: those that are not judged; the caller removes each run that it has judged.

    Raises:
        CommandFailedError: judging failed, so the verdict is unknown.
    """
    try:
        yield
    except KeyboardInterrupt:
        _report_unjudged(runs)
        raise
    except (EmulatorError, OSError, ExceptionGroup) as error:
        cause = causes_of(error)[0]
        if not isinstance(cause, EmulatorError | OSError):
            raise
        if not isinstance(cause.__cause__, ExecutorsError):  # a setting that is wrong for all of them
            _report_unjudged(runs)
        raise CommandFailedError(f"unknown: {cause}", exit_code=ExitCode.UNKNOWN) from None


def _report_unjudged(runs: Sequence[Path | str]) -> None:
    for run in runs:
        click.echo(f"not judged: {run}; what was written is kept, judge it with: laststand verify {run}", err=True)
