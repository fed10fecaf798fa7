"""A reset: every connection of a link is closed at once, and new ones work.

A send on a connection that the proxy has torn down is answered with RST, and so is a connection that is opened before
the toxic is removed.
"""

from laststand.chaos.process.faults.links import PASSES_WITHIN_S, passes, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.toxiproxy import both_ways
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions

_RESET = both_ways("reset_peer", timeout=0)


@executes(actions.Reset)
async def reset(target: ProcessTarget, action: actions.Reset[NodeId]) -> actions.Outcome:
    """Tears down the connections of a link; a connection of the harness proves the effect."""
    if not await passes(target, action.link):
        return actions.no_op("nothing passed there before")
    try:
        async with proxies(target).open_probe(action.link) as connection:
            await connection.round_trip()
            await proxies(target).apply([action.link], _RESET)
            try:
                await connection.await_end(timeout_s=PASSES_WITHIN_S)
            except TimeoutError:
                return actions.unproved("a connection stayed open")
    finally:
        await proxies(target).remove([action.link], _RESET)
    if not await passes(target, action.link):
        return actions.unproved("nothing passes any more")
    return actions.effective("a connection was torn down, and a new one works")
