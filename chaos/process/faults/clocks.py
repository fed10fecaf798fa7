"""Clocks with a wrong rate or a jump: the node's answer has its own time before and after the change.

A rate shows by the node's time at both ends of a span of the harness's.
"""

import asyncio
import time
from typing import Final

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.node_orders import send_order
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.node_clock import NORMAL_RATE_PPM
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.rpc.clock_orders import (
    CLOCK_METHOD,
    CLOCK_ORDERS,
    CLOCK_REPORTS,
    CLOCK_SERVICE,
    ClockOrder,
    ClockReport,
)

_SPAN_S: Final = 0.3
_NOT_ANSWERING: Final = "a node does not answer"


@executes(actions.ClockRate)
async def clock_rate(target: ProcessTarget, action: actions.ClockRate[NodeId]) -> actions.Outcome:
    """Changes the rate of clocks."""
    rates = target.cluster.clock_rates
    if all(rates.get(node_id, NORMAL_RATE_PPM) == action.rate_ppm for node_id in action.nodes):
        return actions.no_op("it runs so already")
    rates.update(dict.fromkeys(action.nodes, action.rate_ppm))
    seen = [await _rate(target, node_id, action.rate_ppm) for node_id in action.nodes]
    found = [rate for rate in seen if rate is not None]
    if len(found) < len(seen):
        return actions.unproved(_NOT_ANSWERING)
    return actions.effective(f"it runs at {', '.join(f'{rate:.3g}' for rate in found)} of the right rate")


async def _rate(target: ProcessTarget, node_id: NodeId, rate_ppm: int) -> float | None:
    """Sets a clock's rate, and returns the rate that was measured; ``None`` if the node does not answer."""
    first = await _change(target, node_id, ClockOrder(rate_ppm=rate_ppm))
    began_s = time.monotonic()
    await asyncio.sleep(_SPAN_S)
    second = await _change(target, node_id, ClockOrder())
    took_s = time.monotonic() - began_s
    if first is None or second is None or second.rate_ppm != rate_ppm:
        return None
    return (second.before_ms - first.after_ms) / 1000 / took_s


@executes(actions.ClockJump)
async def clock_jump(target: ProcessTarget, action: actions.ClockJump[NodeId]) -> actions.Outcome:
    """Sets clocks forward."""
    reports = [await _change(target, node_id, ClockOrder(jump_ms=action.by_ms)) for node_id in action.nodes]
    jumps = [report.after_ms - report.before_ms for report in reports if report is not None]
    if not jumps:
        return actions.no_op("it does not answer")
    if len(jumps) < len(reports) or min(jumps) < action.by_ms:
        return actions.unproved(_NOT_ANSWERING)
    return actions.effective(f"its clock jumped by {', '.join(map(str, jumps))} ms")


async def _change(target: ProcessTarget, node_id: NodeId, order: ClockOrder) -> ClockReport | None:
    report = await send_order(
        target.cluster,
        node_id,
        CLOCK_ORDERS.encode(order),
        service=CLOCK_SERVICE,
        method=CLOCK_METHOD,
        note=target.log.note,
    )
    return None if report is None else CLOCK_REPORTS.decode(report)
