"""Links that carry nothing: cut, isolated, half open, or without responses.

A cut affects one direction of calls: one node cannot call another, in either byte direction; the other can still call
it. If requests or responses alone are stopped, the sender's keepalive times out and it closes the connection. New
connections never become usable: from then on the link is effectively cut.
"""

from laststand.chaos.process.faults.links import SILENT_AFTER_S, break_links, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.toxiproxy import Link
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.machines import isolation_cuts


@executes(actions.Cut)
async def cut(target: ProcessTarget, action: actions.Cut[NodeId]) -> actions.Outcome:
    """Cuts the connections that the source opens to the target."""
    return await break_links(target, [action.link], proxies(target).cut)


@executes(actions.Isolate)
async def isolate(target: ProcessTarget, action: actions.Isolate[NodeId]) -> actions.Outcome:
    """Cuts every link to and from machines, or named nodes, including those of clients unless they stay connected."""
    links = {
        link
        for node_id in action.nodes
        for link in proxies(target).links_of(node_id)
        if isolation_cuts(action, link, target.together)
    }
    return await break_links(target, sorted(links), proxies(target).cut)


@executes(actions.LoseResponses)
async def lose_responses(target: ProcessTarget, action: actions.LoseResponses[NodeId]) -> actions.Outcome:
    """Stops bytes from the target to the source on the source's connections: requests arrive and are executed."""
    return await break_links(target, [action.link], proxies(target).lose_responses)


@executes(actions.HalfOpen)
async def half_open(target: ProcessTarget, action: actions.HalfOpen[NodeId]) -> actions.Outcome:
    """Stops bytes from the source to the target on the source's connections; bytes from the target still arrive."""
    return await break_links(target, [action.link], proxies(target).lose_requests, is_silent=_is_unheard)


async def _is_unheard(target: ProcessTarget, link: Link) -> bool:
    """Returns whether a ping stays unanswered, though the server's first bytes may come."""
    return await proxies(target).round_trip(link, timeout_s=SILENT_AFTER_S) >= SILENT_AFTER_S
