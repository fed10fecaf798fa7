"""The gate: the same seed in two fresh processes, with different hash seeds, gives the same event log byte by byte."""

import os
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest

from laststand.emulator.simulator.run.journal import Journal
from laststand.emulator.simulator.run.simulation import Simulation
from laststand.emulator.simulator.search.explorer import SweepOptions, explore

ROOT = Path(__file__).parents[2]


def event_log(seed: int, *, hash_seed: str) -> list[bytes]:
    """Returns the lines of a seed's run in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.simulation.play_seed", str(seed)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    return result.stdout.splitlines()


def first_difference(first: list[bytes], second: list[bytes]) -> str | None:
    """Names the first step at which two runs differ."""
    for index, (one, other) in enumerate(zip_longest(first, second)):
        if one != other:
            return f"line {index}: {one!r} became {other!r}"
    return None


@pytest.mark.parametrize("seed", [2, 16, 45])
def test_same_seed_same_run(seed: int) -> None:
    first, second = event_log(seed, hash_seed="1"), event_log(seed, hash_seed="4242")
    assert len(first) > 100
    assert first_difference(first, second) is None


def test_a_difference_is_named() -> None:
    assert first_difference([b"a", b"b"], [b"a", b"c"]) == "line 1: b'b' became b'c'"
    assert first_difference([b"a"], [b"a", b"c"]) == "line 1: None became b'c'"
    assert event_log(2, hash_seed="1") != event_log(3, hash_seed="1")


@pytest.mark.parametrize("seed", range(6))
def test_a_schedule_replays_from_its_plan(seed: int) -> None:
    explored, replayed = Journal(), Journal()
    schedule = explore(seed, SweepOptions(), journal=explored)
    simulation = Simulation(schedule.plan, journal=replayed)
    simulation.play_plan()
    assert first_difference(list(explored.lines()), list(replayed.lines())) is None
    assert explored.digest() == replayed.digest()
