"""A cut: one node cannot call another, in either byte direction; the other can still call it."""

from laststand.chaos.process.faults.links import break_links, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.Cut)
async def cut(target: ProcessTarget, action: actions.Cut[NodeId]) -> actions.Outcome:
    """Cuts what the source dials to the target."""
    return await break_links(target, [action.link], proxies(target).cut)
