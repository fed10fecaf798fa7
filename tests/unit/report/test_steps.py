"""Steps that a long story keeps, and its note about the others; who cut a log to follow whom."""

from pathlib import Path

import pytest

from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.report.headline import headline
from laststand.emulator.report.run_files import read_reported_run
from laststand.emulator.report.steps import STEPS_MAX, LanePlace, StoryStep, Tone, thinned
from laststand.emulator.simulator.run.writer import write_run
from tests.unit.report.judged_runs import judged

PLANS = Path(__file__).parents[2] / "simulation" / "regressions"


def story(tones: str) -> list[StoryStep]:
    """Steps that are told (t), led to the loss (l) or prevented it (s)."""
    names = {tone.value[0]: tone for tone in Tone}
    return [
        StoryStep(time_us=place, tone=names[tone], title=str(place), text="It was so.", place=LanePlace("leader", 0.5))
        for place, tone in enumerate(tones)
    ]


@pytest.mark.parametrize(
    ("tones", "kept"),
    [
        ("nnl", "0 1 2"),
        ("n" + "l" * 12, "0 1 2 3 4 9 10 11 12"),
        ("nnnnnnnnnnnnnl", "0 1 2 3 4 10 11 12 13"),
        ("nnnnnlnnnnlnnnnnnn", "0 1 2 3 5 10 15 16 17"),
        ("nnnnnnnsnnnnnnnnnnnnn", "0 1 2 3 7 17 18 19 20"),
    ],
)
def test_the_first_step_and_those_that_decided_are_kept(tones: str, kept: str) -> None:
    found = thinned(story(tones))
    assert " ".join(step.title for step in found) == kept
    assert len(found) <= STEPS_MAX


def test_a_story_says_where_steps_are_left_out() -> None:
    found = thinned(story("n" + "l" * 12))
    assert [(step.title, step.text) for step in found if step.text != "It was so."] == [
        ("4", "It was so. 4 steps after this one are left out.")
    ]


def test_a_leader_that_had_cut_its_own_log_did_not_follow_itself(tmp_path: Path) -> None:
    name = "s01-a-follower-cuts-at-its-high-watermark"
    write_run(parse_plan((PLANS / f"{name}.txt").read_text()), tmp_path / "run", name=name)
    run = read_reported_run(judged(tmp_path / "run"))
    assert headline(run.verdict, list(run.story.partitions), run.story).cause == (
        "Broker 1 lost power with nothing flushed; broker 2 cut its log to follow broker 1; "
        "broker 2 was elected leader with an empty log; broker 0 cut its log to follow it."
    )
