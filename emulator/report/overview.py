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
from emulator.report.words import ACKS_ALL, number, plural, seconds
from emulator.report.worst_first import worst_first
from emulator.verification.guarantee import Guarantee
from emulator.verification.verdict import Verdict, VerdictReport, headline
from emulator.verification.verdict_forms import write_whole

_UNNAMED: Final = "unnamed era"


class UnplayedCell(NamedTuple):
    """A scenario and an era of which there is no run, why, and whether there could have been one."""

    scenario: str
    era: str
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
    era: str
    broken: int


class _Row(NamedTuple):
    name: str
    cells: list[_Cell | None]


class _Group(NamedTuple):
    name: str
    rows: list[_Row]


def write_overview(pages: Sequence[tuple[Path, Path]], target: Path, *, unplayed: Sequence[UnplayedCell] = ()) -> None:
    """Writes a page with a cell for each run; of several of one scenario and era, the one that lost most.

    Args:
        pages: run directories, and where the report on each is.
        target: the file, which links to these reports.
        unplayed: cells without a run.

    Raises:
        ConfigError: a run was not judged, or by another version of this program.
        OSError: the file cannot be written.
    """
    found: dict[tuple[str, str], tuple[ReportedRun, Path]] = {}
    for directory, page in pages:
        run = read_reported_run(directory)
        place = run.verdict.scenario, run.verdict.era or _UNNAMED
        if place not in found or _badness(run.verdict) > _badness(found[place][0].verdict):
            found[place] = run, page
    cells = {(each.scenario, each.era): _blank(each) for each in unplayed}
    cells |= {place: _cell(run, _relative(page, target)) for place, (run, page) in found.items()}
    eras = sorted({era for _, era in cells}, key=lambda era: ([*ALL_ERAS, era].index(era), era))
    scenarios = sorted({scenario for scenario, _ in cells})
    style = asset("report.css")
    content = template("overview.html.j2").render(
        runs=plural(len(pages), "run"),
        scenarios=plural(len(scenarios), "scenario"),
        columns=[
            _Column(era, sum(_is_broken(run) for (_, own), (run, _) in found.items() if own == era)) for era in eras
        ],
        groups=[
            _Group(
                name,
                [_Row(each.rpartition("/")[2], [cells.get((each, era)) for era in eras]) for each in members],
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
    """How long nothing was acknowledged with acks=all, of the partition that waited longest."""
    waits = [
        sum(pause.value for pause in acked.pauses)
        for partition in run.story.partitions
        for acked in partition.acknowledged
        if acked.acks == ACKS_ALL
    ]
    return f"none acked for {seconds(max(waits))}" if any(waits) else ""
