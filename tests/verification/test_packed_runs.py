"""A run whose lines are packed is judged as the same run of JSON lines; ``test_slices`` has runs written by hand."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from laststand.emulator.core.packed.layout import CELL
from laststand.emulator.simulator.run.writer import write_run
from laststand.emulator.simulator.search.explorer import explore
from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from tests.verification.packing import pack_run, without_place
from tests.verification.run_builder import healthy, last_replica_standing
from tests.verification.test_slices import SIMULATED, sliced


def content_of(run: Path) -> bytes:
    return without_place(judged(run))


@pytest.mark.parametrize("options", SIMULATED)
@pytest.mark.parametrize("seed", range(1, 9))
def test_simulated_runs_are_judged_the_same(options: str, seed: int, tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(explore(seed, SIMULATED[options]).plan, run, name="simulated", seed=seed)
    assert content_of(pack_run(run, tmp_path / "packed")) == content_of(run)


@pytest.mark.parametrize("options", SIMULATED)
def test_packed_runs_are_judged_the_same_in_slices(options: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(explore(9, SIMULATED[options]).plan, run, name="simulated", seed=9)
    plan = plan_run(0, open_run_directory(pack_run(run, tmp_path / "packed")))
    for slice_bytes in (1000, 10_007, 100_000):
        assert sliced(plan, slice_bytes) == judge(plan)


def judged(run: Path) -> VerdictReport:
    return judge(plan_run(0, open_run_directory(run))).report


def with_byte(name: str, part: float) -> Callable[[Path], None]:
    """Changes one byte at a place within a file."""

    def change(run: Path) -> None:
        content = bytearray((run / name).read_bytes())
        content[int(len(content) * part)] ^= 1
        (run / name).write_bytes(content)

    return change


def cut(name: str, cells: int) -> Callable[[Path], None]:
    return lambda run: os.truncate(run / name, (run / name).stat().st_size - cells * CELL)


FAULTS: Mapping[str, Callable[[Path], None]] = {
    **{f"a byte of events at {part}": with_byte("events/0-0.packed", part) for part in (0.0, 0.2, 0.5, 0.9)},
    **{f"a byte of the history at {part}": with_byte("history.packed", part) for part in (0.0, 0.3, 0.6)},
    **{f"the last {cells} cells of events": cut("events/0-0.packed", cells) for cells in (1, 8, 20)},
    **{f"the last {cells} cells of the history": cut("history.packed", cells) for cells in (1, 8, 20)},
    "all events": lambda run: os.truncate(run / "events/1-0.packed", 0),
    "the history": lambda run: (run / "history.packed").unlink(),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_packed_file_that_is_not_what_was_written_makes_a_run_unknown(name: str, tmp_path: Path) -> None:
    run = pack_run(healthy(tmp_path / "run").finish(), tmp_path / "packed")
    assert judged(run).verdict is Verdict.VALID
    FAULTS[name](run)
    assert judged(run).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "torn",
    [b"\x04", b"\x04" + bytes(70), b"\x01{" + b"x" * 50, b"\x03[1"],
    ids=["a byte", "a line", "a text", "a word"],
)
def test_a_torn_line_of_a_process_that_was_killed_is_no_fault(torn: bytes, tmp_path: Path) -> None:
    run = pack_run(last_replica_standing(tmp_path / "run", era="kip-966").finish(), tmp_path / "packed")
    before = judged(run)
    for name, is_killed in (("2-0", True), ("0-0", False)):
        with (run / f"events/{name}.packed").open("ab") as file:
            file.write(torn)
        assert (judged(run).verdict is before.verdict) == is_killed
