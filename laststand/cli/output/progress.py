"""Progress on stderr: a live panel per run on a terminal, otherwise a plain line per step."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Group

from laststand.chaos.play.runner import Run, RunStatus
from laststand.cli.output.live import Clock, is_terminal, lines_of, refreshed, step_of
from laststand.cli.output.run_panel import RunPanel


class Progress(Protocol):
    """The output that runs report to."""

    def watch(self, runs: Sequence[Run]) -> None:
        """These runs are about to be played."""
        ...

    def status(self, status: RunStatus) -> None:
        """A run began or finished a step."""
        ...

    def phase(self, text: str) -> None:
        """All runs together began another phase."""
        ...


class PlainProgress:
    """One line per finished step: for logs."""

    def __init__(self) -> None:
        self._clock = Clock()

    def watch(self, runs: Sequence[Run]) -> None:
        """Prints nothing: only steps have lines."""

    def status(self, status: RunStatus) -> None:
        """Prints a line for a finished step, and for what happens outside of steps."""
        number, text = step_of(status)
        if not number or status.seen is not None:
            self._clock.print(" ".join(part for part in (f"{status.run}:", number, text) if part))

    def phase(self, text: str) -> None:
        """Prints a line."""
        self._clock.print(text)


class LiveProgress:
    """A panel per run, and a clock that also runs while nothing happens."""

    def __init__(self, runs: tuple[str, ...]) -> None:
        self._clock = Clock()
        self._lines: dict[str, tuple[str, str]] = dict.fromkeys(runs, ("", "waiting"))
        self._phase = ""
        self._panels: list[RunPanel] = []

    def watch(self, runs: Sequence[Run]) -> None:
        """Shows the committed states of the runs' controllers, from now on."""
        self._panels = [RunPanel(run, clock=self._clock) for run in runs]

    def status(self, status: RunStatus) -> None:
        """Changes a run's line."""
        self._lines[status.run] = step_of(status)

    def phase(self, text: str) -> None:
        """Changes the last line; the runs are over."""
        self._phase = text
        self._panels = []

    def __rich__(self) -> Group:
        """Returns the present picture; asked for at every refresh."""
        lines = lines_of(self._lines, clock=self._clock, last=self._phase)
        return Group(*(panel.shown() for panel in self._panels), lines)


@contextlib.contextmanager
def progress(runs: tuple[str, ...]) -> Iterator[Progress]:
    """Yields the kind of progress that suits stderr."""
    if not is_terminal():
        yield PlainProgress()
        return
    shown = LiveProgress(runs)
    with refreshed(shown):
        yield shown
