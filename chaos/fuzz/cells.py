"""The cells of random chaos: a separate process draws them, until there are enough or the time is over."""

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from laststand.chaos.fuzz.drawing import FOLDER, Drawn, DrawOptions
from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.chaos.suite.cells import Cell
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.module_command import module_command
from laststand.emulator.parent_death import die_with_parent


class DrawingError(EmulatorError):
    """No further plan can be drawn."""


class DrawnCells:
    """An iterator of cells, and a context manager that ends the process which draws them.

    Each plan and its scenario are files under ``fuzz`` in the store, by seed.

    Attributes:
        drawn: the drawn plans that can be played, by the scenario's name.
        not_playable: numbers of plans that cannot be played on processes, by the first reason.
    """

    def __init__(self, options: DrawOptions, *, store: Path, count: int | None, duration_s: float | None) -> None:
        """Draws nothing yet.

        Args:
            options: the options of drawing.
            store: directory of the files; it must exist.
            count: of cells; ``None`` for without end.
            duration_s: after which no cell is begun; ``None`` for without end.
        """
        self.drawn: dict[str, Drawn] = {}
        self.not_playable: Counter[str] = Counter()
        self._options = msgspec.structs.replace(options, count=count)
        self._folder = store / FOLDER
        self._left = count
        self._ends_at = None if duration_s is None else time.monotonic() + duration_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = module_command("laststand.chaos.fuzz.drawing", msgspec.json.encode(self._options).decode())
        # A process group of its own: Ctrl-C interrupts the process that awaits a cell, and that one ends this process.
        self._process = subprocess.Popen(die_with_parent(command), stdout=subprocess.PIPE, process_group=0)
        self._folder.mkdir(exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def __iter__(self) -> Iterator[Cell]:
        return self

    def __next__(self) -> Cell:
        """Returns the next cell; waits until it is drawn.

        Raises:
            DrawingError: the process that draws has ended.
        """
        while not self._is_over():
            drawn = self._next_drawn()
            if drawn.scenario is None:
                self.not_playable[drawn.missing[0].why] += 1
                continue
            if self._left is not None:
                self._left -= 1
            return self._cell(drawn, drawn.scenario)
        raise StopIteration

    def _is_over(self) -> bool:
        return self._left == 0 or (self._ends_at is not None and time.monotonic() >= self._ends_at)

    def _next_drawn(self) -> Drawn:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise DrawingError(f"the process that draws plans ended with {self._process.wait()}")
        return msgspec.json.decode(line, type=Drawn)

    def _cell(self, drawn: Drawn, text: str) -> Cell:
        path = self._folder / f"{drawn.seed}.yaml"
        path.write_text(text, encoding="utf-8")
        path.with_suffix(".plan.txt").write_text(drawn.plan, encoding="utf-8")
        scenario = load_scenario(path)
        self.drawn[scenario.name] = drawn
        return Cell(
            scenario=scenario,
            era=self._options.era,
            changed=tuple(f"{name}={text}" for name, text in self._options.switches),
            repetition=1,
            seed=drawn.seed,
        )
