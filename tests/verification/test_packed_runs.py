"""A run whose lines are packed is judged as the same run of JSON lines."""

from pathlib import Path

import msgspec
import pytest

from emulator.core.packed.layout import SUFFIX
from emulator.simulator.explorer import explore
from emulator.simulator.run_writer import write_run
from emulator.verification.judge import judge
from emulator.verification.run_directory import open_run_directory
from emulator.verification.run_plan import plan_run
from tests.verification.packing import pack_run
from tests.verification.test_slices import SIMULATED, WRITTEN, sliced


def told_of(run: Path) -> bytes:
    """What a verdict says, wherever the run is."""
    report = judge(plan_run(0, open_run_directory(run))).report
    content = msgspec.json.encode(msgspec.structs.replace(report, run="", scenario=""))
    return content.replace(SUFFIX.encode(), b".jsonl")


@pytest.mark.parametrize("name", WRITTEN)
def test_hand_written_runs_are_judged_the_same(name: str, tmp_path: Path) -> None:
    run = WRITTEN[name](tmp_path / "run")
    assert told_of(pack_run(run, tmp_path / "packed")) == told_of(run)


@pytest.mark.parametrize("options", SIMULATED)
@pytest.mark.parametrize("seed", range(1, 9))
def test_simulated_runs_are_judged_the_same(options: str, seed: int, tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(explore(seed, SIMULATED[options]).plan, run, name="simulated", seed=seed)
    assert told_of(pack_run(run, tmp_path / "packed")) == told_of(run)


@pytest.mark.parametrize("options", SIMULATED)
def test_packed_runs_are_judged_the_same_in_slices(options: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(explore(9, SIMULATED[options]).plan, run, name="simulated", seed=9)
    plan = plan_run(0, open_run_directory(pack_run(run, tmp_path / "packed")))
    for slice_bytes in (1000, 10_007, 100_000):
        assert sliced(plan, slice_bytes) == judge(plan)
