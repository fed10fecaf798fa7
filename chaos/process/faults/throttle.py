"""A throttled link: bytes pass at a limited rate, measured by the time for a known number of bytes."""

from typing import Final

from laststand.chaos.process.faults.links import PASSES_WITHIN_S, passes, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.toxiproxy import both_ways
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions

_BYTES_PER_KB: Final = 1000
"""Bytes per kilobyte of Toxiproxy's bandwidth toxic."""

_MEASURED_S: Final = 0.5
"""Time that the bytes of the proof take at the limit; bytes in the proxy's buffers pass at once."""

_SHARE: Final = 0.5
"""Part of that time which shows that the limit is in force."""


@executes(actions.Throttle)
async def throttle(target: ProcessTarget, action: actions.Throttle[NodeId]) -> actions.Outcome:
    """Limits the rate of bytes on a link, in each direction."""
    if not await passes(target, action.link):
        return actions.no_op("nothing passed there before")
    if not await proxies(target).apply([action.link], both_ways("bandwidth", rate=action.rate_kb)):
        return actions.no_op("it is throttled so already")
    ballast = int(action.rate_kb * _BYTES_PER_KB * _MEASURED_S)
    took_s = await proxies(target).round_trip(
        action.link, timeout_s=PASSES_WITHIN_S + 4 * _MEASURED_S, ballast_bytes=ballast
    )
    seen = f"{ballast} bytes took {took_s:.2f} s"
    is_throttled = took_s >= _SHARE * _MEASURED_S
    return actions.effective(seen) if is_throttled else actions.unproved(seen)
