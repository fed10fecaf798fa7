"""Progress of a suite on stderr: a live table of what is played on a terminal, otherwise a line per verdict."""

import contextlib
from collections.abc import Iterator

from rich.table import Table

from laststand.chaos.play.runner import RunStatus
from laststand.chaos.suite.cells import Cell
from laststand.chaos.suite.player import Listener
from laststand.chaos.suite.results import CellResult, CellStatus
from laststand.cli.output.live import Clock, is_terminal, lines_of, refreshed, step_of


class _PlainProgress(Listener):
    """For logs: nothing is printed before a verdict; steps are in ``run.log``."""

    def __init__(self, cells: int | None) -> None:
        self._clock = Clock()
        self._cells = cells
        self._judged = 0

    def judged(self, result: CellResult) -> None:
        """Prints a line."""
        self._judged += 1
        number = f"{self._judged}" if self._cells is None else f"{self._judged}/{self._cells}"
        self._clock.print(f"{number} {_line(result)}")


def _line(result: CellResult) -> str:
    if result.status in (CellStatus.SKIPPED, CellStatus.NOT_PLAYED):
        return f"{result.name}: {result.status.value}, {'; '.join(result.reasons)}"
    what = "as expected" if result.status is CellStatus.PASSED else "; ".join(result.reasons)
    return f"{result.name}, seed {result.seed}: {result.verdict}, {what}"


class _LiveProgress(Listener):
    """A line per cell that is played or waits for its verdict, and counts."""

    def __init__(self, cells: int | None) -> None:
        self._clock = Clock()
        self._cells = cells
        self._lines: dict[str, tuple[str, str]] = {}
        self._counts = dict.fromkeys(CellStatus, 0)

    def began(self, cell: Cell) -> None:
        """Adds a line."""
        self._lines[cell.name] = ("", "start")

    def status(self, cell: Cell, status: RunStatus) -> None:
        """Changes a cell's line."""
        self._lines[cell.name] = step_of(status)

    def played(self, cell: Cell) -> None:
        """Changes a cell's line."""
        self._lines[cell.name] = ("", "verify")

    def judged(self, result: CellResult) -> None:
        """Removes a line, and counts."""
        self._lines.pop(result.name, None)
        self._counts[result.status] += 1

    def __rich__(self) -> Table:
        """Returns the present picture; asked for at every refresh."""
        judged = sum(self._counts.values())
        counts = ", ".join(f"{count} {status.value}" for status, count in self._counts.items() if count)
        of_all = f"{judged} cells" if self._cells is None else f"{judged} of {self._cells} cells"
        return lines_of(self._lines, clock=self._clock, last=f"{of_all}{f': {counts}' if counts else ''}")


@contextlib.contextmanager
def suite_progress(cells: int | None) -> Iterator[Listener]:
    """Yields the progress display that suits stderr; ``cells`` is their number, ``None`` if there is no end."""
    if not is_terminal():
        yield _PlainProgress(cells)
        return
    shown = _LiveProgress(cells)
    with refreshed(shown):
        yield shown
