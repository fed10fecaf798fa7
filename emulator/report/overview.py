"""Many runs on one page: scenarios by eras, each cell the run's copies over time in small, and a link to its report."""

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from laststand.emulator.core.eras import ALL_ERAS
from laststand.emulator.report.assets import asset, digest, template
from laststand.emulator.report.numbers import number, plural
from laststand.emulator.report.page import tone_of
from laststand.emulator.report.run_files import ReportedRun, read_reported_run
from laststand.emulator.report.text_picture import PAUSE_S
from laststand.emulator.report.thumbnail import thumbnail
from laststand.emulator.report.worst_first import worst_first
from laststand.emulator.verification.rules.guarantee import Guarantee
from laststand.emulator.verification.verdict.forms import write_whole
from laststand.emulator.verification.verdict.report import Expected, Verdict, VerdictReport, headline

_RANKS: Final = {Expected.MISSED: 0, Expected.UNDECIDED: 1, Expected.MET: 2}
"""Order of outcomes, the worst first."""

_LAST: Final = len(_RANKS)
"""Rank of what was not played."""

_FAILED: Final = "\N{MULTIPLICATION X}"


class PlayedCell(NamedTuple):
    """A judged run.

    Attributes:
        directory: of the run.
        page: the address of its report.
        column: its column; by default its era, with its driver if the runs have several.
        repetition: number of the repetition in that column, from 1, if the scenario was played several times.
    """

    directory: Path
    page: Path
    column: str | None = None
    repetition: int | None = None


class UnplayedCell(NamedTuple):
    """A scenario and a column without a run, the reason, and whether a run is possible."""

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
    notes: str
    rank: int


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
    """Writes a page with a cell for each run; if several have one scenario and column, for the worst.

    Scenarios with a run that is not as expected come first, scenarios without a played run last.

    Args:
        played: the runs.
        target: the file, which links to these reports.
        unplayed: cells without a run.

    Raises:
        ConfigError: a run was not judged, or by another version of this program.
        OSError: the file cannot be written.
    """
    found: dict[tuple[str, str], tuple[ReportedRun, PlayedCell]] = {}
    runs = [read_reported_run(cell.directory) for cell in played]
    has_drivers = len({run.driver for run in runs}) > 1
    for cell, run in zip(played, runs, strict=True):
        place = run.verdict.scenario, cell.column or _column(run, has_driver=has_drivers)
        if place not in found or _badness(run.verdict) > _badness(found[place][0].verdict):
            found[place] = run, cell
    cells = {(each.scenario, each.column): _blank(each) for each in unplayed}
    cells |= {
        place: _cell(run, _relative(cell.page, target), repetition=cell.repetition)
        for place, (run, cell) in found.items()
    }
    columns = sorted({column for _, column in cells}, key=_order)
    ranks: dict[str, int] = {}
    for (scenario, _), cell_of_run in cells.items():
        ranks[scenario] = min(cell_of_run.rank, ranks.get(scenario, _LAST))
    groups = {_group(scenario) for scenario in ranks}
    group_ranks = {name: min(rank for scenario, rank in ranks.items() if _group(scenario) == name) for name in groups}
    scenarios = sorted(ranks, key=lambda each: (group_ranks[_group(each)], _group(each), ranks[each], each))
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
            for name, members in groupby(scenarios, key=_group)
        ],
        patterns=Markup(asset("patterns.svg")),
        style=Markup(style),
        style_digest=digest(style),
    )
    write_whole(target, content.encode())


def _group(scenario: str) -> str:
    return scenario.rpartition("/")[0].upper() or "Others"


def _column(run: ReportedRun, *, has_driver: bool) -> str:
    era = run.verdict.era_label
    return f"{era} on {run.driver or 'an unknown driver'}" if has_driver else era


def _order(column: str) -> tuple[int, str]:
    """Orders columns by era, the oldest first."""
    era = column.partition(" on ")[0].partition(" with ")[0]
    return [*ALL_ERAS, era].index(era), column


def _sum(runs: Sequence[ReportedRun]) -> str:
    if not runs:
        return "not played"
    failed = sum(run.verdict.outcome is Expected.MISSED for run in runs)
    return f"{f'{failed} failed, ' if failed else ''}{sum(_is_broken(run) for run in runs)} broken"


def _relative(page: Path, target: Path) -> str:
    return quote(os.path.relpath(page.resolve(), target.resolve().parent))


def _badness(verdict: VerdictReport) -> tuple[int, bool, int]:
    return -_RANKS[verdict.outcome], verdict.verdict is Verdict.VIOLATION, verdict.lost_records


def _is_broken(run: ReportedRun) -> bool:
    return run.verdict.verdict is Verdict.VIOLATION and run.verdict.guarantee is not Guarantee.EXCEEDED


def _cell(run: ReportedRun, href: str, *, repetition: int | None) -> _Cell:
    tone, lost = tone_of(run.verdict), run.verdict.lost_records
    is_foreseen = run.verdict.outcome is Expected.MET and run.verdict.verdict is not Verdict.VALID
    is_missed = run.verdict.outcome is Expected.MISSED and run.verdict.verdict is Verdict.VALID
    first = next((check.check_id for check in run.verdict.violated()), "")
    badge = {
        "kept": "\N{CHECK MARK}",
        "lost": f"{_FAILED} {number(lost) if lost else first}",
        "exceeded": f"! {number(lost)}",
        "doubtful": "?",
    }[tone]
    return _Cell(
        href,
        headline(run.verdict),
        thumbnail(run.verdict, next(iter(worst_first(run.verdict, run.story)), None), run.story),
        "foreseen" if is_foreseen else "lost" if is_missed else tone,
        f"{_FAILED} failed" if is_missed else f"{badge} as expected" if is_foreseen else badge,
        ", ".join(note for note in ("" if repetition is None else f"#{repetition}", _pause(run)) if note),
        _RANKS[run.verdict.outcome],
    )


def _blank(cell: UnplayedCell) -> _Cell:
    return _Cell(
        None, cell.reason, Markup(), "unplayed", "not played" if cell.is_playable else "not playable", "", _LAST
    )


def _pause(run: ReportedRun) -> str:
    """The longest time that a workload waited for an acknowledgement, if it is worth mentioning."""
    waited_s = run.verdict.unavailable_s or 0.0
    return f"none acked for {waited_s:.3f} s" if waited_s > PAUSE_S else ""
