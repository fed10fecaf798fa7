"""Carries out the harness's orders about a node's clock."""

from collections.abc import Callable

from laststand.emulator.core.node_clock import NodeClock
from laststand.emulator.node.turn_loop import monotonic_ms
from laststand.emulator.rpc.clock_orders import ClockOrder, ClockReport


def change_clock(clock: NodeClock, order: ClockOrder, *, rearm: Callable[[], None]) -> ClockReport:
    """Changes a clock, and reports its time before and after.

    Args:
        clock: of the node.
        order: the order.
        rearm: sets the node's timers again by the changed clock.
    """
    now_ms = monotonic_ms()
    before_ms = clock.local_ms(now_ms)
    if order.rate_ppm is not None:
        clock.set_rate(order.rate_ppm, now_ms=now_ms)
    clock.jump(order.jump_ms, now_ms=now_ms)
    rearm()
    return ClockReport(rate_ppm=clock.rate_ppm, before_ms=before_ms, after_ms=clock.local_ms(now_ms))
