"""Faults of single messages to nodes of other programs: orders go to the harness's proxies, not to the nodes."""

from collections.abc import Callable

from laststand.chaos.process.message_faults import MessageFaults
from laststand.chaos.scenario.scenario import Scenario
from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.channels import Link
from laststand.emulator.plan.nodes import ActiveController, NodeRef, QuorumNode
from laststand.emulator.rpc.interception import InterceptionOrder, InterceptionReport


def proxied_links(scenario: Scenario) -> frozenset[Link[NodeId]]:
    """Returns the links whose messages a scenario affects; a role may be any broker, or any controller."""

    def nodes(end: NodeRef) -> tuple[NodeId, ...]:
        if isinstance(end, ActiveController | QuorumNode):
            return scenario.controller_ids
        return (NodeId(end),) if isinstance(end, int) else scenario.broker_ids

    return frozenset(
        Link(source, target)
        for channel in scenario.channels
        for source in nodes(channel.source)
        for target in nodes(channel.target)
        if source != target
    )


class ProxiedMessageFaults(MessageFaults):
    """``MessageFaults`` on links with proxies that know messages; nodes that have none get their orders themselves.

    Args:
        cluster: of the nodes.
        messages: the proxies.
        note: records an order that a node gets itself.
    """

    def __init__(
        self, cluster: ProcessCluster, *, messages: LinkMessages, note: Callable[[events.OrderGiven], None]
    ) -> None:
        super().__init__(cluster, note=note)
        self._messages = messages

    async def send(self, node_id: NodeId, order: InterceptionOrder) -> InterceptionReport | None:
        """Carries out an order about a node's messages; ``None`` while it is down."""
        if not self._messages.covers(node_id):
            return await super().send(node_id, order)
        return self._messages.obey(node_id, order) if self._cluster.is_running(node_id) else None
