"""Every action as a line, there and back; and what is answered to lines that are none."""

from typing import get_args

import pytest

from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.lines import LINE_VERBS, format_action, parse_action
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.plan import Plan

PARTITIONS = (TopicPartition("orders", 0), TopicPartition("refunds", 0))
LINES = (
    ("wait 120", False),
    ("produce orders-0 acks=all records=1", True),
    ("produce orders-0 acks=1 records=5", True),
    ("kill 0,1", True),
    ("power-loss 1 keep=prefix kept=2 truncation=kept", True),
    ("power-loss 1 keep=none kept=0 truncation=undone names=undone", True),
    ("crash-within 1 after-effects=2", True),
    ("power-loss 1 keep=none kept=0 truncation=undone disk=ext4", True),
    ("power-loss 1 keep=torn disk=btrfs", True),
    ("crash-within 1 after-effects=1 keep=pages kept=1 truncation=undone names=undone", True),
    ("replace-disk 1", True),
    ("start 100", True),
    ("resume 1", False),
    ("expire 1", True),
    ("clock 1 rate=1100000", True),
    ("isolate 1", True),
    ("isolate 1 clients=cut", True),
    ("rejoin 1", False),
    ("cut 0->1", True),
    ("mend 0->1", False),
    ("reset 1000->0", True),
    ("slow 0->1 ms=40", True),
    ("hold 0->100 AlterPartition request", True),
    ("hold 100->100 Sync response", True),
    ("release 0->100 AlterPartition request", False),
    ("release 0->100 AlterPartition request count=1", True),
    ("release-newest 1->100 Stream response", True),
    ("lose 0->1 Fetch response", True),
    ("lose-next 0->100 AlterPartition response count=1", True),
    ("duplicate-next 0->100 AlterPartition request count=1", True),
    ("delay 1->0 Fetch request ms=50", True),
    ("draw 2", True),
    ("duplicate 0->100 AlterPartition request", True),
    ("min-isr orders value=1", True),
    ("reassign orders-0 replicas=0,1,3", True),
    ("reassign orders-0 replicas=none", True),
    ("recreate orders", True),
    ("elr-feature level=0", True),
    ("elr-feature level=1", True),
    ("delete_topic: {name: refunds}", True),
    ("elect_leaders: {type: designated, partition: orders-0, leader: 2}", True),
    ("heal", False),
)


def names() -> Names:
    return Names(brokers=4, partitions=PARTITIONS)


@pytest.mark.parametrize(("line", "counts"), LINES)
def test_there_and_back(line: str, counts: bool) -> None:  # noqa: FBT001 - a column of the table
    action = parse_action(line, names())
    assert format_action(action) == line
    assert Plan(brokers=4, topics=(), actions=(action,)).length == int(counts)


@pytest.mark.parametrize("row", actions.ACTION_SPECS.values(), ids=lambda row: row.kind.__name__)
def test_the_example_of_every_row_is_a_line_of_its_action(row: object) -> None:
    assert row in actions.ACTION_SPECS.values()
    spec = next(each for each in actions.ACTION_SPECS.values() if each is row)
    action = parse_action(spec.example, names())
    assert type(action) is spec.kind
    assert parse_action(format_action(action), names()) == action


def test_every_action_of_the_union_has_a_row() -> None:
    kinds = {getattr(kind, "__origin__", kind) for kind in get_args(actions.Action)}
    assert kinds == set(actions.ACTION_SPECS)


@pytest.mark.parametrize(
    "line",
    [
        *("", "wait", "wait long", "produce orders-0", "produce orders-0 acks=2 records=1", "kill", "kill x", "cut 0"),
        *("hold 0->1 Fetch", "hold 0->1 Fetch sideways", "explode 1", "heal 1", "kill 1 2", "kill 1 hard=yes"),
        *(
            "kill leader(orders-0)",
            "cut one->0",
            "power-loss 1 keep=some kept=0 truncation=kept",
        ),
        *("release 0->1 Fetch request count=few", "min-isr orders", "min-isr orders value=few", "elr-feature"),
        *("reassign replicas=none", "reassign orders-0 replicas=0,x", "isolate 1 clients=some"),
    ],
)
def test_texts_that_are_no_action(line: str) -> None:
    with pytest.raises(ConfigError):
        parse_action(line, names())


def test_a_step_needs_to_know_what_may_be_named() -> None:
    with pytest.raises(ConfigError):
        parse_action("delete_topic: {name: refunds}")
    with pytest.raises(ConfigError, match=r"'returns' is not allowed, allowed: orders, refunds"):
        parse_action("delete_topic: {name: returns}", names())


def test_a_mistake_in_a_known_verb_is_answered_with_its_forms() -> None:
    with pytest.raises(ConfigError, match=r"expected a line as 'reassign .*=0,1,3' or a line as 'reassign .*=none'$"):
        parse_action("reassign orders-0")


def test_an_unknown_verb_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_action("explode 1")
    assert str(raised.value).startswith("unknown key 'explode'; expected cluster, topic, or an action: wait, produce,")
    assert all(verb in str(raised.value) for verb in LINE_VERBS)
