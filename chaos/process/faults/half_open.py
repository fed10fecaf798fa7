"""A half-open link: requests do not arrive, and what the other end sends still does.

When the sender's keepalive times out it closes the connection; new ones never become usable.
"""

from chaos.process.fault_target import FaultTarget
from chaos.process.faults.links import SILENT_AFTER_S, break_links, proxies
from chaos.process.faults.registry import executes
from emulator.cluster.toxiproxy import Link
from emulator.core.types import NodeId
from emulator.plan.actions import HalfOpen, Outcome


@executes(HalfOpen)
async def half_open(target: FaultTarget, action: HalfOpen[NodeId]) -> Outcome:
    """Stops the bytes that go there on what the source dials to the target."""
    return await break_links(target, [action.link], proxies(target).lose_requests, is_silent=_is_unheard)


async def _is_unheard(target: FaultTarget, link: Link) -> bool:
    """Whether a ping stays unanswered, though the server's first bytes may come."""
    return await proxies(target).round_trip(link, timeout_s=SILENT_AFTER_S) >= SILENT_AFTER_S
