"""Two runs, step by step: what was committed when each step was done, and what was lost."""

import json
from pathlib import Path

import msgspec
import pytest

from laststand.cli.main import cli
from laststand.emulator.report.run_files import ReportedRun
from laststand.emulator.report.step_comparison import Difference, compare_steps
from laststand.emulator.verification.story.run import Step
from tests.unit.report.judged_runs import kept, lost


def steps_of(run: ReportedRun, *texts: str) -> ReportedRun:
    """The run with a step after each tenth of it."""
    tenth = run.story.end_us // 10
    steps = tuple(Step(step=n, text=text, seen="", time_us=n * tenth) for n, text in enumerate(texts, start=1))
    return ReportedRun(
        directory=run.directory,
        verdict=run.verdict,
        story=msgspec.structs.replace(run.story, steps=steps),
        plan=run.plan,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReportedRun, ReportedRun]:
    base = tmp_path_factory.mktemp("store")
    return lost(base / "a" / "1"), kept(base / "b" / "1")


def test_a_run_agrees_with_itself(runs: tuple[ReportedRun, ReportedRun]) -> None:
    run = steps_of(runs[0], "kill", "start")
    found = compare_steps(run, run)
    assert (found.steps, found.differences) == (2, ())
    assert found.sentence == "The two runs agree at all 2 steps that both reached, and in what they lost."


def test_runs_part_at_the_first_step_after_which_another_state_is_committed(
    runs: tuple[ReportedRun, ReportedRun],
) -> None:
    left, right = (steps_of(run, *(f"step {n}" for n in range(1, 11))) for run in runs)
    found = compare_steps(left, right)
    assert found.steps == 10
    first = found.differences[0]
    assert (first.step, first.what, first.left, first.right) == (6, "leader", "1", "2")
    assert found.sentence == (
        "The two runs part at step 6 step 6: orders-0 has leader 1 in kafka-3.9, and 2 in kip-966."
    )
    assert found.differences[-1] == Difference(None, "", "acks=all", "lost", "100 records", "0 records")


def test_only_steps_that_both_reached_are_compared(runs: tuple[ReportedRun, ReportedRun]) -> None:
    found = compare_steps(steps_of(runs[0], "kill", "start"), steps_of(runs[1], "kill", "stop", "start"))
    assert found.steps == 1


def test_a_seed_that_was_drawn_makes_no_other_step(runs: tuple[ReportedRun, ReportedRun]) -> None:
    left, right = (
        steps_of(run, f"{{power_loss: {{node: 2, keep: torn, seed: {seed}}}}}")
        for run, seed in zip(runs, (1, 22), strict=True)
    )
    assert compare_steps(left, right).steps == 1


def test_the_order_of_epochs_counts_and_not_their_numbers(runs: tuple[ReportedRun, ReportedRun]) -> None:
    run = steps_of(runs[0], *(f"step {n}" for n in range(1, 11)))
    (partition,) = run.story.partitions
    later = [msgspec.structs.replace(each, leader_epoch=each.leader_epoch + 7) for each in partition.changes]
    story = msgspec.structs.replace(run.story, partitions=(msgspec.structs.replace(partition, changes=tuple(later)),))
    other = ReportedRun(directory=run.directory, verdict=run.verdict, story=story, plan=run.plan)
    assert compare_steps(run, other).differences == ()


def test_the_command_prints_where_runs_part(
    runs: tuple[ReportedRun, ReportedRun], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    left, right = (str(run.directory) for run in runs)
    assert cli.main(["compare", left, right], standalone_mode=False) == 1
    assert "acks=all has lost 100 records in kafka-3.9, and 0 records in kip-966." in capsys.readouterr().out
    assert cli.main(["compare", left, left, "--json"], standalone_mode=False) == 0
    assert json.loads(capsys.readouterr().out)["differences"] == []
