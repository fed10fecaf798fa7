"""The table of actions and steps: what each is, and that a scenario file takes it."""

from pathlib import Path

import pytest

from chaos.plans.action_steps import NotExpressible, steps_of
from chaos.scenario_file import read_scenario
from emulator.simulator.actions import parse_action

HEAD = """\
name: test/steps
cluster: {brokers: 3}
topics: [{name: orders, replicas: [[0, 1, 2]]}]
workload:
  producers: [{name: producer-all, acks: all, rate: 0}, {name: producer-leader, acks: 1, rate: 0}]
steps:
"""

EXPRESSIBLE = [
    ("wait 450", []),
    ("produce orders-0 acks=all records=2", ["produce: {producer: producer-all, partition: orders-0, records: 2}"]),
    ("produce orders-0 acks=1 records=1", ["produce: {producer: producer-leader, partition: orders-0, records: 1}"]),
    ("kill 0,1", ["kill: {node: 0}", "kill: {node: 1}"]),
    ("kill 100", ["kill: {node: controller}"]),
    ("start 1", ["start: {node: 1}"]),
    ("stop 1", ["stop: {node: 1}"]),
    ("pause 1", ["pause: {node: 1}"]),
    ("resume 1", ["resume: {node: 1}"]),
    ("replace-disk 1", ["replace_disk: {node: 1}"]),
    (
        "power-loss 0,2 keep=prefix kept=3 truncation=kept",
        ["power_loss: {nodes: [0, 2], keep: prefix, kept: 3, truncation: kept, names: kept}"],
    ),
    (
        "power-loss 100 keep=none kept=0 truncation=undone names=undone",
        ["power_loss: {nodes: [controller], keep: none, truncation: undone, names: undone}"],
    ),
    (
        "expire 1",
        [
            "cut: {from: 1, to: controller}",
            "until: {node: 1, fenced: true}",
            "heal: {from: 1, to: controller}",
        ],
    ),
    ("isolate 1", ["isolate: {node: 1, clients: connected}"]),
    ("rejoin 1", ["heal: {node: 1}"]),
    ("cut 1->100", ["cut: {from: 1, to: controller}"]),
    ("cut 1000->2", ["cut: {from: client, to: 2}"]),
    ("lose-responses 0->1", ["lose: {responses: 0 -> 1}"]),
    ("mend 0->1", ["heal: {from: 0, to: 1}"]),
    ("heal", ["heal: all"]),
]


@pytest.mark.parametrize(("action", "steps"), EXPRESSIBLE)
def test_an_action_is_steps_that_a_scenario_file_takes(action: str, steps: list[str]) -> None:
    assert list(steps_of(parse_action(action))) == steps
    if steps:
        lines = "".join(f"  - {step}\n" for step in steps)
        assert len(read_scenario(Path("steps.yaml"), HEAD + lines).steps) == len(steps)


@pytest.mark.parametrize(
    "action",
    [
        "clock 1 rate=900000",
        "crash-within 1 after-effects=1",
        "slow 0->1 ms=30",
        "reset 0->1",
        "sync 1",
        "hold 0->100 AlterPartition request",
        "release 0->100 AlterPartition request count=1",
        "release-newest 100->1 Stream response",
        "lose 0->1 Fetch response",
    ],
)
def test_what_concerns_one_message_or_a_clock_is_no_step(action: str) -> None:
    with pytest.raises(NotExpressible):
        steps_of(parse_action(action))
