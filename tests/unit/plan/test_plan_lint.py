"""Actions that can never do anything are found; who has them is told, and by whom they are refused."""

import pytest

from laststand.emulator.core.types import BrokerId, NodeId, TopicPartition
from laststand.emulator.plan import actions
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.lines import parse_action
from laststand.emulator.plan.names import Names
from laststand.emulator.plan.plan import Plan, parse_plan
from laststand.emulator.plan.plan_lint import find_problem, problems, refusal
from tests.unit.plan.test_lines import PARTITIONS, names

PLAN = parse_plan("cluster brokers=3\ntopic orders replicas=(0,1,2)\n")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("wait -5", "expected a time from 0 on"),
        ("produce orders-7 acks=1 records=1", "no such partition; there are orders-0"),
        ("produce orders-0 acks=0 records=1", "expected acks all or 1"),
        ("produce orders-0 acks=1 records=0", "expected records from 1 on"),
        ("produce orders-0 acks=1 records=10001", "expected records up to 10000"),
        ("kill 3", "no node 3; there are brokers 0 to 2 and the controller 100"),
        ("kill 1000", "no node 1000"),
        ("replace-disk 100", "no broker 100; there are brokers 0 to 2"),
        ("power-loss 1 keep=none kept=-1 truncation=kept", "expected kept from 0 on"),
        ("crash-within 1 after-effects=-1", "expected after-effects from 0 on"),
        ("crash-within 1 after-effects=1 keep=none kept=-1 truncation=kept", "expected kept from 0 on"),
        ("clock 1 rate=0", "expected rate from 1 on"),
        ("cut 5->100", "no node 5"),
        ("cut 1->1", "a link from 1 to itself does not exist"),
        ("cut 1->1000", "nothing dials the client"),
        ("slow 0->1 ms=-5", "expected ms from 0 on"),
        ("hold 1->100 Fetsh request", "no such kind of message"),
        ("hold 1->100 Sync response", "Sync is only there as 100->100 Sync response"),
        ("release 1->100 Fetch request count=0", "expected count from 1 on"),
        ("draw -1", "expected a number from 0 on"),
        ("min-isr refunds value=1", "no such topic; there are orders"),
        ("min-isr orders value=0", "min.insync.replicas: '0' is not allowed"),
        ("reassign orders-0 replicas=0,1,3", "no broker 3"),
        ("reassign orders-0 replicas=0,0", "expected different brokers"),
        ("elr-feature level=2", "expected a level from 0 to 1"),
        ("recreate refunds", "no such topic"),
    ],
)
def test_what_can_never_do_anything(line: str, problem: str) -> None:
    found = find_problem(PLAN, parse_action(line))
    assert found is not None
    assert found.startswith(problem)


@pytest.mark.parametrize("row", actions.ACTION_SPECS.values(), ids=lambda row: row.kind.__name__)
def test_examples_have_no_problem(row: object) -> None:
    spec = next(each for each in actions.ACTION_SPECS.values() if each is row)
    known = Names(brokers=4, controllers=3, partitions=PARTITIONS)
    assert list(problems(parse_action(spec.example, known), known)) == []


@pytest.mark.parametrize("verb", ["kill", "start", "stop", "pause", "resume", "isolate", "rejoin"])
def test_actions_on_nodes_work_on_the_controller_too(verb: str) -> None:
    assert find_problem(PLAN, parse_action(f"{verb} 100")) is None


@pytest.mark.parametrize(
    ("creating", "partition"),
    [
        ("create_topic: {name: refunds, replicas: [[1]]}", "refunds-0"),
        ("create_partitions: {name: orders, count: 8}", "orders-7"),
    ],
)
def test_a_partition_that_the_plan_creates_may_be_named(creating: str, partition: str) -> None:
    created = parse_action(creating, Names(brokers=3, partitions=PLAN.partitions))
    produce = parse_action(f"produce {partition} acks=1 records=1")
    assert find_problem(PLAN, produce) is not None
    assert find_problem(PLAN.with_actions([created, produce]), produce) is None


def test_arguments_have_to_go_together() -> None:
    election = parse_action("elect_leaders: {type: designated, partition: orders-0, leader: 2}", names())
    assert isinstance(election, actions.ElectLeaders)
    without = actions.ElectLeaders(election=election.election, partitions=(TopicPartition("orders", 0),))
    assert find_problem(PLAN, without) == "a designated election, and no other, names its leader"


def test_a_driver_may_refuse_an_action() -> None:
    assert refusal(parse_action("draw 1"), DriverName.PROCESS) == "a controller's process draws by itself"
    assert refusal(parse_action("draw 1"), DriverName.SIMULATOR) is None
    assert refusal(parse_action("kill 1"), DriverName.PROCESS) is None


def test_one_broker_is_named_in_the_singular() -> None:
    alone = Plan(brokers=1, topics=PLAN.topics)
    assert find_problem(alone, parse_action("replace-disk 1")) == "no broker 1; there are broker 0"
    assert BrokerId(NodeId(0)) in alone.topics[0].replicas[0]


def test_what_the_simulator_does_not_have_is_refused_with_the_reason() -> None:
    plan = parse_plan("cluster brokers=3\ntopic orders replicas=(0,1,2)\nthrottle 0->1 rate=100\n")
    assert find_problem(plan, plan.actions[0]) == "messages have no size in virtual time"
