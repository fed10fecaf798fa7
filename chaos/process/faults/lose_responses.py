"""Lost responses: requests arrive and are executed, but responses do not come back.

When the sender's keepalive times out it closes the connection. From then on the link is effectively cut: new
connections never become usable, because nothing comes back.
"""

from laststand.chaos.process.faults.links import break_links, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.LoseResponses)
async def lose_responses(target: ProcessTarget, action: actions.LoseResponses[NodeId]) -> actions.Outcome:
    """Stops the bytes that come back on what the source dials to the target."""
    return await break_links(target, [action.link], proxies(target).lose_responses)
