"""Whatever an action is, each notation of it reads as the same action."""

from pathlib import Path

import msgspec
from hypothesis import given

from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.lines import format_action, parse_action
from laststand.emulator.plan.plan import Plan, format_plan, parse_plan
from laststand.emulator.plan.plan_lint import problems
from laststand.emulator.plan.plan_yaml import format_plan_yaml, read_plan_yaml
from laststand.emulator.plan.steps import action_text, read_text
from laststand.emulator.plan.topics import PlannedTopic
from tests.unit.plan.random_actions import ACTIONS, names

TOPICS = tuple(
    PlannedTopic(name=name, replicas=tuple((BrokerId(NodeId(0)), BrokerId(NodeId(3))) for _ in range(2)))
    for name in ("orders", "re-funds")
)


@given(action=ACTIONS)
def test_lines(action: actions.Action) -> None:
    assert parse_action(format_action(action), names()) == action


@given(action=ACTIONS)
def test_steps(action: actions.Action) -> None:
    assert read_text(action_text(action), names(), path=Path("plan")) == action


@given(action=ACTIONS)
def test_json(action: actions.Action) -> None:
    assert msgspec.json.decode(msgspec.json.encode(action), type=actions.Action) == action


@given(action=ACTIONS)
def test_an_action_that_can_be_read_has_no_problem(action: actions.Action) -> None:
    assert list(problems(action, names())) == []


@given(action=ACTIONS)
def test_plans(action: actions.Action) -> None:
    plan = Plan(brokers=4, controllers=3, switches=(("elr", "off"),), topics=TOPICS, actions=(action,))
    assert parse_plan(format_plan(plan)) == plan
    assert read_plan_yaml(Path("plan.yaml"), format_plan_yaml(plan, name="a")) == plan
