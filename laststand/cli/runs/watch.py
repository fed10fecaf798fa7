"""``laststand verify --watch``: one session that judges runs as they end."""

import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from laststand.cli.output.output import Output
from laststand.cli.output.pictures import leave_report
from laststand.cli.output.results import print_verdicts, store_verdict
from laststand.emulator.verification.ended_runs import EndedRuns
from laststand.emulator.verification.verdict.report import VerdictReport
from laststand.emulator.verification.verify import verify_runs

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks

_LOOK_INTERVAL_S: Final = 0.5


def watch(spark: "SparkTasks | None", directory: Path, *, is_reported: bool, output: Output) -> list[VerdictReport]:
    """Judges each run below a directory when it ends, and prints its verdict, until the parent process is gone.

    Returns:
        The judged runs.
    """
    owner = os.getppid()
    ended = EndedRuns(directory)
    reports: list[VerdictReport] = []

    def report_on(runs: Sequence[Path], number: int, report: VerdictReport) -> None:
        page = leave_report(runs[number]) if store_verdict(report, runs[number]) and is_reported else None
        _print(report, page, output)
        reports.append(report)

    click.echo(f"watching {directory}", err=True)
    while os.getppid() == owner:
        runs = ended.poll()
        if not runs:
            time.sleep(_LOOK_INTERVAL_S)
            continue
        verify_runs(runs, spark=spark, on_report=partial(report_on, runs))
    return reports


def _print(report: VerdictReport, page: Path | None, output: Output) -> None:
    if output is Output.JSON:
        click.echo(msgspec.json.encode(report))  # a line for each
    else:
        print_verdicts([report], {report.run: page}, output=output)
