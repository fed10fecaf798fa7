"""Progress on stderr: a live line per run on a terminal, otherwise a plain line per step."""

import contextlib
import time
from collections.abc import Iterator
from typing import Final, Protocol

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from chaos.play.runner import RunStatus

_REFRESH_PER_SECOND: Final = 8


class Progress(Protocol):
    """Where runs report to."""

    def status(self, status: RunStatus) -> None:
        """A run began or finished a step."""
        ...

    def phase(self, text: str) -> None:
        """All runs together came to something else."""
        ...


class PlainProgress:
    """One line per finished step: for logs."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def status(self, status: RunStatus) -> None:
        """Prints a line for a finished step, and for what happens outside of steps."""
        is_step = 1 <= status.step <= status.steps
        if is_step and status.seen is None:
            return
        number = f"{status.step}/{status.steps} " if is_step else ""
        seen = "" if status.seen is None else f" -> {status.seen}"
        self._print(f"{status.era}: {number}{status.text}{seen}")

    def phase(self, text: str) -> None:
        """Prints a line."""
        self._print(text)

    def _print(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # nobody reads it; the run goes on, and is judged
            click.echo(f"[{time.monotonic() - self._started:6.1f} s] {text}", err=True)


class LiveProgress:
    """A line per run, cut to the terminal's width, and a clock that goes on also while nothing happens."""

    def __init__(self, eras: tuple[str, ...]) -> None:
        self._started = time.monotonic()
        self._lines: dict[str, tuple[str, str]] = dict.fromkeys(eras, ("", "waiting"))
        self._phase = ""

    def status(self, status: RunStatus) -> None:
        """Changes a run's line."""
        number = f"{status.step}/{status.steps}" if 1 <= status.step <= status.steps else ""
        text = status.text if status.seen is None else f"{status.text} -> {status.seen}"
        self._lines[status.era] = (number, text)

    def phase(self, text: str) -> None:
        """Changes the last line."""
        self._phase = text

    def __rich__(self) -> Table:
        """Returns what is shown now; asked for at every refresh."""
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for era, (number, text) in self._lines.items():
            table.add_row(era, number, Text(text))
        table.add_row(f"{time.monotonic() - self._started:.0f} s", "", self._phase)
        return table


@contextlib.contextmanager
def progress(eras: tuple[str, ...]) -> Iterator[Progress]:
    """Yields the kind of progress that suits stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield PlainProgress()
        return
    shown = LiveProgress(eras)
    with Live(shown, console=console, refresh_per_second=_REFRESH_PER_SECOND, transient=True):
        yield shown
