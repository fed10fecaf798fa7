"""A slow link: every byte takes longer, measured by a round trip through the link before and after."""

from laststand.chaos.process.faults.links import PASSES_WITHIN_S, passes, proxies
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.toxiproxy import Link, Toxic, both_ways
from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.plan import actions

_WAYS = (Way.REQUEST, Way.RESPONSE)
"""Ways of messages upstream and downstream."""


@executes(actions.Slow)
async def slow(target: ProcessTarget, action: actions.Slow[NodeId]) -> actions.Outcome:
    """Delays the bytes on a link."""
    if not await passes(target, action.link):
        return actions.no_op("nothing passed there before")
    toxics = _toxics(action)
    changed = await proxies(target).apply([action.link], toxics)
    if not changed:
        return actions.no_op("it is as slow already")
    least_s = len(toxics) * (action.latency_ms - action.jitter_ms) / 1000
    took_s = await _round_trip(target, action.link, least_s)
    is_slow = took_s >= least_s
    seen = f"a round trip took {took_s * 1000:.0f} ms"
    return actions.effective(seen) if is_slow else actions.unproved(seen)


def _toxics(action: actions.Slow[NodeId]) -> list[Toxic]:
    both = both_ways("latency", latency=action.latency_ms, jitter=action.jitter_ms)
    return [toxic for toxic, way in zip(both, _WAYS, strict=True) if action.direction.includes(way)]


async def _round_trip(target: ProcessTarget, link: Link, least_s: float) -> float:
    return await proxies(target).round_trip(link, timeout_s=PASSES_WITHIN_S + 2 * least_s)
