"""A sliced link: bytes travel in small pieces, which is measured by the time for a known number of bytes."""

from typing import Final

from laststand.chaos.process.faults.links import PASSES_WITHIN_S, passes, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.toxiproxy import both_ways
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions

_US_PER_MS: Final = 1000
_PIECES: Final = 50
"""Least number of pieces that make up the bytes of the proof."""


@executes(actions.Slice)
async def slice_bytes(target: ProcessTarget, action: actions.Slice[NodeId]) -> actions.Outcome:
    """Lets bytes travel in pieces, in each direction."""
    if not await passes(target, action.link):
        return actions.no_op("nothing passed there before")
    toxics = both_ways("slicer", average_size=action.size, size_variation=0, delay=action.pause_ms * _US_PER_MS)
    if not await proxies(target).apply([action.link], toxics):
        return actions.no_op("it is sliced so already")
    ballast, least_s = action.size * _PIECES, _PIECES * action.pause_ms / 1000
    took_s = await proxies(target).round_trip(
        action.link, timeout_s=PASSES_WITHIN_S + 10 * least_s, ballast_bytes=ballast
    )
    seen = f"{ballast} bytes took {took_s:.2f} s"
    is_sliced = took_s >= least_s
    return actions.effective(seen) if is_sliced else actions.unproved(seen)
