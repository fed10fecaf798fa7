"""A cut: one node cannot call another, in either byte direction; the other can still call it."""

from chaos.process.fault_target import FaultTarget
from chaos.process.faults.links import break_links, proxies
from chaos.process.faults.registry import executes
from emulator.core.types import NodeId
from emulator.plan.actions import Cut, Outcome


@executes(Cut)
async def cut(target: FaultTarget, action: Cut[NodeId]) -> Outcome:
    """Cuts what the source dials to the target."""
    return await break_links(target, [action.link], proxies(target).cut)
