"""Progress of a suite on stderr: a live table of what is played on a terminal, otherwise a line per verdict."""

import contextlib
import time
from collections.abc import Iterator
from typing import Final

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from chaos.play.runner import RunStatus
from chaos.suite.cells import Cell
from chaos.suite.player import Listener
from chaos.suite.results import CellResult, CellStatus

_REFRESH_PER_SECOND: Final = 8


class _PlainProgress:
    """For logs."""

    def __init__(self, cells: int | None) -> None:
        self._started = time.monotonic()
        self._cells = cells
        self._judged = 0

    def began(self, cell: Cell) -> None:
        """Nothing is printed before the verdict."""

    def status(self, cell: Cell, status: RunStatus) -> None:
        """Steps are in ``run.log``."""

    def played(self, cell: Cell) -> None:
        """Nothing is printed before the verdict."""

    def judged(self, result: CellResult) -> None:
        """Prints a line."""
        self._judged += 1
        number = f"{self._judged}" if self._cells is None else f"{self._judged}/{self._cells}"
        with contextlib.suppress(BrokenPipeError):  # nobody reads it; the suite goes on
            click.echo(f"[{time.monotonic() - self._started:6.1f} s] {number} {_line(result)}", err=True)


def _line(result: CellResult) -> str:
    if result.status in (CellStatus.SKIPPED, CellStatus.NOT_PLAYED):
        return f"{result.name}: {result.status.value}, {'; '.join(result.reasons)}"
    what = "as expected" if result.status is CellStatus.PASSED else "; ".join(result.reasons)
    return f"{result.name}, seed {result.seed}: {result.verdict}, {what}"


class _LiveProgress:
    """A line per cell that is played or waits for its verdict, and counts."""

    def __init__(self, cells: int | None) -> None:
        self._started = time.monotonic()
        self._cells = cells
        self._lines: dict[str, tuple[str, str]] = {}
        self._counts = dict.fromkeys(CellStatus, 0)

    def began(self, cell: Cell) -> None:
        """Adds a line."""
        self._lines[cell.name] = ("", "start")

    def status(self, cell: Cell, status: RunStatus) -> None:
        """Changes a cell's line."""
        number = f"{status.step}/{status.steps}" if 1 <= status.step <= status.steps else ""
        self._lines[cell.name] = (number, status.text if status.seen is None else f"{status.text} -> {status.seen}")

    def played(self, cell: Cell) -> None:
        """Changes a cell's line."""
        self._lines[cell.name] = ("", "verify")

    def judged(self, result: CellResult) -> None:
        """Removes a line, and counts."""
        self._lines.pop(result.name, None)
        self._counts[result.status] += 1

    def __rich__(self) -> Table:
        """Returns what is shown now; asked for at every refresh."""
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for name, (number, text) in self._lines.items():
            table.add_row(name, number, Text(text))
        judged = sum(self._counts.values())
        counts = ", ".join(f"{count} {status.value}" for status, count in self._counts.items() if count)
        of_all = f"{judged} cells" if self._cells is None else f"{judged} of {self._cells} cells"
        table.add_row(f"{time.monotonic() - self._started:.0f} s", "", f"{of_all}{f': {counts}' if counts else ''}")
        return table


@contextlib.contextmanager
def suite_progress(cells: int | None) -> Iterator[Listener]:
    """Yields the kind of progress that suits stderr; ``cells`` is how many there are, ``None`` if there is no end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _PlainProgress(cells)
        return
    shown = _LiveProgress(cells)
    with Live(shown, console=console, refresh_per_second=_REFRESH_PER_SECOND, transient=True):
        yield shown
