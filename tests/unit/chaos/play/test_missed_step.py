"""Barriers that are not reached: the scenario says whether that is a problem."""

from pathlib import Path

import pytest

from laststand.chaos.drivers import make_driver
from laststand.chaos.play.runner import Run
from laststand.chaos.scenario.scenario_file import read_scenario
from tests.unit.chaos.play.virtual_time import order_of

TEXT = """\
name: missed
cluster: {{brokers: 3}}
topics: [{{name: orders, replicas: [[0, 1, 2]]}}]
workload: {{producers: [{{acks: all, rate: 10}}]}}
missed_step: {missed_step}
steps:
{steps}
"""
NEVER = "until: {partition: orders-0, isr: [0], within: 1 s}"
REFUSED = "delete_topic: {name: orders, answer: [UNKNOWN_TOPIC_OR_PARTITION]}"
KILL = "kill: {node: 2}"


async def play(directory: Path, missed_step: str, *steps: str) -> Run:
    text = TEXT.format(missed_step=missed_step, steps="\n".join(f"  - {step}" for step in steps))
    scenario = read_scenario(Path("missed.yaml"), text)
    run = Run(order_of(scenario, directory, seed=1), make_driver=make_driver, on_status=lambda _: None)
    await run.play()
    return run


@pytest.mark.parametrize("step", [NEVER, REFUSED])
async def test_the_rest_is_left_out_and_the_run_ends_in_order(step: str, tmp_path: Path) -> None:
    run = await play(tmp_path, "end", "until: {acked: 10, acks: all}", step, KILL)
    assert run.problem is None
    assert run.left_out is not None
    assert run.left_out.startswith("from step 2 of 3 on: ")
    events = (tmp_path / "events/harness-0.jsonl").read_text()
    assert "missed, so that the steps after it are left out" in events
    assert "FaultInjected" not in events
    assert "ClusterSettled" in events or step == REFUSED


async def test_otherwise_it_is_a_problem(tmp_path: Path) -> None:
    run = await play(tmp_path, "problem", NEVER, KILL)
    assert run.problem is not None
    assert run.problem.startswith("step 1 {until: ")
    assert run.left_out is None


async def test_a_fault_that_cannot_be_played_is_a_problem_in_any_case(tmp_path: Path) -> None:
    run = await play(tmp_path, "end", "kill: {node: elr(orders-0)}")
    assert run.problem is not None
    assert run.left_out is None
