"""The recorded plan is a scenario that can be played again."""

from pathlib import Path

import pytest

from laststand.chaos.play.recorded_plan import PlayedStep, write_plan
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.emulator.core import admin_messages, events
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import CauseId, NodeId, Offset, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import NamedNode
from laststand.emulator.plan.power import DiskLoss

TEXT = """\
name: test/story
cluster: {brokers: 3}
topics: [{name: orders, replicas: [[0, 1, 2]]}]
workload: {producers: [{acks: all, rate: 500}]}
steps: [{kill: {node: leader}}, {power_loss: {node: elr, as: second}}]
"""
ONE, TWO = NodeId(1), NodeId(2)


def test_a_recorded_plan_can_be_loaded_and_says_what_was_really_done(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    steps = [
        PlayedStep(action=actions.Kill(nodes=(ONE,)), outcome=actions.effective("process 17 was killed")),
        PlayedStep(
            action=actions.PowerLoss(nodes=(TWO,), loss=DiskLoss(keep=Keep.NONE, seed=5)),
            outcome=actions.effective("odd: text # with\nnewline"),
        ),
    ]
    rules = era_switches("kafka-3.9")
    write_plan(
        path,
        scenario_text=TEXT,
        steps=steps,
        era="kafka-3.9",
        switches=rules,
        properties=(("num.partitions", "2"),),
        seed=3,
    )
    plan = load_scenario(path)
    assert [step.action for step in plan.steps] == [step.action for step in steps]
    assert plan.seed == 3
    assert plan.properties == (("num.partitions", "2"),)
    assert plan.rules is not None
    assert (plan.rules.era, plan.rules.switches) == ("kafka-3.9", rules)
    assert "# process 17 was killed" in path.read_text()


def test_names_of_nodes_are_recorded_as_ids() -> None:
    barrier = conditions.Until(condition=conditions.BrokerIs(node=NamedNode(name="first"), unfenced=False))
    played = PlayedStep(action=barrier.with_names({"first": ONE}), outcome=actions.effective("node 1 is fenced"))
    assert played.text == "{until: {node: 1, unfenced: false}}"


@pytest.mark.parametrize(
    ("election", "asked_for"),
    [(admin_messages.RequestedElection.PREFERRED, ()), (admin_messages.RequestedElection.UNCLEAN, ("orders-0",))],
)
def test_a_step_that_may_elect_uncleanly_says_where(
    election: admin_messages.RequestedElection, asked_for: tuple[str, ...]
) -> None:
    action = actions.ElectLeaders(election=election, partitions=(TopicPartition("orders", 0),))
    reached = PlayedStep(action=action, outcome=actions.effective("NONE")).reached(4, cause_id=CauseId("step-4"))
    assert (reached.step, reached.seen, reached.unclean_elections) == (4, "NONE", asked_for)


@pytest.mark.parametrize("offset", [Offset(5), None])
def test_a_step_that_has_records_deleted_says_which(offset: Offset | None) -> None:
    action = actions.DeleteRecords(partition=TopicPartition("orders", 0), offset=offset)
    reached = PlayedStep(action=action, outcome=actions.effective("NONE")).reached(4, cause_id=CauseId("step-4"))
    assert reached.deletions == (events.RequestedDeletion("orders-0", offset),)
