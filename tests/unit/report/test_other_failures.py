"""Reports on failures that no lost copy explains: a power loss that undid a truncation, a stray log."""

from pathlib import Path

import pytest

from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.report.axes import RecordAxis
from laststand.emulator.report.headline import headline
from laststand.emulator.report.run_files import ReportedRun, read_reported_run
from laststand.emulator.report.steps import StoryStep, Tone, story_steps
from laststand.emulator.simulator.run.writer import write_run
from tests.unit.report.judged_runs import judged

PLANS = Path(__file__).parents[2] / "simulation" / "regressions"


def played(name: str, directory: Path) -> ReportedRun:
    write_run(parse_plan((PLANS / f"{name}.txt").read_text()), directory, name=name)
    return read_reported_run(judged(directory))


def told(run: ReportedRun) -> tuple[str, list[StoryStep]]:
    """Returns the sentence of cause, and the steps."""
    [partition] = run.story.partitions
    steps = story_steps(run.verdict, partition, run.story, RecordAxis(partition))
    return headline(run.verdict, [partition], run.story).cause, steps


@pytest.mark.parametrize(
    ("name", "cause", "steps"),
    [
        (
            "truncation-undone-by-power-loss",
            "A power loss undid the truncation of broker 0; broker 0 joined the ISR and was elected leader "
            "with records of epoch 0 at their offsets.",
            [
                (Tone.NEUTRAL, "1 record is acknowledged with acks=all"),
                (Tone.NEUTRAL, "Broker 0 cuts its log"),
                (Tone.LED, "Broker 0 loses power"),
                (Tone.LED, "Broker 0 joins the ISR without them"),
                (Tone.LED, "Broker 0 is elected without them"),
            ],
        ),
        (
            "roles-of-the-process-before",
            "Broker 1 led again with a log that ended at 2; broker 0 joined the ISR and was elected leader with "
            "records of epoch 0 at their offsets.",
            [
                (Tone.NEUTRAL, "4 records are acknowledged with acks=all"),
                (Tone.NEUTRAL, "Broker 1 loses power"),
                (Tone.LED, "Broker 1 leads again with a log that ends at 2"),
                (Tone.NEUTRAL, "Only broker 1 is in sync"),
                (Tone.LED, "Broker 0 joins the ISR without them"),
                (Tone.LED, "Broker 0 is elected without them"),
            ],
        ),
    ],
)
def test_records_that_are_held_and_were_not_read_are_missing_in_a_leader_that_the_story_names(
    name: str, cause: str, steps: list[tuple[Tone, str]], tmp_path: Path
) -> None:
    run = played(name, tmp_path / "run")
    sentence, found = told(run)
    assert sentence == cause
    assert [(step.tone, step.title) for step in found] == steps
    assert all(step.time_us <= run.story.end_us for step in found)


def test_a_log_that_nobody_deletes_is_what_a_run_that_lost_nothing_is_about(tmp_path: Path) -> None:
    cause, steps = told(played("s26-stray-cleanup-off", tmp_path / "run"))
    assert cause == "Broker 2 is no replica any more, and still has a log that nobody deletes."
    assert (steps[0].title, steps[0].text) == (
        "Broker 2 is no replica any more",
        "The replicas are 0 1 3. Its log is still there in the end.",
    )


def test_a_replica_that_deletes_its_stray_is_no_matter(tmp_path: Path) -> None:
    plan = (PLANS / "s26-stray-cleanup-off.txt").read_text().replace(" stray_cleanup=off", "")
    write_run(parse_plan(plan), tmp_path / "run", name="deleted")
    cause, steps = told(read_reported_run(judged(tmp_path / "run")))
    assert "no replica" not in cause
    assert "Broker 2 is no replica any more" not in [step.title for step in steps]
