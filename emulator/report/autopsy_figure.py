"""The logs of a partition side by side: where they part, and how far each of them reaches."""

from typing import Final

from markupsafe import Markup

from laststand.emulator.autopsy.findings import CandidateReport, PartitionAutopsy
from laststand.emulator.report.markup import element, line, rect, text, title
from laststand.emulator.report.numbers import number

_WIDTH: Final = 900.0
_LEFT: Final = 80.0
_RIGHT: Final = 40.0
_ROW: Final = 26.0
_BAR: Final = 16.0
_BEFORE: Final = 0.25
"""Width of the part that all logs share, drawn before they part, as a share of the part after it."""


class _Axis:
    def __init__(self, first: int, end: int) -> None:
        self.first = first
        self._scale = (_WIDTH - _LEFT - _RIGHT) / max(end - first, 1)

    def place(self, offset: int) -> float:
        return _LEFT + max(offset - self.first, 0) * self._scale


def logs_figure(partition: PartitionAutopsy) -> Markup:
    """Draws the logs, from shortly before the first offset at which two of them part."""
    end = max(candidate.log_end_offset for candidate in partition.candidates)
    partings = [loss.parting.offset for candidate in partition.candidates for loss in candidate.losses]
    first_parting = min(partings, default=0)
    axis = _Axis(max(int(first_parting - (end - first_parting) * _BEFORE), 0), end)
    rows = [_row(candidate, partition, axis, top=place * _ROW) for place, candidate in enumerate(partition.candidates)]
    height = len(rows) * _ROW + 18
    marks = [
        text(number(offset), axis.place(offset), height - 4, "side", anchor="middle")
        for offset in sorted({*partings, end})
    ]
    return Markup(element("svg", *rows, *marks, viewBox=f"0 0 {_WIDTH:.0f} {height:.0f}", class_="figure", role="img"))


def _row(candidate: CandidateReport, partition: PartitionAutopsy, axis: _Axis, *, top: float) -> str:
    parted = _parts_from_longest(candidate, partition)
    start, end = candidate.log_start_offset, candidate.log_end_offset
    shapes = [
        text(f"broker {candidate.broker_id}", 0, top + _BAR - 4, "label"),
        _span(axis, start, min(parted, end), top, "copies-3", "as in the longest log"),
        _span(axis, max(parted, start), end, top, "copies-1", "not in the longest log"),
    ]
    if candidate.high_watermark is not None and candidate.high_watermark >= axis.first:
        place = axis.place(candidate.high_watermark)
        shapes.append(line(place, top - 2, place, top + _BAR + 2, "promise"))
    return element("g", *shapes)


def _parts_from_longest(candidate: CandidateReport, partition: PartitionAutopsy) -> int:
    """Returns the offset from which a log differs from the longest one."""
    longest = next(each for each in partition.candidates if each.folder == partition.longest_folder)
    found = [loss.parting.offset for loss in longest.losses if loss.held_in == candidate.folder]
    return found[0] if found else candidate.log_end_offset


def _span(axis: _Axis, start: int, end: int, top: float, class_: str, words: str) -> str:
    if end <= start:
        return ""
    left = axis.place(start)
    return rect(
        left, top, axis.place(end) - left, _BAR, class_, title(f"{number(start)} to {number(end - 1)}: {words}")
    )
