"""Parts of live and plain progress on stderr: lines with a step each, a clock, and a terminal that is refreshed."""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

import click
from rich.console import Console, RichCast
from rich.live import Live
from rich.table import Table
from rich.text import Text

from laststand.chaos.play.runner import RunStatus

_REFRESH_PER_SECOND: Final = 8


class Clock:
    """The time since it was made."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Returns the seconds since the clock was made."""
        return time.monotonic() - self._started

    def print(self, text: str) -> None:
        """Prints a line with the time on stderr."""
        click.echo(f"[{self.seconds:6.1f} s] {text}", err=True)


def step_of(status: RunStatus) -> tuple[str, str]:
    """Returns the number of a step (empty outside of steps), and its text with the observed state."""
    number = f"{status.step}/{status.steps}" if 1 <= status.step <= status.steps else ""
    return number, status.text if status.seen is None else f"{status.text} -> {status.seen}"


def lines_of(steps: Mapping[str, tuple[str, str]], *, clock: Clock, last: str) -> Table:
    """Returns a line for each name, cut to the terminal's width, and one with the time."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for name, (number, text) in steps.items():
        table.add_row(name, number, Text(text))
    table.add_row(f"{clock.seconds:.0f} s", "", last)
    return table


def is_terminal() -> bool:
    """Returns whether stderr is a terminal."""
    return Console(stderr=True).is_terminal


def refreshed(shown: RichCast) -> AbstractContextManager[Live]:
    """Shows an object on the terminal while the context lasts, and renders it again and again."""
    console = Console(stderr=True)
    return Live(shown, console=console, refresh_per_second=_REFRESH_PER_SECOND, transient=True)
