"""Reports of sweeps: medians, schedules that are kept, conjunctions that are missing."""

import statistics
from collections import Counter
from random import Random

import pytest

from laststand.emulator.simulator.oracle.conjunctions import CONJUNCTIONS, MUST_OCCUR
from laststand.emulator.simulator.search.explorer import SweepOptions
from laststand.emulator.simulator.search.sweep import PROGRESS_MIN, SweepReport, median, sweep


@pytest.mark.parametrize("numbers", [[7], [1, 2], [3, 1, 2], [0, 0, 0, 9], [5, 1, 5, 1], [2, 2, 3, 3]])
def test_the_median_of_counts_is_that_of_the_numbers(numbers: list[int]) -> None:
    assert median(Counter(numbers)) == statistics.median(numbers)


def test_the_median_of_many_counts_is_that_of_the_numbers() -> None:
    draw = Random(4711)
    for length in range(1, 60):
        numbers = [draw.randrange(12) for _ in range(length)]
        assert median(Counter(numbers)) == statistics.median(numbers)


def test_a_sweep_reports_medians_and_keeps_no_clean_schedule() -> None:
    report = sweep(iter(range(1, 6)), SweepOptions(profiles=("steady",)))
    assert report.schedules == 5
    assert set(report.medians) == set(PROGRESS_MIN)
    assert report.findings == []
    assert report.steps >= 5 * 250


def test_an_interrupted_sweep_reports_what_it_has() -> None:
    def interrupt(report: SweepReport) -> None:
        raise KeyboardInterrupt

    report = sweep(iter(range(1, 100)), SweepOptions(profiles=("steady",)), on_progress=interrupt)
    assert report.is_interrupted
    assert report.schedules == 10
    assert set(report.medians) == set(PROGRESS_MIN)


def test_a_long_sweep_reports_which_conjunctions_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    short = sweep(iter(range(1, 4)), SweepOptions())
    assert (short.gaps, short.too_little) == ([], [])
    monkeypatch.setattr("laststand.emulator.simulator.search.sweep.PROOF_SCHEDULES", 3)
    monkeypatch.setattr("laststand.emulator.simulator.search.sweep.CONJUNCTION_SCHEDULES", 3)
    report = sweep(iter(range(1, 4)), SweepOptions())
    assert set(MUST_OCCUR) & set(report.too_little)
    assert set(report.too_little) & set(MUST_OCCUR) <= set(report.gaps) <= set(CONJUNCTIONS)


def test_schedules_of_segments_roll_logs_delete_old_records_and_leave_holes() -> None:
    report = sweep(iter(range(1, 21)), SweepOptions(profiles=("segments",)))
    happened = ("segment:rolled", "segment:expired", "power_loss:segment", "power_loss:hole")
    assert [name for name in happened if not report.marks.get(name)] == []
