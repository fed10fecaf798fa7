"""Groups of nodes: what they are, and that the seed alone decides what is drawn."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from laststand.chaos.play.recorded_plan import PlayedStep
from laststand.chaos.play.step_player import StepPlayer
from laststand.chaos.play.waiting import StepError
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import read_scenario
from tests.unit.chaos.play.virtual_time import ready

TEXT = """\
name: groups
cluster:
  brokers: 5
  properties: {{broker.rack: "a, b"}}
topics: [{{name: orders, replicas: [[0, 1, 2]]}}]
workload: {{producers: [{{acks: all, rate: 0}}]}}
steps:
{steps}
"""


def scenario_of(steps: Sequence[str]) -> Scenario:
    return read_scenario(Path("groups.yaml"), TEXT.format(steps="\n".join(f"  - {step}" for step in steps)))


async def _play(scenario: Scenario, directory: Path, seed: int) -> list[PlayedStep]:
    async with ready(scenario, directory, seed=seed) as target:
        player = StepPlayer(target=target, seed=seed)
        return [await player.play(number, step) for number, step in enumerate(scenario.steps, start=1)]


def played(directory: Path, *steps: str, seed: int = 1) -> list[str]:
    return [each.text for each in asyncio.run(_play(scenario_of(steps), directory, seed))]


def test_a_rack_is_all_of_its_brokers(tmp_path: Path) -> None:
    assert played(tmp_path, "kill: {rack: b}") == ["{kill: {nodes: [1, 3]}}"]


def test_the_seed_decides_and_ids_are_recorded(tmp_path: Path) -> None:
    steps = ("kill: {random: 2 of isr}", "start: {any: 2}", "cut: {from: any(1), to: any(1)}")
    drawn = [played(tmp_path, *steps, seed=seed) for seed in range(8)]
    assert drawn == [played(tmp_path, *steps, seed=seed) for seed in range(8)]
    assert len({kill for kill, *_ in drawn}) == 3, "each two of three"
    for kill, start, cut in drawn:
        assert start == kill.replace("kill", "start"), "only these two are down"
        assert len({word for word in cut if word.isdecimal()}) == 2, "a link has two ends"


def test_names_are_given_to_what_was_drawn(tmp_path: Path) -> None:
    kill, start = played(tmp_path, "kill: {random: 1 of followers, as: victim}", "start: {node: victim}")
    assert kill in ("{kill: {node: 1}}", "{kill: {node: 2}}")
    assert start == kill.replace("kill", "start")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("kill: {rack: c}", r"rack\(c\): there are none"),
        ("kill: {random: 1 of elr}", r"random\(1 of elr\(orders-0\)\): there are only 0"),
        ("start: {any: 1}", r"any\(1\): there are only 0"),
        ("resume: {any: 1}", r"any\(1\): there are only 0"),
        ("kill: {nodes: [0, 1, 2, random(1 of isr)]}", "there are only 0"),
    ],
)
def test_a_group_that_is_too_small_ends_the_steps(step: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(StepError, match=reason):
        played(tmp_path, step)
