"""Cells come from a process that draws them, until there are enough."""

import os
from pathlib import Path

import pytest

from laststand.chaos.fuzz.cells import DrawingError, DrawnCells
from laststand.chaos.fuzz.drawing import DrawOptions
from laststand.emulator.core.switches import DEFAULT_ERA

OPTIONS = DrawOptions(first_seed=4, era=DEFAULT_ERA, profiles=("last-standing",))


def test_there_are_as_many_as_asked_for_and_their_files_stay(tmp_path: Path) -> None:
    with DrawnCells(OPTIONS, store=tmp_path, count=2, duration_s=None) as drawn:
        cells = list(drawn)
        assert drawn._process is not None
        assert drawn._process.wait() == 0
    assert len(cells) == 2
    for cell in cells:
        assert cell.scenario.path == tmp_path / f"fuzz/{cell.seed}.yaml"
        assert (tmp_path / f"fuzz/{cell.seed}.plan.txt").read_text() == drawn.drawn[cell.scenario.name].plan


def test_a_signal_of_the_terminal_does_not_interrupt_drawing_workers(tmp_path: Path) -> None:
    with DrawnCells(OPTIONS, store=tmp_path, count=1, duration_s=None) as drawn:
        assert drawn._process is not None
        assert os.getpgid(drawn._process.pid) != os.getpgrp()


def test_none_is_begun_once_the_time_is_over(tmp_path: Path) -> None:
    with DrawnCells(OPTIONS, store=tmp_path, count=None, duration_s=0.0) as drawn:
        assert list(drawn) == []


def test_a_process_that_ends_is_an_error_and_no_end(tmp_path: Path) -> None:
    unknown = DrawOptions(first_seed=1, era="kafka-99")
    with (
        DrawnCells(unknown, store=tmp_path, count=1, duration_s=None) as drawn,
        pytest.raises(DrawingError, match="ended with 1"),
    ):
        next(drawn)
