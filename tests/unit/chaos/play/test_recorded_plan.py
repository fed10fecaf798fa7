"""The recorded plan is a scenario that can be played again."""

from pathlib import Path

import pytest

from chaos.play.recorded_plan import PlayedStep, fill_in, write_plan
from chaos.scenario.scenario import Kill, PowerLoss
from chaos.scenario.scenario_file import load_scenario

TEXT = """\
name: test/story
cluster: {brokers: 3}
topics: [{name: orders, replicas: [[0, 1, 2]]}]
workload: {producers: [{acks: all, rate: 500}]}
steps: [{kill: {node: leader}}, {power_loss: {node: elr, as: second}}]
"""


@pytest.mark.parametrize(
    ("text", "nodes", "seed", "filled"),
    [
        ("{kill: {node: leader(orders-0)}}", {"leader(orders-0)": 2}, None, "{kill: {node: 2}}"),
        ("{kill: {node: leader, as: first}}", {"leader": 2}, None, "{kill: {node: 2}}"),
        ("{lose: {responses: leader -> elr}}", {"leader": 0, "elr": 1}, None, "{lose: {responses: 0 -> 1}}"),
        ("{power_loss: {nodes: [a, 2]}}", {"a": 1}, 7, "{power_loss: {nodes: [1, 2], seed: 7}}"),
        ("{heal: all}", {}, None, "{heal: all}"),
        ("{until: {partition: all, isr: [first]}}", {"first": 1}, None, "{until: {partition: all, isr: [1]}}"),
    ],
)
def test_roles_names_and_seeds_are_filled_in(text: str, nodes: dict[str, int], seed: int | None, filled: str) -> None:
    assert fill_in(text, nodes, seed=seed) == filled


def test_a_recorded_plan_can_be_loaded_and_says_what_was_really_done(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    steps = [
        PlayedStep(text="{kill: {node: 1}}", seen="process 17 was killed"),
        PlayedStep(text="{power_loss: {node: 2, seed: 5}}", seen="odd: text # with\nnewline"),
    ]
    write_plan(path, scenario_text=TEXT, steps=steps, seed=3)
    plan = load_scenario(path)
    assert plan.seed == 3
    assert isinstance(plan.steps[0].action, Kill)
    assert isinstance(plan.steps[1].action, PowerLoss)
    assert plan.steps[1].action.seed == 5
    assert "# process 17 was killed" in path.read_text()
