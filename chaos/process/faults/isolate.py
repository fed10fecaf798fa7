"""Isolation: cuts all links of nodes in both directions, those of clients included unless they stay connected."""

from laststand.chaos.process.faults.links import break_links, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.nodes import CLIENT


@executes(actions.Isolate)
async def isolate(target: ProcessTarget, action: actions.Isolate[NodeId]) -> actions.Outcome:
    """Cuts every link to and from the nodes."""
    links = {
        link
        for node_id in action.nodes
        for link in proxies(target).links_of(node_id)
        if action.clients is actions.Clients.CUT or link.source != CLIENT
    }
    return await break_links(target, sorted(links), proxies(target).cut)
