"""Results on stdout: a summary per run, and the comparison as the last lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from emulator.cli.acks_table import acks_table
from emulator.cli.exit_codes import ExitCode
from emulator.cli.output import Output
from emulator.cli.tables import print_table
from emulator.report.failure_picture import failure_picture
from emulator.verification.verdict import Expected, Verdict, VerdictReport
from emulator.verification.verdict_forms import summary, write_verdict

if TYPE_CHECKING:
    from chaos.campaign import EraResult
    from chaos.scenario.scenario import Scenario


def print_verdicts(reports: Sequence[VerdictReport], *, output: Output) -> None:
    """Prints verdicts, as text or as a JSON list."""
    if output is Output.JSON:
        click.echo(msgspec.json.format(msgspec.json.encode(reports)))
        return
    for report in reports:
        click.echo(f"{report.run}\n{summary(report)}\n")
        if report.acks_comparison is not None:
            print_table(acks_table([(report.era or "unnamed", report.acks_comparison)]))


def keep_verdict(report: VerdictReport, run: Path) -> bool:
    """Writes a verdict into its run's directory; says on stderr if that cannot be done, and returns whether it was."""
    try:
        write_verdict(report, run, picture=failure_picture(report, run))
    except OSError as error:
        click.echo(f"not written: the verdict on {run}: {error.strerror}", err=True)
        return False
    return True


def verdicts_exit_code(reports: Sequence[VerdictReport]) -> ExitCode:
    """Returns what ``verify`` exits with."""
    verdicts = {report.verdict for report in reports}
    if Verdict.VIOLATION in verdicts:
        return ExitCode.VIOLATION
    return ExitCode.UNKNOWN if Verdict.UNKNOWN in verdicts else ExitCode.VALID


def outcome_exit_code(outcome: Expected) -> ExitCode:
    """Returns what ``run`` exits with."""
    return {
        Expected.MET: ExitCode.VALID,
        Expected.MISSED: ExitCode.VIOLATION,
        Expected.UNDECIDED: ExitCode.UNKNOWN,
    }[outcome]


def print_results(
    scenario: "Scenario", results: "tuple[EraResult, ...]", reports: Sequence[Path | None], *, output: Output
) -> None:
    """Prints the results of a campaign, as text or as one JSON object; ``reports`` are where they can be looked at."""
    if output is Output.JSON:
        document = {
            "scenario": scenario.name,
            "runs": [
                {
                    "era": result.era,
                    "directory": str(result.directory),
                    "outcome": result.report.outcome.value,
                    "misses": result.report.misses,
                    "verdict": result.report,
                    "report": None if report is None else str(report),
                }
                for result, report in zip(results, reports, strict=True)
            ],
        }
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
        return
    for result, report in zip(results, reports, strict=True):
        look = "" if report is None else f"\n  report: {report}"
        click.echo(f"{summary(result.report)}\n  run directory: {result.directory}{look}\n")
    compared = [
        (result.era, result.report.acks_comparison) for result in results if result.report.acks_comparison is not None
    ]
    if compared:
        print_table(acks_table(compared))
    width = max(len(result.era) for result in results)
    for result in results:
        click.echo(f"{result.era:<{width}}  {_comparison(scenario, result)}")


def _comparison(scenario: "Scenario", result: "EraResult") -> str:
    report = result.report
    guarantee = "" if report.guarantee is None else f", guarantee {report.guarantee.value}"
    found = f"{report.verdict.value}{guarantee}, {report.lost_records} acks=all records lost"
    if scenario.expectation(result.era) is None:
        return f"{found} (nothing was expected of this era)"
    if not report.misses:
        return f"{found}, as expected"
    return f"{found}; {'; '.join(report.misses)}"
