"""``laststand verify``: verifies run directories."""

import contextlib
import time
from collections.abc import Callable, Sized
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laststand.cli.options.judge import judge_option
from laststand.cli.options.spark import SparkChoice, spark_options
from laststand.cli.output.output import Output, json_option
from laststand.cli.output.pictures import report_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.emulator.verification.judges import JudgeName, NoSession, SessionSource
from laststand.emulator.verification.spark.hadoop_runs import is_uri

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks
    from laststand.emulator.verification.verdict.report import VerdictReport

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
@judge_option
@report_option
@spark_options
@json_option
def verify(
    runs: tuple[str, ...],
    watched: Path | None,
    *,
    judge: JudgeName,
    is_reported: bool,
    spark_choice: SparkChoice,
    output: Output,
) -> int:
    """Verify RUN directories, all in one Spark job, and write verdict.json, junit.xml and report.html into each.

    A directory that holds runs stands for all of them. If one of several RUNs is no run directory, or its cluster is
    up, it is reported, and the others are verified. Without --master two threads of this machine do the work, with it a
    Spark cluster (docs/scale.md). A RUN may be the URI of a directory that Hadoop reaches (hdfs://HOST/runs/1); it is
    copied below --work-dir while it is judged.

    With --judge here the same checks run in this process, for one run after another: the verdicts are the same, a small
    run takes a second or two, and no Java is needed. A large run takes longer than with Spark.

    With --watch one session verifies runs as they end, until the process that started it is gone; with --json it prints
    a line for each.

    Exit code: 1 if any is a violation, else 2 if any is unknown or no run, or its verdict cannot be written, else 0.
    """
    from laststand.cli.program.requirements import require_spark
    from laststand.cli.runs.places import existing_runs, named_runs, placed_runs

    if bool(runs) is (watched is not None):
        raise UserError("expected either RUN or --watch DIR")
    if judge is JudgeName.HERE:
        _check_without_spark(runs, spark_choice)
    work_directory = spark_choice.work_directory
    named = named_runs(runs)
    found = [] if watched is not None else existing_runs(named, work_directory=work_directory)
    starter: SessionSource = NoSession()
    if judge is JudgeName.SPARK:
        from laststand.emulator.verification.spark.class_archive import ArchiveUse

        require_spark()
        starter = spark_choice.starter(
            log_directory=watched or Path(found[0]),
            archive_use=ArchiveUse.WRITE,
            imported="laststand.emulator.verification.judge",
        )
    starter.start()
    # While the JVM starts: none of it takes part in the checks above.
    from laststand.cli.output.results import print_verdicts, verdicts_exit_code
    from laststand.cli.runs.play import reported_if_unjudged
    from laststand.cli.runs.watch import watch
    from laststand.emulator.verification.verify import verify_runs

    try:
        if watched is not None:
            with reported_if_unjudged([]), starter.tasks_at_work() as spark:
                return verdicts_exit_code(watch(spark, watched, is_reported=is_reported, output=output))
        kept: dict[int, tuple[VerdictReport, bool]] = {}
        left = list(found)
        with reported_if_unjudged(left):
            with (
                starter.tasks_at_work() as spark,
                placed_runs(found, work_directory=work_directory, spark=spark) as places,
                _shown_progress(spark, kept, len(places)),
            ):

                def store(number: int, report: "VerdictReport") -> None:
                    kept[number] = places[number].kept(report)
                    left.remove(places[number].name)

                verify_runs([place.path for place in places], spark=spark, on_report=store)
            reports = [report for _, (report, _) in sorted(kept.items())]
            pages = {kept[number][0].run: places[number].report() for number in sorted(kept) if is_reported}
            print_verdicts(reports, pages, output=output)
    finally:
        starter.stop()
    exit_code = verdicts_exit_code(reports)
    written = sum(is_written for _, is_written in kept.values())
    return ExitCode.UNKNOWN if exit_code is ExitCode.VALID and written < len(named) else exit_code


def _check_without_spark(runs: tuple[str, ...], choice: SparkChoice) -> None:
    """Checks that no option was given that only Spark has.

    Raises:
        UserError: an option was given that only Spark has.
    """
    if choice.is_given:
        raise UserError(
            "--judge here does without Spark, so it takes no --master, --conf, --driver-address, --work-dir"
        )
    if at_uri := next(filter(is_uri, runs), None):
        raise UserError(f"{at_uri}: only Spark reads runs at URIs; expected a directory with --judge here")


def _shown_progress(spark: "SparkTasks | None", judged: Sized, runs: int) -> AbstractContextManager[None]:
    """Prints the progress of a verification while Spark works."""
    if spark is None:
        return contextlib.nullcontext()
    from laststand.emulator.verification.spark.job_progress import reported_progress

    return reported_progress(spark, _progress(judged, runs))


def _progress(judged: Sized, runs: int) -> Callable[[int, int], None]:
    """Returns a callback that prints the progress of a verification of several runs, every few seconds."""
    started = printed = time.monotonic()

    def show(done: int, tasks: int) -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed >= _PROGRESS_S:
            printed = now
            of_runs = f"{len(judged)} of {runs} runs judged, " if runs > 1 else ""
            click.echo(f"[{now - started:6.1f} s] verify: {of_runs}{done} of {tasks} tasks done", err=True)

    return show
