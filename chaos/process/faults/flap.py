"""A flapping link: cut and mended in turn, with a probe in each phase."""

import asyncio

from laststand.chaos.process.faults.links import PASSES_WITHIN_S, SILENT_AFTER_S, passes, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.probe import ProbeOutcome
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.Flap)
async def flap(target: ProcessTarget, action: actions.Flap[NodeId]) -> actions.Outcome:
    """Cuts a link and heals it; the link is whole when this returns."""
    if not await passes(target, action.link):
        return actions.no_op("nothing passed there before")
    loop = asyncio.get_running_loop()
    silent = open_again = 0
    try:
        for _ in range(action.times):
            began_s = loop.time()
            await proxies(target).cut([action.link])
            timeout_s = min(SILENT_AFTER_S, action.down_ms / 1000)
            outcome = await proxies(target).probe(action.link, timeout_s=timeout_s)
            silent += outcome is ProbeOutcome.SILENT
            await asyncio.sleep(began_s + action.down_ms / 1000 - loop.time())
            began_s = loop.time()
            await proxies(target).restore([action.link])
            outcome = await proxies(target).probe(action.link, timeout_s=PASSES_WITHIN_S)
            open_again += outcome is ProbeOutcome.PASSES
            await asyncio.sleep(began_s + action.up_ms / 1000 - loop.time())
    finally:
        await proxies(target).restore([action.link])
    seen = f"silent {silent} times and open {open_again} times of {action.times}"
    if silent == open_again == action.times:
        return actions.effective(seen)
    return actions.unproved(seen)
