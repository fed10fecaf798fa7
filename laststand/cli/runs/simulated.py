"""Writes the result files of a simulated run: verdict, story and report, made in this process."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.output.pictures import leave_reports
from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.emulator.plan.plan import Plan
    from laststand.emulator.simulator.run.simulation import Simulation


def leave_run(plan: "Plan", out: Path, *, name: str, seed: int | None = None, is_reported: bool) -> "Simulation":
    """Plays a plan, and leaves its run, judged, in a new directory; returns it, stopped.

    Args:
        plan: the plan to play.
        out: the directory.
        name: of the run's scenario.
        seed: the seed of the plan, if it was drawn.
        is_reported: whether to write a report.

    Raises:
        UserError: the directory cannot be written.
        ConfigError: the controller refuses a topic of the plan.
    """
    from laststand.emulator.simulator.run.writer import write_run
    from laststand.emulator.verification.judge_here import judge_here

    try:
        simulation = write_run(plan, out, name=name, seed=seed)
        judge_here(out)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}") from None
    if is_reported:
        leave_reports([out])
    return simulation


def print_places(out: Path) -> None:
    """Prints where a run is, and its report, if there is one."""
    from laststand.emulator.report.page import REPORT_FILE

    click.echo(f"run directory: {out}")
    if (out / REPORT_FILE).is_file():
        click.echo(f"report: {out / REPORT_FILE}")
