"""The clock's two directions agree, whatever its rates."""

import pytest

from laststand.emulator.core.node_clock import NodeClock


@pytest.mark.parametrize("rate", [500_000, 999_999, 1_000_000, 1_400_001])
def test_a_deadline_is_due_at_the_first_millisecond_that_reaches_it(rate: int) -> None:
    clock = NodeClock()
    clock.set_rate(rate, now_ms=1_000)
    for deadline in range(1_001, 1_400):
        due = clock.due_ms(deadline)
        assert clock.local_ms(due) >= deadline
        assert clock.local_ms(due - 1) < deadline


def test_a_change_of_rate_does_not_make_it_jump() -> None:
    clock = NodeClock()
    clock.set_rate(700_000, now_ms=100)
    before = clock.local_ms(1_234)
    clock.set_rate(1_300_000, now_ms=1_234)
    assert clock.local_ms(1_234) == before


def test_a_jump_is_over_at_once_and_the_rate_stays() -> None:
    clock = NodeClock()
    clock.set_rate(2_000_000, now_ms=0)
    clock.jump(500, now_ms=100)
    assert (clock.local_ms(100), clock.local_ms(110)) == (700, 720)
    assert clock.due_ms(700) == 100
