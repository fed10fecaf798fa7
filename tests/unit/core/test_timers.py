"""Deadlines come in order, once, and the disarmed ones do not pile up."""

from laststand.emulator.core.timers import TimerQueue


def test_due_deadlines_come_in_order_and_once() -> None:
    timers: TimerQueue[str] = TimerQueue()
    for key, at_ms in (("late", 9), ("early", 3), ("moved", 1), ("gone", 2)):
        timers.set(key, at_ms=at_ms)
    timers.set("moved", at_ms=5)
    timers.cancel("gone")
    assert timers.earliest_ms == 3
    assert timers.pop_due(now_ms=5) == ["early", "moved"]
    assert timers.pop_due(now_ms=5) == []
    assert timers.earliest_ms == 9


def test_disarmed_deadlines_do_not_pile_up() -> None:
    timers: TimerQueue[int] = TimerQueue()
    timers.set(-1, at_ms=7)
    for key in range(10_000):
        timers.set(key, at_ms=1_000_000)
        timers.cancel(key)
    assert len(timers._heap) < 1000
    assert timers.pop_due(now_ms=7) == [-1]
