"""Steps: what each verb takes, and where what is wrong is said to be."""

from pathlib import Path

import pytest

from laststand.emulator.core.disk import DiskModel, ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.types import NodeId, TopicPartition, Way
from laststand.emulator.plan import actions
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.nodes import (
    CONTROLLER,
    DrawnFrom,
    DrawnNodes,
    NamedNode,
    RackNodes,
    ReplicaRole,
    RoleNode,
    check_kafka_clients,
)
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.plan.steps import action_text, read_action, read_text
from laststand.emulator.plan.yaml_cursor import ScenarioError, open_document
from tests.unit.plan.random_actions import PARTITIONS, names

ZERO, ONE = NodeId(0), NodeId(1)
FETCHED = Channel(ZERO, ONE, "Fetch", Way.RESPONSE)
ONE_OF_ISR = DrawnNodes(count=1, drawn_from=DrawnFrom.ISR, partition=TopicPartition("orders", 0))
LEADER = RoleNode(role=ReplicaRole.LEADER, partition=TopicPartition("orders", 0))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("kill: {node: 1}", actions.Kill(nodes=(ONE,))),
        ("kill: {nodes: [0, controller]}", actions.Kill(nodes=(ZERO, CONTROLLER))),
        ("kill: {node: leader(orders-0)}", actions.Kill(nodes=(LEADER,))),
        ("start: {node: 1}", actions.Start(nodes=(ONE,))),
        (
            "start: {node: 1, inter.broker.protocol.version: 2.7}",
            actions.Start(nodes=(ONE,), inter_broker_protocol_version="2.7"),
        ),
        ("isolate: {node: 1}", actions.Isolate(nodes=(ONE,))),
        ("kill: {any: 2}", actions.Kill(nodes=(DrawnNodes(count=2, drawn_from=DrawnFrom.BROKERS),))),
        ("kill: {random: 1 of isr(orders-0)}", actions.Kill(nodes=(ONE_OF_ISR,))),
        ("kill: {nodes: [0, random(1 of isr(orders-0))]}", actions.Kill(nodes=(ZERO, ONE_OF_ISR))),
        ("kill: {rack: a}", actions.Kill(nodes=(RackNodes(rack="a"),))),
        ("cut: {from: random(1 of isr(orders-0)), to: 1}", actions.Cut(link=Link(ONE_OF_ISR, ONE))),
        ("heal: all", actions.HealAll()),
        ("heal: {node: 1}", actions.HealNodes(nodes=(ONE,))),
        ("lose: {responses: Fetch, from: 0, to: 1}", actions.LoseHeld(channel=FETCHED)),
        ("lose: {responses: Fetch, from: 0, to: 1, count: 2}", actions.LoseNext(channel=FETCHED, count=2)),
        ("heal: {from: 0, to: 1}", actions.HealLink(link=Link(ZERO, ONE))),
        ("power_loss: {node: 1}", actions.PowerLoss(nodes=(ONE,), loss=DiskLoss(keep=Keep.NONE))),
        (
            "power_loss: {node: 1, keep: torn, seed: 7}",
            actions.PowerLoss(nodes=(ONE,), loss=DiskLoss(keep=Keep.TORN, seed=7)),
        ),
        (
            "power_loss: {node: 1, keep: prefix, kept: 2}",
            actions.PowerLoss(
                nodes=(ONE,),
                loss=DiskLoss(
                    keep=Keep.PREFIX,
                    exact=ExactLoss(kept=2, truncation=TruncationFate.UNDONE, names=NamesFate.UNDONE),
                ),
            ),
        ),
        (
            "power_loss: {node: 1, disk: btrfs}",
            actions.PowerLoss(nodes=(ONE,), loss=DiskLoss(keep=Keep.NONE, disk=DiskModel.BTRFS)),
        ),
        (
            "power_loss: {node: 1, kept: 2, truncation: kept, disk: ext4}",
            actions.PowerLoss(
                nodes=(ONE,),
                loss=DiskLoss(
                    keep=Keep.NONE,
                    exact=ExactLoss(kept=2, truncation=TruncationFate.KEPT, names=NamesFate.KEPT),
                    disk=DiskModel.EXT4,
                ),
            ),
        ),
    ],
)
def test_what_a_step_means(text: str, action: actions.ActionTemplate) -> None:
    assert read_text(text, names(), path=Path("plan")) == action
    assert read_text(action_text(action), names(), path=Path("plan")) == action


def test_a_step_may_give_its_node_a_name() -> None:
    argument = open_document(Path("plan"), "{node: leader(orders-0), as: victim}")
    assert read_action("kill", argument, names()) == (actions.Kill(nodes=(LEADER,)), "victim")
    known = names()
    known.add_name("victim")
    assert read_text("start: {node: victim}", known, path=Path("plan")).nodes == (NamedNode(name="victim"),)  # type: ignore[union-attr]


def test_without_a_partition_a_role_is_of_the_only_one() -> None:
    known = Names(brokers=2, partitions=PARTITIONS[:1])
    assert read_text("kill: {node: leader}", known, path=Path("plan")) == actions.Kill(nodes=(LEADER,))


def with_clients(text: str) -> actions.ActionTemplate:
    known = Names(brokers=2, partitions=PARTITIONS[:1], kafka_clients=("app",))
    return read_text(text, known, path=Path("plan"))


@pytest.mark.parametrize(
    "text",
    [
        "cut: {from: app, to: 1}",
        "lose: {responses: Produce, from: app, to: 1, count: 1}",
        "hold: {requests: ApiVersions, from: app, to: 0}",
    ],
)
def test_a_client_of_kafka_dials_brokers(text: str) -> None:
    action = with_clients(text)
    assert actions.nodes_of(action)[0] == NamedNode(name="app")
    assert with_clients(action_text(action)) == action


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("cut: {from: 1, to: app}", "nothing dials the client"),
        ("cut: {from: app, to: controller}", "app is a client of Kafka, which dials brokers only"),
        ("kill: {node: app}", "no node 'app'"),
        ("kill: {node: 1, as: app}", "'app' cannot be a name"),
        ("cut: {from: spark, to: 1}", "no node 'spark'"),
        (
            "hold: {requests: ApiVersions, from: 0, to: 1}",
            "only clients of Kafka that the cluster names ask ApiVersions",
        ),
    ],
)
def test_a_client_of_kafka_is_the_source_of_links_and_nothing_else(text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        with_clients(text)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("app", "spark"), None),
        (("app", "app"), "each name stands for one client"),
        (("leader",), "'leader' cannot be a client's name"),
        (("My App",), "'My App' cannot be a client's name"),
        (tuple(f"app{number}" for number in range(51)), "there are at most 50"),
        (("app-client",), None),
        (("app-client", "app"), "'app-client' is the name of a certificate of 'app'"),
        *(
            ((name,), f"{name!r} is the name of a node, or of its certificate")
            for name in ("authority", "harness", "client-1", "broker-0", "controller-100", "broker-0-client")
        ),
    ],
)
def test_names_of_clients_are_words_that_mean_nothing_else(names: tuple[str, ...], problem: str | None) -> None:
    found = check_kafka_clients(names)
    assert found is None if problem is None else problem in str(found)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- kill", "plan:1: expected a mapping, found a list"),
        (
            "kill: {node: 1}\nstart: {node: 1}",
            "plan:1: a step is one of wait, produce, transact, consume, member, kill",
        ),
        ("kil: {node: 1}", "plan:1: kil: there is no such step or fault, allowed: wait,"),
        ("kil: {node: 1}", "did you mean 'kill'?"),
        ("kill: 1", "plan:1: kill: 1 alone says too little, write kill: {node: 1}"),
        ("kill: {}", "plan:1: kill: needs the key 'node'"),
        ("kill: {node: 9}", "plan:1: node: no node 9, allowed: brokers 0 to 3, controller"),
        ("kill: {node: client}", "plan:1: node: no node 'client'"),
        ("kill: {node: leader}", "plan:1: node: whose leader?"),
        ("kill: {node: leadr}", "did you mean 'leader'?"),
        ("kill: {node: leader(orders-9)}", "plan:1: node: no partition 'orders-9'"),
        ("kill: {nodes: [1, 1]}", "plan:1: kill: nodes: allowed: different nodes, at least one"),
        ("kill: {node: 1, hard: yes}", "plan:1: hard: unknown key, allowed: as, node"),
        ("kill: {node: 1, as: leader}", "plan:1: as: 'leader' cannot be a name"),
        ("kill: {any: 0}", "plan:1: any: '0' is no group, allowed: a number from 1 on"),
        ("kill: {any: 9}", "plan:1: any: there are only 4 brokers"),
        ("kill: {random: 1 of isr}", "plan:1: random: whose isr?"),
        ("kill: {random: some}", "plan:1: random: 'some' is no group, allowed: such as 2 of isr"),
        ("kill: {random: 1 of isr(refunds-9)}", "plan:1: random: no partition 'refunds-9'"),
        ("kill: {rack: 'a b'}", "plan:1: rack: 'a b' is no group"),
        ("kill: {any: 2, as: victim}", "plan:1: as: a name is for one node"),
        ("kill: {rack: a, as: victim}", "plan:1: as: a name is for one node"),
        ("kill: {any: 1, node: 1}", "plan:1: node: unknown key"),
        ("cut: {from: rack(a), to: 1}", "plan:1: from: a link has one node at its end, not rack(a)"),
        ("cut: {from: any(x), to: 1}", "plan:1: from: 'any(x)' is no group"),
        (
            "start: {node: 1, inter.broker.protocol.version: 2.99}",
            "plan:1: inter.broker.protocol.version: no version '2.99'; expected 2.1-IV0 to 3.9-IV0, or a release",
        ),
        (
            "start: {node: controller, inter.broker.protocol.version: 2.7}",
            "plan:1: start: expected brokers beside inter.broker.protocol.version",
        ),
        ("replace_disk: {node: controller}", "plan:1: node: must be a broker, not the controller"),
        ("heal: some", "plan:1: heal: some alone says too little, write heal: all"),
        ("cut: {from: 0}", "plan:1: cut: needs the key 'to'"),
        ("cut: {from: 0, to: 0}", "plan:1: to: a link from 0 to itself does not exist"),
        ("cut: {from: 0, to: client}", "plan:1: to: nothing dials the client"),
        ("lose: {responses: 0 to 1}", "plan:1: responses: '0 to 1' is no link, allowed: a -> b"),
        ("lose: {responses: Fetsh, from: 0, to: 1}", "responses: 'Fetsh'"),
        ("hold: {from: 0, to: 1}", "plan:1: hold: needs one of requests and responses"),
        ("duplicate: {responses: Fetch, from: 0, to: 1}", "plan:1: duplicate: only requests are duplicated"),
        ("delay: {responses: Fetch, from: 0, to: 1, by: 0 ms}", "plan:1: delay: a delay of 0 ms is none"),
        ("hold: {requests: Sync, from: 0, to: 1}", "plan:1: to: Sync is only there as 100->100 Sync response"),
        ("slow: {from: 0, to: 1, latency: soon}", "plan:1: latency: 'soon' is no duration"),
        ("wait: {for: 5}", "plan:1: for: '5' is no duration"),
        ("clock: {node: 1, rate: 0}", "plan:1: rate: expected a whole number from 1 on, found '0'"),
        ("produce: {partition: orders-0, producer: mine, records: 1}", "plan:1: producer: 'mine' is not allowed"),
        ("power_loss: {node: 1, keep: some}", "plan:1: keep: 'some' is not allowed"),
        ("power_loss: {node: 1, kept: -1}", "plan:1: kept: expected a whole number from 0 on, found '-1'"),
        ("delete_topic: {name: returns}", "plan:1: name: 'returns' is not allowed"),
        ("delete_topic: {name: orders, answer: []}", "plan:1: answer: allowed: a list of error names"),
        ("power_loss: {node: 1, disk: fat}", "plan:1: disk: 'fat' is not allowed, allowed: posix, btrfs, ext4, xfs"),
        ("power_loss: {node: 1, names: kept, disk: xfs}", "plan:1: names: not on a disk with an ordered journal"),
        ("delete_topic: {name: orders, answer: [OOPS]}", "plan:1: answer: 'OOPS' is not allowed"),
        ("create_topic: {name: a b, replicas: [[1]]}", "plan:1: name: 'a b' is no topic name"),
        ("create_topic: {name: new, replicas: [[9]]}", "plan:1: replicas: no broker 9"),
        ("create_topic: {name: new, replicas: [[1], [1, 2]]}", "all of one length"),
        ("create_topic: {name: new, replicas: [[1]], no.such: 1}", "plan:1: no.such: unknown property"),
        ("alter_config: {topic: orders}", "plan:1: alter_config: changes nothing, allowed: set, delete"),
        ("alter_config: {topic: orders, broker: 1, delete: [a]}", "needs one of topic, broker and cluster"),
        ("alter_config: {topic: orders, set: {min.insync.replicas: 0}}", "plan:1: min.insync.replicas: '0'"),
        ("alter_config: {cluster: all, delete: [a]}", "plan:1: cluster: 'all' is not allowed, allowed: default"),
        ("elect_leaders: {type: clean, partition: all}", "plan:1: type: 'clean' is not allowed"),
        (
            "elect_leaders: {type: designated, partition: orders-0}",
            "a designated election, and no other, names its leader",
        ),
        ("reassign: {partition: orders-0, replicas: [1, 1]}", "plan:1: replicas: [1, 1] are no replicas"),
        ("update_feature: {feature: metadata.version, level: no}", "plan:1: level: 'no' is not allowed"),
        ("update_feature: {feature: f, level: -1}", "plan:1: level: expected a whole number from 0 to 32767"),
        ("unregister_broker: {node: 9}", "plan:1: node: no broker 9, allowed: 0 to 3"),
        ("kill: {node: 1", "plan:1: no YAML"),
        ("", "plan:1: the file is empty"),
    ],
)
def test_what_is_no_step_is_said_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        read_text(text, names(controllers=1), path=Path("plan"))
    assert complaint in str(raised.value)
    assert raised.value.line == 1
