"""Lost responses: requests arrive and are executed, answers vanish.

When the sender's ping has timed out it closes the connection, and from then on the link is as good as cut: new
connections never become usable, because nothing comes back.
"""

from chaos.process.fault_target import FaultTarget
from chaos.process.faults.links import break_links, proxies
from chaos.process.faults.registry import executes
from emulator.core.types import NodeId
from emulator.plan.actions import LoseResponses, Outcome


@executes(LoseResponses)
async def lose_responses(target: FaultTarget, action: LoseResponses[NodeId]) -> Outcome:
    """Stops the bytes that come back on what the source dials to the target."""
    return await break_links(target, [action.link], proxies(target).lose_responses)
