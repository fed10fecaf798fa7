"""Finds the nodes that an action names, and performs the action on each in turn."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.plan import actions
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode, MetadataNode

Process: TypeAlias = BrokerNode | MetadataNode

UNKNOWN_NODE: Final = actions.no_op("there is no such node")


def on_each(nodes: Sequence[NodeId], do: Callable[[NodeId], actions.Outcome]) -> actions.Outcome:
    """Performs an action on each node; it took effect, or affected something, if it did so on one of them."""
    outcomes = [do(node_id) for node_id in nodes]
    if len(outcomes) == 1:
        return outcomes[0]
    seen = "; ".join(f"{node_id}: {outcome.seen}" for node_id, outcome in zip(nodes, outcomes, strict=True))
    return actions.Outcome(
        took_effect=any(outcome.took_effect for outcome in outcomes),
        affected=any(outcome.affected for outcome in outcomes),
        seen=seen,
    )


def on_processes(
    cluster: SimulatedCluster, nodes: Sequence[NodeId], do: Callable[[Process], actions.Outcome]
) -> actions.Outcome:
    """Performs an action on each broker and controller, as ``on_each`` does."""

    def do_it(node_id: NodeId) -> actions.Outcome:
        node = find_process(cluster, node_id)
        return UNKNOWN_NODE if node is None else do(node)

    return on_each(nodes, do_it)


def on_brokers(
    cluster: SimulatedCluster, nodes: Sequence[NodeId], do: Callable[[BrokerNode], actions.Outcome]
) -> actions.Outcome:
    """Performs an action on each broker, as ``on_each`` does."""

    def do_on_broker(node: Process) -> actions.Outcome:
        return do(node) if isinstance(node, BrokerNode) else UNKNOWN_NODE

    return on_processes(cluster, nodes, do_on_broker)


def find_broker(cluster: SimulatedCluster, node_id: NodeId) -> BrokerNode | None:
    """Returns a broker; ``None`` if there is none of this id."""
    return cluster.nodes.get(BrokerId(node_id))


def find_process(cluster: SimulatedCluster, node_id: NodeId) -> Process | None:
    """Returns a broker or a controller; ``None`` if there is neither of this id."""
    return cluster.metadata_nodes.get(node_id) or find_broker(cluster, node_id)
