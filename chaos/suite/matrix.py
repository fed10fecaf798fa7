"""A suite's results as a matrix, a row per scenario and a column per era and driver, as text cells and as Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from laststand.chaos.suite.results import CellResult, CellStatus, SuiteReport
from laststand.emulator.report.numbers import plural

_MARKS = {
    CellStatus.PASSED: "✓",
    CellStatus.FAILED: "✗",
    CellStatus.UNKNOWN: "?",
    CellStatus.SKIPPED: "-",
    CellStatus.NOT_PLAYED: "-",
}
_WORST_FIRST = (
    CellStatus.FAILED,
    CellStatus.UNKNOWN,
    CellStatus.NOT_PLAYED,
    CellStatus.PASSED,
    CellStatus.SKIPPED,
)
_SHOWN_S = 0.05
"""Seconds without a leader, or below min ISR, that are worth a mention."""

_NAMES_MAX = 3
"""Scenarios that a line about several names."""

_PICTURES_MAX = 40
"""Cells that did not pass of which a summary shows pictures."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """The results of a suite by row and column.

    Attributes:
        columns: the eras, each with its driver if there are several.
        rows: by scenario a text per column; empty if there is no such cell.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def matrix(report: SuiteReport, *, has_times: bool = True) -> Matrix:
    """Returns the matrix; the repetitions of a cell share a place. Without times a place is a few characters wide."""
    columns = tuple(dict.fromkeys(cell.column for cell in report.cells))
    places: dict[str, dict[str, list[CellResult]]] = {}
    for cell in report.cells:
        places.setdefault(cell.scenario, {}).setdefault(cell.column, []).append(cell)
    rows = tuple(
        (scenario, tuple(_place(cells[column], has_times=has_times) if column in cells else "" for column in columns))
        for scenario, cells in places.items()
    )
    return Matrix(columns=columns, rows=rows)


def _place(cells: Sequence[CellResult], *, has_times: bool) -> str:
    """Returns a matrix cell: the worst repetition's result, the times of all, and how many of them passed."""
    worst = min(cells, key=lambda cell: _WORST_FIRST.index(cell.status))
    if worst.verdict is None:
        return f"{_MARKS[worst.status]} {worst.status.value}"
    passed = sum(cell.status is CellStatus.PASSED for cell in cells)
    mark = f"{_MARKS[worst.status]}{f' {passed}/{len(cells)}' if len(cells) > 1 else ''}"
    lost = [f"{worst.lost} lost"] if worst.lost else []
    if not has_times:
        return f"{mark} {lost[0] if lost else worst.verdict}"
    parts = [worst.verdict, *([] if worst.guarantee is None else [worst.guarantee]), *lost]
    if times := [cell.duration_s for cell in cells if cell.duration_s is not None]:
        parts.append(f"{median(times):.1f} s")
    parts += _availability(cells)
    return f"{mark} {', '.join(parts)}"


def _availability(cells: Sequence[CellResult]) -> Iterator[str]:
    """Yields the longest times of all repetitions without acknowledgements, leader or min ISR, and after a fault."""
    for form, times, shortest_s in (
        ("no ack for {:.1f} s", [cell.unavailable_s for cell in cells], 0.0),
        ("no leader for {:.1f} s", [cell.leaderless_s for cell in cells], _SHOWN_S),
        ("below min ISR for {:.1f} s", [cell.below_min_isr_s for cell in cells], _SHOWN_S),
        ("ack {:.1f} s after a fault", [cell.fault_to_ack_s for cell in cells], 0.0),
    ):
        longest = max((each for each in times if each is not None), default=None)
        if longest is not None and longest >= shortest_s:
            yield form.format(longest)


def totals(report: SuiteReport) -> str:
    """Returns the number of cells with each result, in one line."""
    parts = [f"{report.count(CellStatus.PASSED)} as expected"]
    for status, words in (
        (CellStatus.FAILED, "not as expected"),
        (CellStatus.UNKNOWN, "unknown"),
        (CellStatus.SKIPPED, "skipped"),
        (CellStatus.NOT_PLAYED, "not played"),
    ):
        if count := report.count(status):
            parts.append(f"{count} {words}")
    part = "" if report.shard is None else f"shard {report.shard}: "
    return f"{part}{plural(len(report.cells), 'cell')}: {', '.join(parts)}, in {report.duration_s:.1f} s"


def skipped(report: SuiteReport) -> list[str]:
    """Returns a line for each reason for which cells were skipped, with the numbers of cells and scenarios."""
    found: dict[str, list[CellResult]] = {}
    for cell in report.cells:
        if cell.status is CellStatus.SKIPPED:
            found.setdefault("; ".join(cell.reasons), []).append(cell)
    return [f"skipped {len(cells)}: {reason} ({_names(cells)})" for reason, cells in found.items()]


def _names(cells: Sequence[CellResult]) -> str:
    names = list(dict.fromkeys(cell.scenario for cell in cells))
    more = [f"and {len(names) - _NAMES_MAX} more"] if len(names) > _NAMES_MAX else []
    return ", ".join([*names[:_NAMES_MAX], *more])


def seeds(report: SuiteReport) -> str | None:
    """Returns the seeds of a suite that plays its cells several times, in one line; ``None`` for any other."""
    used = {cell.repetition: cell.seed for cell in report.cells}
    if len(used) < 2:
        return None
    return f"seeds: {', '.join(f'{seed} (#{repetition})' for repetition, seed in sorted(used.items()))}"


def details(report: SuiteReport) -> list[str]:
    """Returns lines about the cells that did not pass; a line for each, and its details indented."""
    return [line for cell in _not_passed(report) for line in _failure_lines(cell)]


def _not_passed(report: SuiteReport) -> list[CellResult]:
    return [cell for cell in report.cells if cell.status in (CellStatus.FAILED, CellStatus.UNKNOWN)]


def _failure_lines(cell: CellResult) -> list[str]:
    first, *others = cell.failure_lines()
    return [first, *(f"  {line}" for line in others)]


def _pictured(report: SuiteReport) -> list[str]:
    """Returns ``details`` with the pictures of the first cells; GitHub limits a summary to a megabyte."""
    lines = []
    for place, cell in enumerate(_not_passed(report)):
        lines += _failure_lines(cell)
        if place < _PICTURES_MAX and cell.picture:
            lines += ["", *(f"  {line}" for line in cell.picture), ""]
    return lines


def markdown(report: SuiteReport) -> str:
    """Returns matrix, totals and details as Markdown, with pictures of the cells that did not pass."""
    table = matrix(report)
    lines = [
        f"| scenario | {' | '.join(table.columns)} |",
        f"|---|{'---|' * len(table.columns)}",
        *(f"| {_escaped(name)} | {' | '.join(_escaped(text) for text in texts)} |" for name, texts in table.rows),
        "",
        totals(report),
    ]
    if used := seeds(report):
        lines += ["", used]
    if left_out := skipped(report):
        lines += ["", *(f"- {_escaped(line)}" for line in left_out)]
    if found := _pictured(report):
        lines += ["", "```", *found, "```"]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
