"""Many runs on one page: scenarios by eras, each cell the run's copies over time in small, and a link to its report."""

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from emulator.core.eras import ALL_ERAS
from emulator.report.assets import asset, digest, template
from emulator.report.page import tone_of
from emulator.report.run_files import ReportedRun, read_reported_run
from emulator.report.thumbnail import thumbnail
from emulator.report.words import number, plural
from emulator.report.worst_first import worst_first
from emulator.verification.guarantee import Guarantee
from emulator.verification.verdict import Verdict, VerdictReport, headline
from emulator.verification.verdict_forms import write_whole

_PAUSE_S: Final = 0.5
"""As long as a pause that the picture of a run marks."""


class PlayedCell(NamedTuple):
    """A judged run.

    Attributes:
        directory: of the run.
        page: where the report on it is.
        column: in which it stands; its era, and its driver where the runs have several, if that is not given.
    """

    directory: Path
    page: Path
    column: str | None = None


class UnplayedCell(NamedTuple):
    """A scenario and a column of which there is no run, why, and whether there could have been one."""

    scenario: str
    column: str
    reason: str
    is_playable: bool = True


class _Cell(NamedTuple):
    href: str | None
    words: str
    svg: Markup
    tone: str
    badge: str
    pause: str


class _Column(NamedTuple):
    name: str
    sum: str


class _Row(NamedTuple):
    name: str
    cells: list[_Cell | None]


class _Group(NamedTuple):
    name: str
    rows: list[_Row]


def write_overview(played: Sequence[PlayedCell], target: Path, *, unplayed: Sequence[UnplayedCell] = ()) -> None:
    """Writes a page with a cell for each run; of several of one scenario and column, the one that lost most.

    Args:
        played: the runs.
        target: the file, which links to these reports.
        unplayed: cells without a run.

    Raises:
        ConfigError: a run was not judged, or by another version of this program.
        OSError: the file cannot be written.
    """
    found: dict[tuple[str, str], tuple[ReportedRun, Path]] = {}
    runs = [read_reported_run(cell.directory) for cell in played]
    has_drivers = len({run.driver for run in runs}) > 1
    for cell, run in zip(played, runs, strict=True):
        place = run.verdict.scenario, cell.column or _column(run, has_driver=has_drivers)
        if place not in found or _badness(run.verdict) > _badness(found[place][0].verdict):
            found[place] = run, cell.page
    cells = {(each.scenario, each.column): _blank(each) for each in unplayed}
    cells |= {place: _cell(run, _relative(page, target)) for place, (run, page) in found.items()}
    columns = sorted({column for _, column in cells}, key=_order)
    scenarios = sorted({scenario for scenario, _ in cells})
    style = asset("report.css")
    content = template("overview.html.j2").render(
        runs=plural(len(played), "run"),
        scenarios=plural(len(scenarios), "scenario"),
        columns=[
            _Column(column, _sum([run for (_, own), (run, _) in found.items() if own == column])) for column in columns
        ],
        groups=[
            _Group(
                name,
                [_Row(each.rpartition("/")[2], [cells.get((each, column)) for column in columns]) for each in members],
            )
            for name, members in groupby(
                scenarios, key=lambda scenario: scenario.rpartition("/")[0].upper() or "Others"
            )
        ],
        patterns=Markup(asset("patterns.svg")),
        style=Markup(style),
        style_digest=digest(style),
    )
    write_whole(target, content.encode())


def _column(run: ReportedRun, *, has_driver: bool) -> str:
    era = run.verdict.era_label
    return f"{era} on {run.driver or 'an unknown driver'}" if has_driver else era


def _order(column: str) -> tuple[int, str]:
    """Orders columns by era, the oldest first."""
    era = column.partition(" on ")[0].partition(" with ")[0]
    return [*ALL_ERAS, era].index(era), column


def _sum(runs: Sequence[ReportedRun]) -> str:
    return f"{sum(_is_broken(run) for run in runs)} broken" if runs else "not played"


def _relative(page: Path, target: Path) -> str:
    return quote(os.path.relpath(page.resolve(), target.resolve().parent))


def _badness(verdict: VerdictReport) -> tuple[bool, int]:
    return verdict.verdict is Verdict.VIOLATION, verdict.lost_records


def _is_broken(run: ReportedRun) -> bool:
    return run.verdict.verdict is Verdict.VIOLATION and run.verdict.guarantee is not Guarantee.EXCEEDED


def _cell(run: ReportedRun, href: str) -> _Cell:
    tone, lost = tone_of(run.verdict), run.verdict.lost_records
    first = next((check.check_id for check in run.verdict.violated()), "")
    badge = {
        "kept": "\N{CHECK MARK}",
        "lost": f"\N{MULTIPLICATION X} {number(lost) if lost else first}",
        "exceeded": f"! {number(lost)}",
        "doubtful": "?",
    }[tone]
    return _Cell(
        href,
        headline(run.verdict),
        thumbnail(run.verdict, next(iter(worst_first(run.verdict, run.story)), None), run.story),
        tone,
        badge,
        _pause(run),
    )


def _blank(cell: UnplayedCell) -> _Cell:
    return _Cell(None, cell.reason, Markup(), "unplayed", "not played" if cell.is_playable else "not playable", "")


def _pause(run: ReportedRun) -> str:
    """The longest time that a workload waited for an acknowledgement, where that is worth a word."""
    waited_s = run.verdict.unavailable_s or 0.0
    return f"none acked for {waited_s:.3f} s" if waited_s > _PAUSE_S else ""
