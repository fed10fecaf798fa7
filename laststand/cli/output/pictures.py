"""Writes ``report.html`` for a verdict. If it cannot be written, stderr says so; verdict and exit code stay."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from laststand.emulator.report.overview import UnplayedCell

OVERVIEW_FILE: Final = "overview.html"
"""The overview of a suite, in its store."""

report_option = click.option(
    "--report/--no-report",
    "is_reported",
    default=True,
    show_default=True,
    help="Write report.html into the run directory.",
)
"""Adds ``--no-report``; the function gets ``is_reported``."""


def leave_report(directory: Path) -> Path | None:
    """Writes the report of a judged run into its directory; returns its path, ``None`` if that failed."""
    return _leave_report(directory, None)


def leave_reports(directories: Sequence[Path]) -> tuple[Path | None, ...]:
    """Writes the report of each judged run into its directory, compared with the first of the others.

    Returns:
        The path of each report; ``None`` if it could not be written, which was reported on stderr.
    """
    return tuple(
        _leave_report(directory, next((other for other in directories if other != directory), None))
        for directory in directories
    )


def leave_suite_reports(
    columns: Mapping[Path, str],
    overview: Path,
    *,
    repetitions: Mapping[Path, int] = MappingProxyType({}),
    unplayed: "Sequence[UnplayedCell]" = (),
) -> Path | None:
    """Writes the report of each judged run of a suite, and an overview of them and of the cells not played.

    Args:
        columns: of the overview, by run directory.
        overview: the file.
        repetitions: of the runs whose scenario was played several times, from 1, by run directory.
        unplayed: cells without a run.

    Returns:
        The overview's path; ``None`` if it could not be written, or nothing was judged.
    """
    reports = {each: page for each in columns if (page := _leave_report(each, None)) is not None}
    if not reports:
        return None
    try:
        from laststand.emulator.report.overview import PlayedCell, write_overview

        cells = [PlayedCell(each, page, columns[each], repetitions.get(each)) for each, page in reports.items()]
        write_overview(cells, overview, unplayed=unplayed)
    except Exception as error:
        click.echo(f"not written: the overview {overview}: {type(error).__name__}: {error}", err=True)
        return None
    return overview


def _leave_report(directory: Path, other: Path | None) -> Path | None:
    try:
        from laststand.emulator.report.page import REPORT_FILE, write_report

        target = directory / REPORT_FILE
        write_report(directory, target, against=other)
    except Exception as error:
        click.echo(f"not written: the report on {directory}: {type(error).__name__}: {error}", err=True)
        return None
    return target
