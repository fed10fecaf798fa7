"""An autopsy as a page: one file that needs no network."""

from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup

from laststand.emulator.autopsy.findings import AutopsyReport, PartitionAutopsy
from laststand.emulator.report.assets import asset, digest, template
from laststand.emulator.report.autopsy_figure import logs_figure
from laststand.emulator.report.autopsy_words import (
    COLUMNS,
    RETURN_COLUMNS,
    details_of,
    metadata_words,
    return_row_of,
    return_words,
    row_of,
    several_logs_words,
    state_words,
    summary,
)
from laststand.emulator.verification.verdict.forms import write_whole

DRAWN_MAX: Final = 200
"""Partitions that are drawn, those first that lose most committed records."""


class _Part(NamedTuple):
    name: str
    state: str
    rows: list[tuple[str | int | None, ...]]
    details: list[str]
    figure: Markup


def render_autopsy(report: AutopsyReport) -> str:
    """Returns an autopsy as HTML."""
    style = asset("report.css")
    apart = [partition for partition in report.partitions if not partition.is_alike]
    return template("autopsy.html.j2").render(
        summary=summary(report),
        metadata=metadata_words(report),
        to_return=return_words(report),
        return_columns=RETURN_COLUMNS,
        return_rows=[return_row_of(broker) for broker in report.brokers_to_return],
        several_logs=list(several_logs_words(report)),
        columns=COLUMNS,
        parts=[_part(partition) for partition in sorted(apart, key=_badness)[:DRAWN_MAX]],
        left_out=max(0, len(apart) - DRAWN_MAX),
        alike=[f"{each.topic}-{each.partition}" for each in report.partitions if each.is_alike],
        directories=report.directories,
        problems=report.problems,
        patterns=Markup(asset("patterns.svg")),
        style=Markup(style),
        style_digest=digest(style),
    )


def write_autopsy(report: AutopsyReport, target: Path) -> None:
    """Writes the page, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    write_whole(target, render_autopsy(report).encode())


def _badness(partition: PartitionAutopsy) -> tuple[int, int, str, int]:
    """The most committed records that any election would lose, then the most records; the worst first."""
    committed = max(candidate.lost_committed for candidate in partition.candidates)
    lost = max(candidate.lost_against_longest for candidate in partition.candidates)
    return -committed, -lost, partition.topic, partition.partition


def _part(partition: PartitionAutopsy) -> _Part:
    return _Part(
        name=f"{partition.topic}-{partition.partition}",
        state=state_words(partition),
        rows=[row_of(candidate, partition) for candidate in partition.candidates],
        details=list(details_of(partition)),
        figure=logs_figure(partition),
    )
