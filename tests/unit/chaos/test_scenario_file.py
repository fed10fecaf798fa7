"""The grammar of scenario files: what is read, and what each mistake is told."""

from pathlib import Path

import pytest

from chaos.scenario import (
    Acked,
    Action,
    BrokerIs,
    Clients,
    Count,
    Cut,
    Ending,
    FixedNode,
    HealAll,
    HealLink,
    HealNode,
    Isolate,
    Kill,
    LoseResponses,
    NamedNode,
    NoLeader,
    PartitionIs,
    PowerLoss,
    Role,
    RoleNode,
    Scenario,
    Start,
    Until,
    VerdictName,
)
from chaos.scenario_file import find_scenario, load_scenario, read_scenario, scenario_names
from chaos.yaml_cursor import ScenarioError
from emulator.core.errors import ConfigError
from emulator.core.types import Acks, NodeId, TopicPartition
from emulator.storage.power_loss_plan import Keep

ORDERS = TopicPartition("orders", 0)
HEAD = """\
name: test/story
cluster: {brokers: 3, properties: {broker.session.timeout.ms: 2000}}
topics: [{name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}]
workload: {producers: [{acks: all, rate: 500}]}
"""
MANY = """\
name: test/story
cluster: {brokers: 3}
topics: [{name: orders, replicas: [[0, 1, 2], [1, 2, 0]]}]
workload: {producers: [{acks: all, rate: 500}]}
"""


def read(text: str) -> Scenario:
    return read_scenario(Path("story.yaml"), text)


def step(text: str) -> Action:
    return read(f"{HEAD}steps:\n  - {text}\n").steps[0].action


def node(number: int) -> FixedNode:
    return FixedNode(node_id=NodeId(number))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("kill: {node: 1}", Kill(node=node(1))),
        ("kill: {node: controller}", Kill(node=node(100))),
        ("isolate: {node: 0}", Isolate(node=node(0), clients=Clients.CUT)),
        ("isolate: {node: 0, clients: connected}", Isolate(node=node(0), clients=Clients.CONNECTED)),
        ("cut: {from: 0, to: controller}", Cut(source=node(0), target=node(100))),
        ("cut: {from: client, to: 2}", Cut(source=node(1000), target=node(2))),
        ("lose: {responses: 0 -> 1}", LoseResponses(source=node(0), target=node(1))),
        ("lose: {responses: 0→1}", LoseResponses(source=node(0), target=node(1))),
        ("heal: all", HealAll()),
        ("heal: {node: 2}", HealNode(node=node(2))),
        ("heal: {from: 0, to: 1}", HealLink(source=node(0), target=node(1))),
        ("power_loss: {node: 2, keep: torn}", PowerLoss(nodes=(node(2),), keep=Keep.TORN, seed=None)),
        ("power_loss: {nodes: [0, 2], seed: 7}", PowerLoss(nodes=(node(0), node(2)), keep=Keep.NONE, seed=7)),
        ("kill: {node: leader(orders-0)}", Kill(node=RoleNode(role=Role.LEADER, partition=ORDERS))),
        ("kill: {node: last-isr}", Kill(node=RoleNode(role=Role.LAST_ISR, partition=ORDERS))),
        (
            "until: {acked: 500, acks: all, within: 45 s}",
            Until(condition=Acked(count=500, acks=Acks.ALL, partitions=(ORDERS,), per=Count.TOTAL), within_ms=45_000),
        ),
        (
            "until: {partition: orders-0, leader: none}",
            Until(
                condition=PartitionIs(partitions=(ORDERS,), leader=NoLeader.NONE, isr=None, elr=None),
                within_ms=30_000,
            ),
        ),
        (
            "until: {partition: all, leader: 1, isr: [1, 2], elr: []}",
            Until(
                condition=PartitionIs(partitions=(ORDERS,), leader=node(1), isr=(node(1), node(2)), elr=()),
                within_ms=30_000,
            ),
        ),
        (
            "until: {node: 2, fenced: true}",
            Until(condition=BrokerIs(node=node(2), unfenced=False), within_ms=30_000),
        ),
    ],
)
def test_a_step_is_read(text: str, action: Action) -> None:
    assert step(text) == action


def test_a_name_given_by_a_step_stands_for_its_node_in_later_steps() -> None:
    steps = read(f"{HEAD}steps:\n  - kill: {{node: leader, as: first}}\n  - start: {{node: first}}\n").steps
    assert steps[0].bind == "first"
    assert steps[1].action == Start(node=NamedNode(name="first"))


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("", 1, "the file is empty"),
        ("a: [", 1, "no YAML"),
        ("name: x\nname: y\n", 2, "name: is there twice"),
        (f"{HEAD}steps: [{{heal: all}}]\nstep: 3\n", 6, "step: unknown key, allowed: name, source, cluster"),
        (f"{HEAD}steps: [{{heal: all}}]\nstep: 3\n", 6, "did you mean 'steps'?"),
        (HEAD, 1, "needs the key 'steps'"),
        (f"{HEAD}steps: []\n", 5, "needs at least one step"),
        (f"{HEAD}steps: {{}}\n", 5, "steps: expected a list, found a mapping"),
        (HEAD.replace("brokers: 3", "brokers: three") + "steps: [{heal: all}]", 2, "expected a whole number"),
        (
            HEAD.replace("brokers: 3", "brokers: 0") + "steps: [{heal: all}]",
            2,
            "expected a whole number from 1",
        ),
        (HEAD.replace("[[0, 1, 2]]", "[[0, 1, 3]]") + "steps: [{heal: all}]", 3, "no broker 3, allowed: 0 to 2"),
        (HEAD.replace("[[0, 1, 2]]", "[[0, 1, 1]]") + "steps: [{heal: all}]", 3, "different brokers"),
        (HEAD.replace("broker.session", "broker.sesion") + "steps: [{heal: all}]", 2, "unknown property"),
        (HEAD.replace("2000", "soon") + "steps: [{heal: all}]", 2, "'soon' is not allowed"),
        (HEAD.replace("min.insync", "min.insinc") + "steps: [{heal: all}]", 3, "unknown property"),
        (HEAD.replace("acks: all", "acks: most") + "steps: [{heal: all}]", 4, "allowed: all, -1, 1, 0"),
        (HEAD.replace("acks: all", "acks: 1, enable.idempotence: true") + "steps: [{heal: all}]", 4, "acks: all"),
        (f"{HEAD}steps:\n  - explode: {{node: 1}}\n", 6, "no such step, allowed: until, isolate"),
        (f"{HEAD}steps:\n  - kill: {{node: 3}}\n", 6, "no node 3, allowed: brokers 0 to 2, controller"),
        (f"{HEAD}steps:\n  - kill: {{node: leder}}\n", 6, "did you mean 'leader'?"),
        (f"{HEAD}steps:\n  - kill: {{nod: 1}}\n", 6, "needs the key 'node'"),
        (f"{HEAD}steps:\n  - kill: {{node: 1, keep: all}}\n", 6, "keep: unknown key"),
        (f"{HEAD}steps:\n  - kill: {{node: 1}}\n    pause: {{node: 1}}\n", 6, "a step is one of"),
        (f"{HEAD}steps:\n  - kill: {{node: leader(order-0)}}\n", 6, "no partition 'order-0', allowed: orders-0"),
        (f"{MANY}steps:\n  - kill: {{node: leader}}\n", 6, "write leader(PARTITION)"),
        (f"{HEAD}steps:\n  - cut: {{from: 1, to: 1}}\n", 6, "to itself"),
        (f"{HEAD}steps:\n  - cut: {{from: 1, to: client}}\n", 6, "nothing dials the client"),
        (f"{HEAD}steps:\n  - cut: {{from: controller, to: 1}}\n", 6, "the controller dials nobody"),
        (f"{HEAD}steps:\n  - lose: {{responses: 1}}\n", 6, "no link, allowed: a -> b"),
        (f"{HEAD}steps:\n  - power_loss: {{node: 1, keep: some}}\n", 6, "allowed: none, prefix, torn, pages"),
        (f"{HEAD}steps:\n  - until: {{within: 3 s}}\n", 6, "waits for nothing"),
        (f"{HEAD}steps:\n  - until: {{acked: 5, within: 3 parsecs}}\n", 6, "is no duration"),
        (f"{HEAD}steps:\n  - until: {{node: 1}}\n", 6, "needs one of unfenced and fenced"),
        (f"{HEAD}steps:\n  - until: {{partition: orders-0}}\n", 6, "waits for nothing of the partition"),
        (f"{HEAD}steps: [{{heal: all}}]\nend: whatever\n", 6, "allowed: restore, as_is"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kafka-7: {{verdict: valid}}}}\n", 6, "kafka-7: unknown key"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kafka-3.9-zk: {{verdict: valid}}}}\n", 6, "not built yet"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{lost: 0}}}}\n", 6, "needs the key 'verdict'"),
        (
            f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{verdict: violation, checks: [H2]}}}}\n",
            6,
            "'H2' is not allowed",
        ),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{verdict: valid, checks: [D1]}}}}\n", 6, "violation"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{verdict: valid, lost: few}}}}\n", 6, "no comparison"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_is_allowed(text: str, line: int, complaint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(text)
    assert str(caught.value).startswith(f"story.yaml:{line}: ")
    assert complaint in str(caught.value)


def test_expectations_and_ending_are_read() -> None:
    scenario = read(
        f"{HEAD}steps: [{{heal: all}}]\nend: as_is\nseed: 9\n"
        "expect: {kafka-3.9: {verdict: violation, guarantee: broken, checks: [D1], lost: '>=1000'}}\n"
    )
    expected = scenario.expectation("kafka-3.9")
    assert scenario.end is Ending.AS_IS
    assert scenario.seed == 9
    assert scenario.expectation("kip-966") is None
    assert expected is not None
    assert (expected.verdict, expected.guarantee, expected.checks) == (VerdictName.VIOLATION, "broken", ("D1",))
    assert expected.lost is not None
    assert [expected.lost.holds(lost) for lost in (999, 1000, 1001)] == [False, True, True]


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_that_comes_along_can_be_played(name: str) -> None:
    assert load_scenario(find_scenario(name)).name == name


def test_an_unknown_scenario_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="did you mean 'kip-966/last-replica-standing'"):
        find_scenario("kip-966/last-replica-standin")


@pytest.mark.parametrize(
    ("action", "has_network_faults"), [("isolate: {node: 1}", True), ("kill: {node: 1}", False), ("heal: all", False)]
)
def test_proxies_are_wanted_only_for_network_faults(action: str, has_network_faults: bool) -> None:  # noqa: FBT001 - a table's column
    assert read(f"{HEAD}steps: [{{{action}}}]\n").has_network_faults is has_network_faults
