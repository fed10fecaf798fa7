"""Progress on stderr: a live line per run on a terminal, otherwise a plain line per step."""

import contextlib
from collections.abc import Iterator
from typing import Protocol

from rich.table import Table

from chaos.play.runner import RunStatus
from emulator.cli.live import Clock, is_terminal, lines_of, refreshed, step_of


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
        self._clock = Clock()

    def status(self, status: RunStatus) -> None:
        """Prints a line for a finished step, and for what happens outside of steps."""
        number, text = step_of(status)
        if not number or status.seen is not None:
            self._clock.print(" ".join(part for part in (f"{status.era}:", number, text) if part))

    def phase(self, text: str) -> None:
        """Prints a line."""
        self._clock.print(text)


class LiveProgress:
    """A line per run, cut to the terminal's width, and a clock that goes on also while nothing happens."""

    def __init__(self, eras: tuple[str, ...]) -> None:
        self._clock = Clock()
        self._lines: dict[str, tuple[str, str]] = dict.fromkeys(eras, ("", "waiting"))
        self._phase = ""

    def status(self, status: RunStatus) -> None:
        """Changes a run's line."""
        self._lines[status.era] = step_of(status)

    def phase(self, text: str) -> None:
        """Changes the last line."""
        self._phase = text

    def __rich__(self) -> Table:
        """Returns what is shown now; asked for at every refresh."""
        return lines_of(self._lines, clock=self._clock, last=self._phase)


@contextlib.contextmanager
def progress(eras: tuple[str, ...]) -> Iterator[Progress]:
    """Yields the kind of progress that suits stderr."""
    if not is_terminal():
        yield PlainProgress()
        return
    shown = LiveProgress(eras)
    with refreshed(shown):
        yield shown
