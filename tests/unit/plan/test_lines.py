"""One line per action, there and back."""

from typing import get_args

import pytest
from emulator.simulator.actions import (
    FORMS,
    Action,
    ChannelVerb,
    LinkVerb,
    NodeVerb,
    format_action,
    is_counted,
    parse_action,
)
from emulator.simulator.plan import PlanLineError, format_plan, parse_plan

from emulator.core.errors import ConfigError

LINES = (
    ("wait 120", False),
    ("produce orders-0 acks=all records=1", True),
    ("produce orders-0 acks=1 records=5", True),
    ("kill 0,1", True),
    ("power-loss 1 keep=prefix kept=2 truncation=kept", True),
    ("power-loss 1 keep=none kept=0 truncation=undone names=undone", True),
    ("crash-within 1 after-effects=2", True),
    ("crash-within 1 after-effects=1 keep=pages kept=1 truncation=undone names=undone", True),
    ("replace-disk 1", True),
    ("start 100", True),
    ("resume 1", False),
    ("expire 1", True),
    ("clock 1 rate=1100000", True),
    ("cut 0->1", True),
    ("mend 0->1", False),
    ("reset 1000->0", True),
    ("slow 0->1 ms=40", True),
    ("hold 0->100 AlterPartition request", True),
    ("release 0->100 AlterPartition request", False),
    ("release 0->100 AlterPartition request count=1", True),
    ("release-newest 1->100 Stream response", True),
    ("lose 0->1 Fetch response", True),
    ("draw 2", True),
    ("duplicate 0->100 AlterPartition request", True),
    ("min-isr orders value=1", True),
    ("reassign orders-0 replicas=0,1,3", True),
    ("reassign orders-0 replicas=none", True),
    ("recreate orders", True),
    ("heal", False),
)


@pytest.mark.parametrize(("line", "counts"), LINES)
def test_there_and_back(line: str, counts: bool) -> None:  # noqa: FBT001 - a column of the table
    action = parse_action(line)
    assert format_action(action) == line
    assert is_counted(action) is counts


@pytest.mark.parametrize(
    "line",
    ["", "wait", "wait long", "produce orders-0", "kill", "kill x", "cut 0", "hold 0->1 Fetch", "explode 1", "heal 1"],
)
def test_what_is_no_action(line: str) -> None:
    with pytest.raises(ConfigError):
        parse_action(line)


def test_every_form_parses_and_every_action_has_one() -> None:
    actions = [parse_action(form.example) for form in FORMS]
    assert [format_action(action) for action in actions] == [form.example for form in FORMS]
    assert {type(action) for action in actions} == set(get_args(Action))
    verbs = {verb.value for kind in (NodeVerb, LinkVerb, ChannelVerb) for verb in kind}
    assert verbs <= {form.verb for form in FORMS}


def test_a_slip_in_a_known_verb_is_answered_with_its_forms() -> None:
    with pytest.raises(ConfigError, match=r"expected a line as 'reassign .*=0,1,3' or a line as 'reassign .*=none'$"):
        parse_action("reassign orders-0")


def test_an_unknown_verb_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'explode'; expected .* wait, produce, kill, .* heal$"):
        parse_action("explode 1")


PLAN = """\
# Why.
cluster brokers=3 era=kafka-3.9 elr=off broker.session.timeout.ms=500
topic orders replicas=(0,1,2);(1,2,0) min.insync.replicas=2
wait 5
kill 1
"""


def test_a_plan_there_and_back() -> None:
    assert format_plan(parse_plan(PLAN), comment="Why.") == PLAN


def test_comments_may_be_indented_or_follow() -> None:
    text = PLAN.replace("wait 5", "  # a while\n wait 5  # not long").replace("kill 1", "kill 1 #")
    assert parse_plan(text) == parse_plan(PLAN)


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
            "line 1: unknown key 'erl'; expected a Kafka property of a node or a switch: elr,",
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
def test_what_is_no_plan(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_plan(text)


@pytest.mark.parametrize("bad", ["explode 1", "topic more", "cluster brokers=none"])
def test_a_bad_line_of_a_plan_is_named_by_its_number(bad: str) -> None:
    with pytest.raises(PlanLineError, match=r"^line 6: ") as raised:
        parse_plan(PLAN + bad + "\n")
    assert raised.value.line == 6
