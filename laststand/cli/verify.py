"""``laststand verify``: verifies run directories."""

import time
from collections.abc import Callable, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laststand.cli.exit_codes import ExitCode
from laststand.cli.output import Output, json_option
from laststand.cli.pictures import report_option
from laststand.cli.spark_options import SparkChoice, spark_options
from laststand.cli.user_error import UserError

if TYPE_CHECKING:
    from laststand.emulator.verification.verdict import VerdictReport

_PROGRESS_S: Final = 5.0


@click.command(short_help="Verify run directories.")
@click.argument("runs", nargs=-1)
@click.option(
    "--watch",
    "watched",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Stay, and verify each run below DIR when it ends.",
)
@report_option
@spark_options
@json_option
def verify(
    runs: tuple[str, ...], watched: Path | None, *, is_reported: bool, spark_choice: SparkChoice, output: Output
) -> int:
    """Verify RUN directories, all in one Spark job, and write verdict.json, junit.xml and report.html into each.

    A directory that holds runs stands for all of them. Of several RUNs, one that is no run directory, or whose cluster
    is up, is named, and the others are verified. Without --master two threads of
    this machine do the work, with it a Spark cluster (docs/scale.md). A RUN may be the URI of a directory that Hadoop
    reaches (hdfs://HOST/runs/1); it is copied below --work-dir while it is judged.

    With --watch one session verifies runs as they end, until the process that started it is gone; with --json it prints
    a line for each.

    Exit code: 1 if any is a violation, else 2 if any is unknown or no run, or its verdict cannot be written, else 0.
    """
    from laststand.cli.play import told_if_unjudged
    from laststand.cli.requirements import require_spark
    from laststand.cli.results import print_verdicts, verdicts_exit_code
    from laststand.cli.run_places import existing_runs, named_runs, placed_runs
    from laststand.cli.watch import watch
    from laststand.emulator.verification.class_archive import ArchiveUse
    from laststand.emulator.verification.job_progress import told_progress
    from laststand.emulator.verification.verify import verify_runs

    if bool(runs) is (watched is not None):
        raise UserError("expected either RUN or --watch DIR")
    work_directory = spark_choice.work_directory
    named = named_runs(runs)
    found = [] if watched is not None else existing_runs(named, work_directory=work_directory)
    require_spark()
    starter = spark_choice.starter(
        log_directory=watched or Path(found[0]),
        archive_use=ArchiveUse.WRITE,
        imported="laststand.emulator.verification.judge",
    )
    starter.start()
    try:
        if watched is not None:
            with told_if_unjudged([]), starter.at_work() as spark:
                return verdicts_exit_code(watch(spark, watched, is_reported=is_reported, output=output))
        kept: dict[int, tuple[VerdictReport, bool]] = {}
        left = list(found)
        with told_if_unjudged(left):
            with (
                starter.at_work() as spark,
                placed_runs(found, work_directory=work_directory, spark=spark) as places,
                told_progress(spark, _progress(kept, len(places))),
            ):

                def keep(number: int, report: "VerdictReport") -> None:
                    kept[number] = places[number].kept(report)
                    left.remove(places[number].name)

                verify_runs([place.path for place in places], spark=spark, on_report=keep)
            reports = [report for _, (report, _) in sorted(kept.items())]
            pages = {kept[number][0].run: places[number].report() for number in sorted(kept) if is_reported}
            print_verdicts(reports, pages, output=output)
    finally:
        starter.stop()
    exit_code = verdicts_exit_code(reports)
    written = sum(is_written for _, is_written in kept.values())
    return ExitCode.UNKNOWN if exit_code is ExitCode.VALID and written < len(named) else exit_code


def _progress(judged: Sized, runs: int) -> Callable[[int, int], None]:
    """Returns a callback that prints how far a verification of several runs has come, every few seconds."""
    started = printed = time.monotonic()

    def show(done: int, tasks: int) -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed >= _PROGRESS_S:
            printed = now
            of_runs = f"{len(judged)} of {runs} runs judged, " if runs > 1 else ""
            click.echo(f"[{now - started:6.1f} s] verify: {of_runs}{done} of {tasks} tasks done", err=True)

    return show
