"""Results on stdout: a summary per run, and the comparison as the last lines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from laststand.cli.output.output import Output
from laststand.cli.output.step_comparison import print_steps, steps_as_json
from laststand.cli.output.tables import print_table
from laststand.cli.program.exit_codes import ExitCode
from laststand.emulator.report.failure_picture import failure_picture
from laststand.emulator.verification.verdict.forms import summary, write_verdict
from laststand.emulator.verification.verdict.report import Expected, Verdict, VerdictReport

if TYPE_CHECKING:
    from laststand.chaos.campaign import EraResult
    from laststand.chaos.scenario.scenario import Scenario
    from laststand.emulator.report.step_comparison import StepComparison
    from laststand.emulator.verification.verdict.acks_comparison import AcksComparison


def print_verdicts(reports: Sequence[VerdictReport], pages: Mapping[str, Path | None], *, output: Output) -> None:
    """Prints verdicts, as text or as a JSON list; in the text, also the path of each run's report, if it has one."""
    if output is Output.JSON:
        click.echo(msgspec.json.format(msgspec.json.encode(reports)))
        return
    for report in reports:
        page = pages.get(report.run)
        look = "" if page is None else f"\n  report: {page}"
        click.echo(f"{report.run}\n{summary(report)}{look}\n")
        if report.acks_comparison is not None:
            _print_comparisons([(report.era_label, report.acks_comparison)])


def _print_comparisons(compared: "Sequence[tuple[str, AcksComparison]]") -> None:
    from laststand.cli.output.acks_table import acks_table  # takes the oracle along, and few runs have one

    print_table(acks_table(compared))


def store_verdict(report: VerdictReport, run: Path) -> bool:
    """Writes a verdict into its run's directory; returns whether that succeeded, and reports a failure on stderr."""
    try:
        write_verdict(report, run, picture=failure_picture(report, run))
    except OSError as error:
        click.echo(f"not written: the verdict on {run}: {error.strerror}", err=True)
        return False
    return True


def verdicts_exit_code(reports: Sequence[VerdictReport]) -> ExitCode:
    """Returns the exit code of ``verify``."""
    verdicts = {report.verdict for report in reports}
    if Verdict.VIOLATION in verdicts:
        return ExitCode.VIOLATION
    return ExitCode.UNKNOWN if Verdict.UNKNOWN in verdicts else ExitCode.VALID


def outcome_exit_code(outcome: Expected) -> ExitCode:
    """Returns the exit code of ``run``."""
    return {
        Expected.MET: ExitCode.VALID,
        Expected.MISSED: ExitCode.VIOLATION,
        Expected.UNDECIDED: ExitCode.UNKNOWN,
    }[outcome]


def print_results(
    scenario: "Scenario",
    results: "tuple[EraResult, ...]",
    reports: Sequence[Path | None],
    *,
    is_compared: bool = False,
    output: Output,
) -> None:
    """Prints the results of a campaign, as text or as one JSON object.

    Args:
        scenario: of all runs.
        results: of the runs.
        reports: the report page of each run.
        is_compared: whether there are two runs, and the output ends with their first difference.
        output: the form.
    """
    if output is Output.JSON:
        document: dict[str, object] = {
            "scenario": scenario.name,
            "runs": [
                {
                    "name": result.order.name,
                    "era": result.order.era,
                    "directory": str(result.order.directory),
                    "outcome": result.report.outcome.value,
                    "misses": result.report.misses,
                    "verdict": result.report,
                    "report": None if report is None else str(report),
                }
                for result, report in zip(results, reports, strict=True)
            ],
        }
        if is_compared:
            decisions, steps = _parting(results)
            document["comparison"] = {"decisions": decisions, **steps_as_json(steps)}
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
        return
    for result, report in zip(results, reports, strict=True):
        look = "" if report is None else f"\n  report: {report}"
        click.echo(f"{summary(result.report)}\n  run directory: {result.order.directory}{look}\n")
    compared = [
        (result.order.name, result.report.acks_comparison)
        for result in results
        if result.report.acks_comparison is not None
    ]
    if compared:
        _print_comparisons(compared)
    width = max(len(result.order.name) for result in results)
    for result in results:
        click.echo(f"{result.order.name:<{width}}  {_comparison(result)}")
    if is_compared:
        decisions, steps = _parting(results)
        click.echo(f"\n{decisions}")
        print_steps(steps)


def _parting(results: "Sequence[EraResult]") -> "tuple[str, StepComparison]":
    """Returns where two runs first differ: that decision as a sentence, and the steps side by side."""
    from laststand.emulator.report.comparison import compare_decisions
    from laststand.emulator.report.run_files import read_reported_run
    from laststand.emulator.report.step_comparison import compare_steps

    one, other = (read_reported_run(result.order.directory) for result in results)
    return compare_decisions(one, other).sentence, compare_steps(one, other)


def _comparison(result: "EraResult") -> str:
    report = result.report
    guarantee = "" if report.guarantee is None else f", guarantee {report.guarantee.value}"
    found = f"{report.verdict.value}{guarantee}, {report.lost_records} acks=all records lost"
    if result.order.scenario.expectation(result.order.name) is None:
        return f"{found} (nothing was expected of it)"
    if not report.misses:
        return f"{found}, as expected"
    return f"{found}; {'; '.join(report.misses)}"
