"""The table at the end of ``make clients``: what became of each test of a client."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pytest

_OUTCOMES: Final = ("passed", "skipped", "failed", "error")


class Row(NamedTuple):
    """One test, or what a client did in it."""

    module: str
    what: str
    outcome: str


def rows_of(reports: Iterable[pytest.TestReport]) -> Iterator[Row]:
    """Yields the rows of reports; a skipped one says why."""
    for report in reports:
        path, _, name = report.nodeid.partition("::")
        outcome: str = report.outcome
        if report.skipped and isinstance(report.longrepr, tuple):
            outcome = f"skipped: {report.longrepr[2].removeprefix('Skipped: ')}"
        yield Row(path.rpartition("/")[2], name.removeprefix("test_").replace("_", " "), outcome)


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yields the lines of a table, sorted by module."""
    ordered = sorted(set(rows))
    widths = [max((len(row[column]) for row in ordered), default=0) for column in range(2)]
    for row in ordered:
        yield f"{row.module:{widths[0]}}  {row.what:{widths[1]}}  {row.outcome}"


def print_table(reporter: pytest.TerminalReporter) -> None:
    """Prints the table where tests of clients are all that was run."""
    reports = [
        report
        for outcome in _OUTCOMES
        for report in reporter.getreports(outcome)
        if isinstance(report, pytest.TestReport) and (report.when == "call" or not report.passed)
    ]
    if reports and all(report.nodeid.startswith("tests/clients/") for report in reports):
        reporter.section("clients")
        for line in table(rows_of(reports)):
            reporter.write_line(line)
