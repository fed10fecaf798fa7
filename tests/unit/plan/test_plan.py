"""The text of a plan, there and back, and what is said of a text that is none."""

from pathlib import Path

import pytest

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.plan import PlanLineError, format_plan, parse_numbered, parse_plan
from laststand.emulator.plan.plan_lint import find_problem
from laststand.emulator.plan.plan_yaml import format_plan_yaml, read_plan_yaml

PLAN = """\
# Why.
cluster brokers=3 era=kafka-3.9 elr=off broker.session.timeout.ms=500
topic orders replicas=(0,1,2);(1,2,0) min.insync.replicas=2
wait 5
kill 1
"""


def test_a_plan_there_and_back() -> None:
    assert format_plan(parse_plan(PLAN), comment="Why.") == PLAN


def test_a_plan_with_several_controllers_there_and_back() -> None:
    text = "cluster brokers=3 controllers=3 era=kip-966\ntopic t replicas=(0,1,2)\nkill 102\ncut 100->101\n"
    plan = parse_plan(text)
    assert format_plan(plan) == text
    assert read_plan_yaml(Path("plan.yaml"), format_plan_yaml(plan, name="quorum")) == plan
    assert [find_problem(plan, action) for action in plan.actions] == [None, None]
    assert find_problem(plan, actions.Kill(nodes=(NodeId(103),))) is not None


def test_a_plan_with_controllers_that_come_later_there_and_back() -> None:
    text = (
        "cluster brokers=3 controllers=3 standby_controllers=1 era=kip-966\ntopic t replicas=(0,1,2)\nadd-voter 103\n"
    )
    plan = parse_plan(text)
    assert format_plan(plan) == text
    assert read_plan_yaml(Path("plan.yaml"), format_plan_yaml(plan, name="quorum")) == plan
    assert find_problem(plan, actions.Start(nodes=(NodeId(103),))) is None
    assert find_problem(plan, actions.Start(nodes=(NodeId(104),))) is not None


def test_a_plan_in_combined_mode_there_and_back() -> None:
    text = "cluster brokers=3 controllers=3 combined=true era=kip-966\ntopic t replicas=(0,1,2)\nkill 102\n"
    plan = parse_plan(text)
    assert format_plan(plan) == text
    assert read_plan_yaml(Path("plan.yaml"), format_plan_yaml(plan, name="quorum")) == plan


def test_comments_may_be_indented_or_follow() -> None:
    text = PLAN.replace("wait 5", "  # a while\n wait 5  # not long").replace("kill 1", "kill 1 #")
    assert parse_plan(text) == parse_plan(PLAN)


def test_parts_have_their_lines() -> None:
    numbered = parse_numbered(PLAN.replace("wait 5", "\nwait 5"))
    assert (numbered.cluster_line, numbered.topic_lines, numbered.action_lines) == (2, (3,), (5, 6))


def test_a_topic_that_a_step_creates_may_be_named_by_later_steps() -> None:
    steps = (
        "create_topic: {name: refunds, replicas: [[1, 2]]}",
        "delete_topic: {name: refunds}",
        "produce refunds-0 acks=1 records=1",
    )
    created, _, produced = parse_plan(PLAN + "\n".join(steps)).actions[2:]
    assert isinstance(created, actions.CreateTopic)
    assert isinstance(produced, actions.Produce)


def test_a_partition_that_a_step_adds_may_be_named_by_later_steps() -> None:
    steps = ("create_partitions: {name: orders, count: 5}", "produce orders-4 acks=1 records=1")
    *_, produced = parse_plan(PLAN + "\n".join(steps)).actions
    assert isinstance(produced, actions.Produce)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the plan lacks a line such as 'cluster brokers=3"),
        ("cluster brokers=3\n", "the plan lacks a line such as 'topic orders"),
        (PLAN + "cluster brokers=5\n", "line 6: cluster=cluster brokers=5 is not allowed; expected one such line, and"),
        ("cluster brokers=3 elr off\n", "line 1: unknown key 'elr'; expected name=value"),
        ("topic orders replicas=(0) min.insync.replicas\n", "line 1: unknown key 'min.insync.replicas'"),
        (
            "cluster brokers=3 erl=off\n",
            "line 1: unknown key 'erl'; expected a Kafka property of a node or a switch: pre_vote,",
        ),
        (
            "cluster brokers=3 era=kafka-3.9-zk inter.broker.protocol.version=3.9,3:2.6\ntopic t replicas=(0)\n",
            "line 1: inter.broker.protocol.version=3.9-IV0,3:2.6-IV0 is not allowed; expected brokers 0 to 2",
        ),
        (
            "cluster brokers=3 era=kafka-2.6-zk inter.broker.protocol.version=2.6,1:2.7\ntopic t replicas=(0)\n",
            "line 1: inter.broker.protocol.version=2.7-IV2 is not allowed; expected a version that the release of "
            "kafka-2.6-zk knows",
        ),
        (
            "cluster brokers=3 controllers=2\ntopic t replicas=(0)\n",
            "line 1: controllers=2 is not allowed; expected 1 or 3 or 5",
        ),
        (
            "cluster brokers=3 controllers=3 era=kafka-2.6-zk\ntopic t replicas=(0)\n",
            "line 1: controllers=3 is not allowed; expected 1 in era kafka-2.6-zk, whose metadata is in ZooKeeper",
        ),
        (
            "cluster brokers=3 standby_controllers=1\ntopic t replicas=(0)\n",
            "line 1: standby_controllers=1 is not allowed; expected 0: a single controller is no quorum",
        ),
        (
            "cluster brokers=3 controllers=3 standby_controllers=5\ntopic t replicas=(0)\n",
            "line 1: standby_controllers=5 is not allowed; expected 0 to 4",
        ),
        (
            "cluster brokers=2 controllers=3 combined=true\ntopic t replicas=(0)\n",
            "line 1: combined=true is not allowed; expected at least 3 brokers: each controller shares",
        ),
        (
            "cluster brokers=3 combined=on\ntopic t replicas=(0)\n",
            "line 1: combined=on is not allowed; expected true or false",
        ),
        (
            "cluster brokers=3 combined=true era=kafka-2.6-zk\ntopic t replicas=(0)\n",
            "line 1: combined=true is not allowed; expected false in era kafka-2.6-zk, which has no controllers",
        ),
    ],
)
def test_what_is_wrong_with_a_plan_is_said_in_words(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_plan(text)
    assert str(raised.value).startswith(complaint)


@pytest.mark.parametrize(
    "text",
    [
        "wait 5\n",
        "cluster brokers=three\n",
        "cluster brokers=3 era=kafka-9\ntopic t replicas=(0)\n",
        "cluster brokers=3 no.such.thing=1\ntopic t replicas=(0)\n",
        "cluster brokers=3\ntopic t\n",
    ],
)
def test_texts_that_are_no_plan(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_plan(text)


@pytest.mark.parametrize("bad", ["explode 1", "topic more", "cluster brokers=none", "delete_topic: {name: returns}"])
def test_a_bad_line_of_a_plan_is_named_by_its_number(bad: str) -> None:
    with pytest.raises(PlanLineError, match=r"^line 6: ") as raised:
        parse_plan(PLAN + bad + "\n")
    assert raised.value.line == 6
