"""A half-open link: requests do not arrive, and what the other end sends still does.

When the sender's keepalive times out it closes the connection; new ones never become usable.
"""

from laststand.chaos.process.faults.links import SILENT_AFTER_S, break_links, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.toxiproxy import Link
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.HalfOpen)
async def half_open(target: ProcessTarget, action: actions.HalfOpen[NodeId]) -> actions.Outcome:
    """Stops the bytes that go there on what the source dials to the target."""
    return await break_links(target, [action.link], proxies(target).lose_requests, is_silent=_is_unheard)


async def _is_unheard(target: ProcessTarget, link: Link) -> bool:
    """Whether a ping stays unanswered, though the server's first bytes may come."""
    return await proxies(target).round_trip(link, timeout_s=SILENT_AFTER_S) >= SILENT_AFTER_S
