"""``laststand run`` with several cells: plays the suite, and writes its results in all forms."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from laststand.cli.options.suite import Forms, PlayChoice, SuiteChoice
from laststand.cli.output.output import Output
from laststand.cli.output.pictures import OVERVIEW_FILE, leave_suite_reports
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.failure import CommandFailedError
from laststand.emulator.core.errors import EmulatorError, causes_of
from laststand.emulator.verification.judges import JudgeName, NoSession, SessionSource

if TYPE_CHECKING:
    from laststand.chaos.suite.player import Judge, SuitePlayer
    from laststand.chaos.suite.results import CellResult, SuiteReport
    from laststand.chaos.suite.suite import Suite
    from laststand.emulator.verification.verdict.report import VerdictReport

_STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_ACTIONS: Final = "GITHUB_ACTIONS"


def play_suite(suite: "Suite", choice: SuiteChoice, *, judge: JudgeName, is_reported: bool, output: Output) -> ExitCode:
    """Plays a suite to its end, and reports the results, even if the suite is interrupted or breaks off.

    Raises:
        KeyboardInterrupt: the suite was interrupted.
        CommandFailedError: the suite broke off.
        MissingToolError: no Java, or no pyspark.
    """
    from laststand.cli.output.results import outcome_exit_code

    with judging(suite.store, judge) as judge_runs:
        report = play_cells(suite, choice, judge=judge_runs, is_reported=is_reported, output=output)
    return outcome_exit_code(report.outcome)


@contextlib.contextmanager
def judging(store: Path, name: JudgeName = JudgeName.SPARK) -> "Iterator[Judge]":
    """Yields the judge of runs, in a session that starts meanwhile and ends with the context unless it is not needed.

    Raises:
        MissingToolError: no Java, or no pyspark.
    """
    from laststand.chaos.play.run_directory import make_store
    from laststand.emulator.verification.verify import rehearse, verify_runs

    make_store(store)
    starter: SessionSource = NoSession()
    if name is JudgeName.SPARK:
        from laststand.emulator.verification.spark.session import SparkSessionStarter

        starter = SparkSessionStarter(log_path=store.absolute() / "spark.log", rehearsal=rehearse)

    def judge(directories: "Sequence[Path]") -> "Sequence[VerdictReport]":
        with starter.tasks_at_work() as spark:
            return verify_runs(directories, spark=spark)

    starter.start()
    try:
        yield judge
    finally:
        starter.stop()


def _leave_pages(report: "SuiteReport", store: Path) -> None:
    from laststand.chaos.suite.results import CellStatus
    from laststand.emulator.report.overview import UnplayedCell

    judged = {
        Path(cell.directory): cell.column
        for cell in report.cells
        if cell.directory is not None and cell.verdict is not None
    }
    unplayed = [
        UnplayedCell(
            cell.scenario, cell.column, "; ".join(cell.reasons), is_playable=cell.status is not CellStatus.SKIPPED
        )
        for cell in report.cells
        if cell.verdict is None
    ]
    is_repeated = any(cell.repetition > 1 for cell in report.cells)
    repetitions = {
        Path(cell.directory): cell.repetition for cell in report.cells if is_repeated and cell.directory is not None
    }
    overview = leave_suite_reports(judged, store / OVERVIEW_FILE, repetitions=repetitions, unplayed=unplayed)
    if overview is not None:
        click.echo(f"overview: {overview}", err=True)


def play_cells(
    suite: "Suite", choice: PlayChoice, *, judge: "Judge", is_reported: bool, output: Output
) -> "SuiteReport":
    """Plays cells to their end; writes, prints and returns the results.

    With ``is_reported`` each run that is kept gets its page, and the store an overview of them.

    Raises:
        KeyboardInterrupt: the suite was interrupted.
        CommandFailedError: the suite broke off.
    """
    from laststand.chaos.suite.player import Keep, SuitePlayer, SuiteSettings
    from laststand.chaos.suite.results import SuiteReport
    from laststand.cli.output.suite_progress import suite_progress

    with suite_progress(suite.count) as listener:
        player = SuitePlayer(
            suite.cells,
            settings=SuiteSettings(
                jobs=choice.jobs_or_default,
                timeout_s=choice.timeout_s,
                stops_at_failure=choice.stops_at_failure,
                keep=Keep(choice.keep or Keep.ALL.value),
            ),
            make_order=suite.order,
            judge=judge,
            listener=listener,
        )
        started, started_s = datetime.now(UTC), time.monotonic()
        problem = _play(player)
    report = SuiteReport(
        driver=suite.driver.value,
        kafka=None if suite.kafka is None else suite.kafka.distribution.version,
        settings=suite.settings,
        shard=suite.shard,
        started=started.isoformat(timespec="milliseconds"),
        duration_s=round(time.monotonic() - started_s, 3),
        cells=(*player.all_results(), *_not_begun(suite)),
    )
    write_forms(report, player.reports, forms=choice.forms)
    _print(report, output=output)
    if is_reported:
        _leave_pages(report, suite.store)
    if problem is not None:
        _raise(problem)
    return report


def _play(player: "SuitePlayer") -> BaseException | None:
    """Plays, and returns the error that stopped it, if any."""
    try:
        asyncio.run(player.play())
    except (KeyboardInterrupt, EmulatorError, OSError, ExceptionGroup) as error:
        return error
    return None


def _not_begun(suite: "Suite") -> "Iterator[CellResult]":
    """Yields results of the cells that were not begun; a suite without end has none."""
    from laststand.chaos.suite.results import CellStatus, unplayed_result

    for cell in () if suite.count is None else suite.cells:
        yield unplayed_result(cell, status=CellStatus.NOT_PLAYED, reason="the suite ended before")


def _raise(problem: BaseException) -> NoReturn:
    cause = causes_of(problem)[0]
    if isinstance(cause, EmulatorError | OSError):
        raise CommandFailedError(f"unknown: the suite broke off: {cause}", exit_code=ExitCode.UNKNOWN) from problem
    raise problem


def write_forms(report: "SuiteReport", verdicts: "Mapping[str, VerdictReport]", *, forms: Forms) -> None:
    """Writes a suite's results to files, and to GitHub Actions if the suite is played there.

    Args:
        report: the results.
        verdicts: the verdicts of the results, by the cells' names.
        forms: the files.

    Raises:
        OSError: a file cannot be written.
    """
    from laststand.chaos.suite.annotations import annotations
    from laststand.chaos.suite.matrix import markdown
    from laststand.chaos.suite.results import CellStatus, write_report
    from laststand.emulator.verification.verdict.junit import Case, junit

    if forms.junit is not None:
        cases = [
            Case(
                suite=cell.scenario,
                name=f"{cell.column} #{cell.repetition}",
                report=verdicts.get(cell.name),
                skipped="; ".join(cell.reasons),
                missing="; ".join(cell.reasons) if cell.status is CellStatus.NOT_PLAYED else None,
                picture=cell.picture,
            )
            for cell in report.cells
        ]
        forms.junit.write_text(junit(cases), encoding="utf-8")
    if forms.summary is not None:
        forms.summary.write_text(markdown(report), encoding="utf-8")
    if forms.results is not None:
        write_report(report, forms.results)
    if step_summary := os.environ.get(_STEP_SUMMARY):
        with open(step_summary, "a", encoding="utf-8") as file:
            file.write(markdown(report))
    if os.environ.get(_ACTIONS) == "true":
        for line in annotations(report):
            click.echo(line, err=True)


def _print(report: "SuiteReport", *, output: Output) -> None:
    from laststand.chaos.suite.matrix import details, matrix, seeds, skipped, totals
    from laststand.cli.output.tables import fits, print_json, print_listing

    if output is Output.JSON:
        print_json(report)
        return
    for line in details(report):
        click.echo(line)
    table = matrix(report)
    listing = [("SCENARIO", *table.columns), *((name, *texts) for name, texts in table.rows)]
    if not fits(listing):
        table = matrix(report, has_times=False)
    if table.rows:
        print_listing(("SCENARIO", *table.columns), [(name, *texts) for name, texts in table.rows])
    click.echo(totals(report))
    for line in skipped(report):
        click.echo(line)
    if used := seeds(report):
        click.echo(used)
