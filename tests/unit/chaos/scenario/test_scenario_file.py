"""The grammar of scenario files: what is read, and what each mistake is told."""

import re
from pathlib import Path
from typing import Final

import pytest

from laststand.chaos.play.workload import members_of, producers_of
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.conditions_yaml import until_entry
from laststand.chaos.scenario.scenario import Bound, Ending, GroupPlan, Scenario, TransactionsPlan, VerdictName
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario, read_scenario, scenario_names
from laststand.emulator.core import admin_messages
from laststand.emulator.core.disk import ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.errors import ConfigError, ErrorCode
from laststand.emulator.core.types import (
    Acks,
    BrokerId,
    ConfigResource,
    FeatureUpgradeType,
    LeaderRecoveryState,
    NodeId,
    Offset,
    TopicPartition,
    Way,
)
from laststand.emulator.plan import actions
from laststand.emulator.plan.administration_fields import ConfigChange, FeatureLevel
from laststand.emulator.plan.channels import Channel, Link
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.nodes import NamedNode, ReplicaRole, RoleNode
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.plan.steps import action_entry, flow_text
from laststand.emulator.plan.topics import PlannedTopic
from laststand.emulator.plan.yaml_cursor import ScenarioError

ORDERS = TopicPartition("orders", 0)
HEAD = """\
name: test/story
cluster: {brokers: 3, properties: {broker.session.timeout.ms: 2000}}
topics: [{name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}]
workload: {producers: [{acks: all, rate: 500}]}
"""
LONG = ", ".join(["{heal: all}"] * 11)
MANY = """\
name: test/story
cluster: {brokers: 3}
topics: [{name: orders, replicas: [[0, 1, 2], [1, 2, 0]]}]
workload: {producers: [{acks: all, rate: 500}]}
"""


def read(text: str) -> Scenario:
    return read_scenario(Path("story.yaml"), text)


def step(text: str) -> conditions.Until | actions.ActionTemplate:
    return read(f"{HEAD}steps:\n  - {text}\n").steps[0].action


def broker(number: int) -> BrokerId:
    return BrokerId(NodeId(number))


def node(number: int) -> NodeId:
    return NodeId(number)


def link(source: int, target: int) -> Link[NodeId]:
    return Link(NodeId(source), NodeId(target))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("kill: {node: 1}", actions.Kill(nodes=(node(1),))),
        ("kill: {node: controller}", actions.Kill(nodes=(node(100),))),
        ("isolate: {node: 0}", actions.Isolate(nodes=(node(0),), clients=actions.Clients.CUT)),
        (
            "isolate: {node: 0, clients: connected}",
            actions.Isolate(nodes=(node(0),), clients=actions.Clients.CONNECTED),
        ),
        ("cut: {from: 0, to: controller}", actions.Cut(link=link(0, 100))),
        ("cut: {from: client, to: 2}", actions.Cut(link=link(1000, 2))),
        ("lose: {responses: 0 -> 1}", actions.LoseResponses(link=link(0, 1))),
        ("lose: {responses: 0→1}", actions.LoseResponses(link=link(0, 1))),
        ("heal: all", actions.HealAll()),
        ("heal: {node: 2}", actions.HealNodes(nodes=(node(2),))),
        ("heal: {from: 0, to: 1}", actions.HealLink(link=link(0, 1))),
        ("power_loss: {node: 2, keep: torn}", actions.PowerLoss(nodes=(node(2),), loss=DiskLoss(keep=Keep.TORN))),
        (
            "power_loss: {node: 2, keep: prefix, kept: 3, truncation: kept}",
            actions.PowerLoss(
                nodes=(node(2),),
                loss=DiskLoss(keep=Keep.PREFIX, exact=ExactLoss(kept=3, truncation=TruncationFate.KEPT)),
            ),
        ),
        (
            "power_loss: {node: 2, names: kept}",
            actions.PowerLoss(
                nodes=(node(2),),
                loss=DiskLoss(
                    keep=Keep.NONE,
                    exact=ExactLoss(kept=0, truncation=TruncationFate.UNDONE, names=NamesFate.KEPT),
                ),
            ),
        ),
        (
            "produce: {producer: producer-0, partition: orders-0, records: 2}",
            actions.Produce(producer="producer-0", partition=TopicPartition("orders", 0), records=2),
        ),
        ("replace_disk: {node: 2}", actions.ReplaceDisk(nodes=(node(2),))),
        (
            "power_loss: {nodes: [0, 2], seed: 7}",
            actions.PowerLoss(nodes=(node(0), node(2)), loss=DiskLoss(keep=Keep.NONE, seed=7)),
        ),
        ("kill: {node: leader(orders-0)}", actions.Kill(nodes=(RoleNode(role=ReplicaRole.LEADER, partition=ORDERS),))),
        ("kill: {node: last-isr}", actions.Kill(nodes=(RoleNode(role=ReplicaRole.LAST_ISR, partition=ORDERS),))),
        (
            "until: {acked: 500, acks: all, within: 45 s}",
            conditions.Until(
                condition=conditions.Acked(
                    count=500, acks=Acks.ALL, partitions=(ORDERS,), per=conditions.CountPer.TOTAL
                ),
                within_ms=45_000,
            ),
        ),
        (
            "until: {partition: orders-0, leader: none}",
            conditions.Until(
                condition=conditions.PartitionIs(
                    partitions=(ORDERS,), leader=conditions.NoLeader.NONE, isr=None, elr=None
                ),
                within_ms=30_000,
            ),
        ),
        (
            "until: {partition: all, leader: 1, isr: [1, 2], elr: []}",
            conditions.Until(
                condition=conditions.PartitionIs(partitions=(ORDERS,), leader=node(1), isr=(node(1), node(2)), elr=()),
                within_ms=30_000,
            ),
        ),
        (
            "until: {partition: orders-0, leader_recovery_state: RECOVERING, last_known_leader: 2, last_known_elr: []}",
            conditions.Until(
                condition=conditions.PartitionIs(
                    partitions=(ORDERS,),
                    leader_recovery_state=LeaderRecoveryState.RECOVERING,
                    last_known_leader=node(2),
                    last_known_elr=(),
                ),
                within_ms=30_000,
            ),
        ),
        (
            "until: {partition: orders-0, replicas: [2, 0], adding_replicas: [0], removing_replicas: []}",
            conditions.Until(
                condition=conditions.PartitionIs(
                    partitions=(ORDERS,),
                    replicas=(node(2), node(0)),
                    adding_replicas=(node(0),),
                    removing_replicas=(),
                ),
                within_ms=30_000,
            ),
        ),
        ("until: {consumed: 9}", conditions.Until(condition=conditions.Consumed(count=9), within_ms=30_000)),
        (
            "until: {consumed: 9, since: run}",
            conditions.Until(condition=conditions.Consumed(count=9, since=conditions.Since.RUN), within_ms=30_000),
        ),
        (
            "until: {topic: orders, exists: false}",
            conditions.Until(condition=conditions.TopicIs(topic="orders", exists=False), within_ms=30_000),
        ),
        (
            "until: {node: 1, log: orders-0, exists: false}",
            conditions.Until(
                condition=conditions.LogIs(node=node(1), partition=ORDERS, exists=False), within_ms=30_000
            ),
        ),
        (
            "until: {node: 1, registered: false}",
            conditions.Until(condition=conditions.RegistrationIs(node=node(1), exists=False), within_ms=30_000),
        ),
        (
            "until: {error: NOT_LEADER_OR_FOLLOWER, count: 3}",
            conditions.Until(
                condition=conditions.ClientSaw(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, count=3), within_ms=30_000
            ),
        ),
        (
            "until: {intercepted: 2, responses: Fetch, from: 1, to: leader(orders-0)}",
            conditions.Until(
                condition=conditions.Intercepted(
                    channel=Channel(
                        node(1),
                        RoleNode(role=ReplicaRole.LEADER, partition=TopicPartition("orders", 0)),
                        "Fetch",
                        Way.RESPONSE,
                    ),
                    count=2,
                ),
                within_ms=30_000,
            ),
        ),
        (
            "until: {feature: metadata.version, level: 4.0-IV1}",
            conditions.Until(condition=conditions.FeatureIs(feature="metadata.version", level=23), within_ms=30_000),
        ),
        (
            "create_topic: {name: refunds, replicas: [[2, 1]], min.insync.replicas: 1}",
            actions.CreateTopic(
                topic=PlannedTopic(
                    name="refunds", replicas=((broker(2), broker(1)),), properties=(("min.insync.replicas", "1"),)
                )
            ),
        ),
        ("delete_topic: {name: orders}", actions.DeleteTopic(name="orders")),
        (
            "alter_config: {topic: orders, set: {min.insync.replicas: 1}, delete: [retention.ms]}",
            actions.AlterConfig(
                config=ConfigChange(
                    resource=ConfigResource.TOPIC,
                    name="orders",
                    changes=(("min.insync.replicas", "1"), ("retention.ms", None)),
                )
            ),
        ),
        (
            "alter_config: {broker: 1, set: {min.insync.replicas: 1}, answer: [INVALID_CONFIG]}",
            actions.AlterConfig(
                config=ConfigChange(resource=ConfigResource.BROKER, name="1", changes=(("min.insync.replicas", "1"),)),
                answers=(ErrorCode.INVALID_CONFIG,),
            ),
        ),
        (
            "alter_config: {cluster: default, set: {unclean.leader.election.enable: true}}",
            actions.AlterConfig(
                config=ConfigChange(
                    resource=ConfigResource.BROKER, name="", changes=(("unclean.leader.election.enable", "true"),)
                ),
            ),
        ),
        (
            "elect_leaders: {type: designated, partition: orders-0, leader: 2}",
            actions.ElectLeaders(
                election=admin_messages.RequestedElection.DESIGNATED, partitions=(ORDERS,), leader=broker(2)
            ),
        ),
        (
            "elect_leaders: {type: preferred, partition: all, answer: [NONE, ELECTION_NOT_NEEDED]}",
            actions.ElectLeaders(
                election=admin_messages.RequestedElection.PREFERRED,
                partitions=(ORDERS,),
                leader=None,
                answers=(ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED),
            ),
        ),
        (
            "reassign: {partition: orders-0, replicas: [1, 2]}",
            actions.Reassign(partition=ORDERS, replicas=(broker(1), broker(2))),
        ),
        ("cancel_reassignment: {partition: orders-0}", actions.CancelReassignment(partition=ORDERS)),
        (
            "update_feature: {feature: eligible.leader.replicas.version, level: 0, upgrade_type: SAFE_DOWNGRADE}",
            actions.UpdateFeature(
                target=FeatureLevel("eligible.leader.replicas.version", 0),
                upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE,
            ),
        ),
        ("unregister_broker: {node: 2}", actions.UnregisterBroker(broker_id=broker(2))),
        ("delete_records: {partition: orders-0, offset: 5}", actions.DeleteRecords(partition=ORDERS, offset=Offset(5))),
        ("delete_records: {partition: orders-0, offset: -1}", actions.DeleteRecords(partition=ORDERS, offset=None)),
        (
            "until: {node: 2, fenced: true}",
            conditions.Until(condition=conditions.BrokerIs(node=node(2), unfenced=False), within_ms=30_000),
        ),
    ],
)
def test_a_step_is_read_and_written(text: str, action: conditions.Until | actions.ActionTemplate) -> None:
    assert step(text) == action
    written = flow_text(until_entry(action) if isinstance(action, conditions.Until) else action_entry(action))
    assert step(written) == action


def test_a_topic_that_a_step_creates_may_be_named_by_later_ones() -> None:
    steps = read(
        f"{HEAD}steps:\n  - create_topic: {{name: refunds, replicas: [[1]]}}\n"
        "  - until: {partition: refunds-0, leader: 1}\n  - delete_topic: {name: refunds}\n"
    ).steps
    assert steps[2].action == actions.DeleteTopic(name="refunds")


REFUNDS: Final = "steps:\n  - create_topic: {name: refunds, replicas: [[1], [2]]}\n"


@pytest.mark.parametrize(
    ("head", "topics", "awaited"),
    [
        (HEAD, ("orders",), ()),
        (HEAD.replace("rate: 500", "rate: 500, topics: [refunds]"), ("refunds",), ("refunds",)),
        (HEAD.replace("rate: 500", "rate: 500, topics: [orders, refunds]"), ("orders", "refunds"), ("refunds",)),
        (re.sub(r"topics: .*", "topics: []", HEAD), ("refunds",), ("refunds",)),
    ],
    ids=["those of the start", "one that a step makes", "both", "none at the start"],
)
def test_clients_have_topics_that_steps_make(head: str, topics: tuple[str, ...], awaited: tuple[str, ...]) -> None:
    scenario = read(head.replace("}]}", "}], consumers: [{}]}") + REFUNDS)
    (producer,) = producers_of(scenario)
    assert scenario.producers[0].topics == topics
    assert producer.awaited == awaited
    assert dict.fromkeys(partition.topic for partition in producer.partitions) == dict.fromkeys(topics)
    assert scenario.made_partitions == (TopicPartition("refunds", 0), TopicPartition("refunds", 1))


def test_a_topic_of_a_client_that_nothing_makes_is_reported() -> None:
    with pytest.raises(ScenarioError, match="'refund' is not allowed, allowed: orders, refunds") as caught:
        read(HEAD.replace("rate: 500", "rate: 500, topics: [refund]") + REFUNDS)
    assert caught.value.line == 4


def test_partitions_that_a_step_adds_may_be_named_by_later_ones() -> None:
    added = "steps:\n  - create_partitions: {name: orders, count: 3}\n  - until: {partition: orders-2, leader: 1}\n"
    assert len(read(HEAD + added).steps) == 2
    with pytest.raises(ScenarioError, match="no partition 'orders-2', allowed: orders-0, orders-1"):
        read(HEAD + added.replace("count: 3", "count: 2"))


def test_a_name_given_by_a_step_stands_for_its_node_in_later_steps() -> None:
    steps = read(f"{HEAD}steps:\n  - kill: {{node: leader, as: first}}\n  - start: {{node: first}}\n").steps
    assert steps[0].bind == "first"
    assert steps[1].action == actions.Start(nodes=(NamedNode(name="first"),))


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("", 1, "the file is empty"),
        ("a: [", 1, "no YAML"),
        ("name: x\nname: y\n", 2, "name: is there twice"),
        (f"{HEAD}steps: [{{heal: all}}]\nstep: 3\n", 6, "step: unknown key, allowed: name, title, source, report"),
        (f"{HEAD}steps: [{{heal: all}}]\nstep: 3\n", 6, "did you mean 'steps'?"),
        (HEAD, 1, "needs the key 'steps'"),
        (
            HEAD.replace("brokers: 3,", 'brokers: 3, kafka_clients: {app: "sh \'x"},'),
            2,
            "no command: no closing quotation",
        ),
        (HEAD.replace("brokers: 3,", 'brokers: 3, kafka_clients: {app: "  "},'), 2, "no command: it has no words"),
        (f"{HEAD.replace('name: ', 'name: ../')}steps: [{{heal: all}}]\n", 1, "is no name, allowed: letters"),
        (f"{HEAD.replace('name: ', 'name: /')}steps: [{{heal: all}}]\n", 1, "is no name, allowed: letters"),
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
        (
            f"{HEAD}steps:\n  - repeat: {{times: 0, steps: [{{heal: all}}]}}\n",
            6,
            "times: expected a whole number from 1",
        ),
        (f"{HEAD}steps:\n  - repeat: {{times: 2, steps: [{{heel: all}}]}}\n", 6, "did you mean 'heal'?"),
        (
            f"{HEAD}steps:\n  - every: {{period: 2 s, for: 1 s, do: [{{heal: all}}]}}\n",
            6,
            "for: allowed: from one period",
        ),
        (f"{HEAD}steps:\n  - every: {{period: 0 s, for: 1 s, do: [{{heal: all}}]}}\n", 6, "longer than 0"),
        (f"{HEAD}steps:\n  - parallel: [{{heal: all}}]\n", 6, "two actions at least"),
        (f"{HEAD}steps:\n  - parallel: [{{heal: all}}, {{until: {{consumed: 1}}}}]\n", 6, "without barriers"),
        (f"{HEAD}steps:\n  - wait_for_any: {{of: [{{consumed: 1}}]}}\n", 6, "of: needs two conditions"),
        (f"{HEAD}steps:\n  - wait_for_any: {{of: [{{consumed: 1}}, {{eaten: 2}}]}}\n", 6, "unknown key 'eaten'"),
        (f"{HEAD}steps:\n  - repeat: {{times: 1000, steps: [{LONG}]}}\n", 6, "more than 10000 steps"),
        (f"{HEAD}steps:\n  - explode: {{node: 1}}\n", 6, "there is no such step or fault, allowed: until, "),
        (f"{HEAD}steps:\n  - kill: {{node: 3}}\n", 6, "no node 3, allowed: brokers 0 to 2, controller"),
        (f"{HEAD}steps:\n  - kill: {{node: leder}}\n", 6, "did you mean 'leader'?"),
        (f"{HEAD}steps:\n  - kill: {{node: 101}}\n", 6, "no node 101"),
        (f"{HEAD.replace('brokers: 3', 'brokers: 3, controllers: 2')}steps:\n  - heal: all\n", 2, "allowed: 1, 3, 5"),
        (
            f"{HEAD.replace('brokers: 3', 'brokers: 3, standby_controllers: 1')}steps:\n  - heal: all\n",
            2,
            "is no quorum",
        ),
        (f"{HEAD}steps:\n  - expire: {{node: active-controller}}\n", 6, "must be a broker"),
        (f"{HEAD.replace('brokers: 3', 'brokers: 2, controllers: 3, combined: true')}steps: []\n", 2, "at least 3"),
        (f"{HEAD}steps:\n  - kill: {{node: follower(controllers)}}\n", 6, "no node 'follower(controllers)'"),
        (f"{HEAD}steps:\n  - replace_disk: {{node: leader(controllers)}}\n", 6, "must be a broker"),
        (f"{HEAD}steps:\n  - kill: {{nod: 1}}\n", 6, "needs the key 'node'"),
        (f"{HEAD}steps:\n  - kill: {{node: 1, keep: all}}\n", 6, "keep: unknown key"),
        (f"{HEAD}steps:\n  - kill: {{node: 1}}\n    pause: {{node: 1}}\n", 6, "a step is one of"),
        (f"{HEAD}steps:\n  - kill: {{node: leader(order-0)}}\n", 6, "no partition 'order-0', allowed: orders-0"),
        (f"{MANY}steps:\n  - kill: {{node: leader}}\n", 6, "write leader(PARTITION)"),
        (f"{HEAD}steps:\n  - cut: {{from: 1, to: 1}}\n", 6, "to itself"),
        (f"{HEAD}steps:\n  - cut: {{from: 1, to: client}}\n", 6, "nothing dials the client"),
        (f"{HEAD}steps:\n  - cut: {{from: controller, to: client}}\n", 6, "nothing dials the client"),
        (f"{HEAD}steps:\n  - lose: {{responses: 1}}\n", 6, "no link, allowed: a -> b"),
        (f"{HEAD}steps:\n  - replace_disk: {{node: controller}}\n", 6, "must be a broker"),
        (f"{HEAD}steps:\n  - produce: {{producer: p, partition: orders-0, records: 1}}\n", 6, "producer-0"),
        (f"{HEAD}steps:\n  - power_loss: {{node: 1, keep: some}}\n", 6, "allowed: none, prefix, torn, pages"),
        (f"{HEAD}steps:\n  - until: {{within: 3 s}}\n", 6, "waits for nothing"),
        (f"{HEAD}steps:\n  - until: {{acked: 5, within: 3 parsecs}}\n", 6, "is no duration"),
        (f"{HEAD}steps:\n  - until: {{node: 1}}\n", 6, "needs one of unfenced, fenced, registered and log"),
        (f"{HEAD}steps:\n  - until: {{partition: orders-0}}\n", 6, "waits for nothing of the partition"),
        (f"{HEAD}steps:\n  - until: {{partition: orders-0, leadr: 1}}\n", 6, "leadr: unknown key, allowed: within, "),
        (f"{HEAD}steps:\n  - until: {{node: 1, fencd: true}}\n", 6, "did you mean 'fenced'?"),
        (f"{HEAD}steps:\n  - until: {{topic: orders, exsts: true}}\n", 6, "'exists', which 'exsts' resembles"),
        (f"{HEAD}steps:\n  - until: {{topic: order, exists: true}}\n", 6, "did you mean 'orders'?"),
        (f"{HEAD}steps:\n  - until: {{partition: orders-0, isr: [], adding_replica: []}}\n", 6, "'adding_replicas'?"),
        (f"{HEAD}steps:\n  - until: {{error: NOT_LEADER_OR_FOLOWER}}\n", 6, "did you mean 'NOT_LEADER_OR_FOLLOWER'?"),
        (f"{HEAD}steps:\n  - until: {{feature: metadata.version, level: 1.0}}\n", 6, "level: '1.0' is not allowed"),
        (f"{HEAD}steps:\n  - create_topic: {{name: a/b, replicas: [[0]]}}\n", 6, "is no topic name"),
        (f"{HEAD}steps:\n  - delete_topic: {{name: refunds}}\n", 6, "'refunds' is not allowed, allowed: orders"),
        (f"{HEAD}steps:\n  - alter_config: {{set: {{retention.ms: 1}}}}\n", 6, "one of topic, broker and cluster"),
        (f"{HEAD}steps:\n  - alter_config: {{topic: orders}}\n", 6, "changes nothing, allowed: set, delete"),
        (f"{HEAD}steps:\n  - alter_config: {{topic: orders, set: {{flush: 1}}}}\n", 6, "unknown property"),
        (
            f"{HEAD}steps:\n  - alter_config: {{broker: 7, set: {{num.partitions: 1}}}}\n",
            6,
            "no broker 7, allowed",
        ),
        (f"{HEAD}steps:\n  - elect_leaders: {{type: designated, partition: all}}\n", 6, "names its leader"),
        (f"{HEAD}steps:\n  - elect_leaders: {{type: preferred, partition: all, leader: 1}}\n", 6, "names its leader"),
        (
            f"{HEAD}steps:\n  - elect_leaders: {{type: best, partition: all}}\n",
            6,
            "allowed: preferred, unclean",
        ),
        (f"{HEAD}steps:\n  - reassign: {{partition: orders-0, replicas: [1, 1]}}\n", 6, "different brokers"),
        (f"{HEAD}steps:\n  - reassign: {{partition: orders-0, replicas: [1, 5]}}\n", 6, "no broker 5"),
        (f"{HEAD}steps:\n  - cancel_reassignment: {{partition: orders-0, replicas: [1]}}\n", 6, "unknown key"),
        (f"{HEAD}steps:\n  - update_feature: {{feature: x, level: -1}}\n", 6, "a whole number from 0"),
        (f"{HEAD}steps:\n  - unregister_broker: {{node: 1, answer: []}}\n", 6, "a list of error names"),
        (f"{HEAD}steps:\n  - unregister_broker: {{node: 1, answer: [OKAY]}}\n", 6, "'OKAY' is not allowed"),
        (f"{HEAD}steps: [{{heal: all}}]\nend: whatever\n", 6, "allowed: restore, as_is"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kafka-7: {{verdict: valid}}}}\n", 6, "kafka-7: unknown key"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{lost: 0}}}}\n", 6, "needs the key 'verdict'"),
        (
            f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{verdict: violation, checks: [H2]}}}}\n",
            6,
            "'H2' is not allowed",
        ),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{verdict: valid, checks: [D1]}}}}\n", 6, "violation"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{verdict: valid, lost: few}}}}\n", 6, "no comparison"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{verdict: valid, unavailable: 2}}}}\n", 6, "such as 2 s"),
        (f"{HEAD}steps: [{{heal: all}}]\nexpect: {{kip-966: {{verdict: valid, p99_ack: '<='}}}}\n", 6, "no comparison"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_what_is_allowed(text: str, line: int, complaint: str) -> None:
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


def test_expected_times_are_durations() -> None:
    scenario = read(
        f"{HEAD}steps: [{{heal: all}}]\n"
        "expect: {kip-966: {verdict: valid, unavailable: '<=2s', p99_ack: '< 40 ms'}}\n"
    )
    expected = scenario.expectation("kip-966")
    assert expected is not None
    assert expected.unavailable == Bound(comparison="<=", limit=2.0)
    assert expected.p99_ack == Bound(comparison="<", limit=0.04)


def test_clients_of_kafka_may_have_commands() -> None:
    clients = '{app: python3 shop.py, spark: ""}'
    text = f"{HEAD.replace('brokers: 3,', f'brokers: 3, kafka_clients: {clients},')}steps: [{{heal: all}}]\n"
    assert read(text).kafka_clients == ("app", "spark")
    assert read(text).applications == (("app", "python3 shop.py"),)
    assert read(text.replace(clients, "[app, spark]")).kafka_clients == ("app", "spark")
    assert read(text.replace(clients, "[app, spark]")).applications == ()


@pytest.mark.parametrize("name", scenario_names())
def test_every_bundled_scenario_can_be_played(name: str) -> None:
    assert load_scenario(find_scenario(name)).name == name


def test_an_unknown_scenario_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="did you mean 'kip-966/last-replica-standing'"):
        find_scenario("kip-966/last-replica-standin")


@pytest.mark.parametrize(
    ("action", "driver", "needs_proxies"),
    [
        ("isolate: {node: 1}", DriverName.PROCESS, True),
        ("isolate: {node: 1}", DriverName.SIMULATOR, False),
        ("kill: {node: 1}", DriverName.PROCESS, False),
        ("heal: all", DriverName.PROCESS, False),
        ("hold: {requests: Fetch, from: 2, to: 0}", DriverName.PROCESS, False),
        ("hold: {requests: Fetch, from: 2, to: 0}", DriverName.KAFKA, True),
    ],
)
def test_proxies_are_wanted_only_where_they_are_needed(action: str, driver: DriverName, needs_proxies: bool) -> None:  # noqa: FBT001 - a table's column
    assert read(f"{HEAD}steps: [{{{action}}}]\n").needs_proxies(driver) is needs_proxies


def test_what_nodes_sync_must_be_known_only_for_power_losses() -> None:
    losing = "power_loss: {node: 1, keep: none}"
    assert [read(f"{HEAD}steps: [{{{step}}}]\n").has_power_losses for step in (losing, "kill: {node: 1}")] == [
        True,
        False,
    ]


SHORT = """\
name: x
cluster: {brokers: 3}
topics: [TOPIC]
workload: {producers: [{acks: all, rate: 1}]}
steps: [{STEP}]
"""


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        ("isolate: leader(orders-0)", "write isolate: {node: leader(orders-0)}"),
        ("kill: [1, 2]", "write kill: {nodes: [1, 2]}"),
        ("heal: [0, 1]", "write heal: all or heal: {nodes: [0, 1]}"),
        ("heal: everything", "write heal: all or heal: {node: everything} or heal: {from: ..., to: ...}"),
        ("depose_controller: {node: 0}", "write depose_controller: all"),
        ("cut: 0", "write cut: {from: ..., to: ...}"),
        ("partition: {from: 0, to: 1}", "there is no such step or fault"),
        ("partition: {from: 0, to: 1}", "did you mean 'cut' or 'isolate'?"),
        ("power-loss: {node: 1}", "did you mean 'power_loss'?"),
        ("explode: {node: 1}", "there is no such step or fault"),
    ],
)
def test_a_step_that_says_too_little_is_reported_with_what_to_write(step: str, advice: str) -> None:
    text = SHORT.replace("TOPIC", "{name: orders, replicas: [[0, 1, 2]]}").replace("STEP", step)
    with pytest.raises(ScenarioError, match=re.escape(advice)):
        read_scenario(Path("x.yaml"), text)


@pytest.mark.parametrize(
    ("topic", "replicas"),
    [
        ("{name: orders, partitions: 3, replication_factor: 2}", ((0, 1), (1, 2), (2, 0))),
        ("{name: orders, partitions: 2, replication-factor: 3}", ((0, 1, 2), (1, 2, 0))),
        ("{name: orders, partitions: 4}", ((0,), (1,), (2,), (0,))),
    ],
)
def test_a_topic_may_be_said_in_numbers(topic: str, replicas: tuple[tuple[int, ...], ...]) -> None:
    text = SHORT.replace("TOPIC", topic).replace("STEP", "heal: all")
    assert read_scenario(Path("x.yaml"), text).topics[0].replicas == replicas


@pytest.mark.parametrize(
    ("topic", "complaint"),
    [
        ("{name: orders, partitions: 3, replication_factor: 4}", "a whole number from 1 to 3"),
        ("{name: orders, partitions: 1, replicas: [[0]]}", "beside replicas"),
        ("{name: orders}", "needs the key 'replicas'"),
    ],
)
def test_numbers_of_a_topic_that_cannot_be_are_reported(topic: str, complaint: str) -> None:
    text = SHORT.replace("TOPIC", topic).replace("STEP", "heal: all")
    with pytest.raises(ScenarioError, match=complaint):
        read_scenario(Path("x.yaml"), text)


def steps_of(text: str) -> list[tuple[str, str | None]]:
    return [(step.text, step.together) for step in read_scenario(Path("x.yaml"), f"{HEAD}steps:\n{text}").steps]


def test_repeated_actions_are_listed_as_often() -> None:
    text = "  - repeat: {times: 2, steps: [{heal: all}, {repeat: {times: 2, steps: [{kill: {node: 1}}]}}]}\n"
    round_of = [("{heal: all}", None), ("{kill: {node: 1}}", None), ("{kill: {node: 1}}", None)]
    assert steps_of(text) == round_of * 2


def test_every_round_ends_with_its_period() -> None:
    text = "  - every: {period: 2 s, for: 5 s, do: [{heal: all}, {kill: {node: 1}}]}\n"
    assert [step for step, _ in steps_of(text)] == [
        "{heal: all}",
        "{kill: {node: 1}}",
        "{until: {elapsed: 2000 ms}}",
    ] * 2


def test_what_is_played_at_once_is_so_in_each_round_by_itself() -> None:
    text = "  - repeat: {times: 2, steps: [{parallel: [{kill: {node: 1}}, {kill: {node: 2}}]}]}\n"
    groups = [together for _, together in steps_of(text)]
    assert groups[0] == groups[1] != groups[2] == groups[3]


def test_any_of_several_conditions_is_read_and_written_back() -> None:
    text = "  - wait_for_any: {of: [{consumed: 1}, {node: 1, unfenced: false}], within: 10 s}\n"
    (step,) = read_scenario(Path("x.yaml"), f"{HEAD}steps:\n{text}").steps
    assert isinstance(step.action, conditions.Until)
    consumed, fenced = conditions.Consumed(count=1), conditions.BrokerIs(node=node(1), unfenced=False)
    assert step.action == conditions.Until(condition=conditions.AnyOf(conditions=(consumed, fenced)), within_ms=10_000)
    assert until_entry(step.action) == {
        "wait_for_any": {"of": [{"consumed": 1}, {"node": 1, "unfenced": False}], "within": "10000 ms"}
    }


def test_names_are_put_into_each_of_several_conditions() -> None:
    condition = conditions.AnyOf(
        conditions=(conditions.BrokerIs(node=NamedNode(name="first"), unfenced=True), conditions.Consumed(count=1))
    )
    found = conditions.Until(condition=condition).with_names({"first": node(2)}).condition
    assert found == conditions.AnyOf(
        conditions=(conditions.BrokerIs(node=node(2), unfenced=True), conditions.Consumed(count=1))
    )


def expecting(label: str) -> Scenario:
    steps = "steps:\n  - wait: {for: 1 s}\n"
    return read_scenario(Path("x.yaml"), f"{HEAD}{steps}expect:\n  {label}: {{verdict: violation}}\n")


def test_an_era_with_changes_has_an_expectation_of_its_own() -> None:
    scenario = expecting("kip-966 with min.insync.replicas=1,elr=off")
    assert scenario.expectation("kip-966 with elr=off, min.insync.replicas=1") is not None
    assert (scenario.expectation("kip-966"), scenario.eras) == (None, ("kip-966",))


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("kip-966 with elr=on", "changes nothing of kip-966"),
        ("kip-966 with erl=off", "is no era with changes"),
        ("kip966 with elr=off", "is no era with changes"),
        ("kip-966 with elr", "is no era with changes"),
    ],
)
def test_an_expectation_of_changes_that_are_none_is_refused_where_it_stands(label: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        expecting(label)


def test_the_default_era_is_played_unless_only_others_are_expected() -> None:
    assert load_scenario(find_scenario("kip-497/leader-cut-off")).eras == ("kip-966",)
    expected = load_scenario(find_scenario("zookeeper/server-down"))
    assert expected.eras == tuple(era for era, _ in expected.expect)
    assert all(era.endswith("-zk") for era in expected.eras)


def test_transactions_that_a_producer_makes_by_itself_are_read() -> None:
    internal = ", {name: __transaction_state, replicas: [[0, 1, 2]]}]"
    head = MANY.replace("]]}]", "]]}" + internal).replace("500}]", "500}], transactions: {partitions: 2, size: 5}")
    plan = read(f"{head}steps: [{{heal: all}}]\n").transactions
    assert plan == TransactionsPlan(partitions=2, size=5, abort_every=0, rate=10)
    with pytest.raises(ScenarioError, match="expected a whole number from 1 to 2"):
        read(f"{head.replace('partitions: 2', 'partitions: 3')}steps: [{{heal: all}}]\n")
    with pytest.raises(ScenarioError, match="transactions need a topic __transaction_state"):
        read(f"{head.replace(internal, ']')}steps: [{{heal: all}}]\n")


INTERNAL_TOPIC_OF_GROUPS = ", {name: __consumer_offsets, replicas: [[0, 1, 2]]}]"


def with_groups(groups: str) -> str:
    head = MANY.replace("]]}]", "]]}" + INTERNAL_TOPIC_OF_GROUPS).replace("500}]", f"500}}], groups: [{groups}]")
    return f"{head}steps: [{{heal: all}}]\n"


def test_groups_whose_members_are_there_from_the_start_are_read() -> None:
    scenario = read(with_groups("{group: shop, members: 3, kind: static, session.timeout.ms: 45000}"))
    settings = (("session.timeout.ms", "45000"),)
    assert scenario.groups == (GroupPlan(name="shop", members=3, is_static=True, properties=settings),)
    members = members_of(scenario)
    assert members is not None
    assert members.topics == ("orders",)
    assert members.settings_of("shop").session_timeout_ms == 45_000
    assert members.settings_of("other") == members.settings


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("{group: 'a b', members: 1}", "expected a group"),
        ("{group: shop, members: 1}, {group: shop, members: 2}", "group 'shop' is there twice"),
        ("{group: shop, members: 101}", "expected a whole number from 0 to 100"),
        ("{group: shop, members: 1, kind: lazy}", "dynamic, static"),
        ("{group: shop, members: 1, session.timeout.ms: soon}", "session.timeout.ms"),
    ],
)
def test_groups_that_cannot_be_are_reported(groups: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        read(with_groups(groups))


def test_groups_need_the_topic_of_their_positions() -> None:
    with pytest.raises(ScenarioError, match="groups need a topic __consumer_offsets"):
        read(with_groups("{group: shop, members: 1}").replace(INTERNAL_TOPIC_OF_GROUPS, "]"))
