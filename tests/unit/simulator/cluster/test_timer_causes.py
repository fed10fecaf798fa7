"""A timer's cause names the node, its incarnation and the timer, in virtual time as in processes."""

from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.node.cause_ids import CauseIds
from laststand.emulator.simulator.nodes.nodes import BrokerNode, ControllerNode


def test_no_two_timers_of_simulated_nodes_have_the_same_cause() -> None:
    nodes: list[BrokerNode | ControllerNode] = [
        BrokerNode(BrokerId(NodeId(0))),
        BrokerNode(BrokerId(NodeId(1))),
        ControllerNode(),
    ]
    made = []
    for _ in range(2):
        for node in nodes:
            node.boot(Switches(), NodeProperties())
            made += [node.next_timer_cause(), node.next_timer_cause()]
    assert len(set(made)) == len(made) == 12


def test_no_two_timers_of_processes_have_the_same_cause() -> None:
    processes = [CauseIds(node_id=NodeId(node), incarnation=incarnation) for node in (0, 1) for incarnation in (0, 1)]
    made = [causes.timer() for causes in processes for _ in range(2)]
    assert len(set(made)) == len(made) == 8
