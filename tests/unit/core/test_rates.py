"""Rates over a sliding window of ten whole seconds and the one that runs."""

from laststand.emulator.core.rates import Rate, SimpleRate


def test_a_burst_counts_over_the_whole_window() -> None:
    rate = Rate()
    rate.record(50_000, now_ms=1_000)
    assert rate.per_second(now_ms=1_000) == 5_000
    assert rate.span_ms(now_ms=1_400) == 10_400
    assert rate.per_second(now_ms=11_000) == 5_000


def test_values_older_than_the_window_are_forgotten() -> None:
    rate = Rate()
    rate.record(50_000, now_ms=0)
    rate.record(1_000, now_ms=10_500)
    assert rate.per_second(now_ms=10_500) == 51_000 / 10.5
    assert rate.per_second(now_ms=11_000) == 1_000 / 10.5
    assert rate.per_second(now_ms=60_000) == 0


def test_a_simple_rate_knows_no_time_before_its_first_window() -> None:
    rate = SimpleRate()
    rate.record(50_000, now_ms=0)
    assert rate.per_second(now_ms=0) == 50_000
    rate.record(50_000, now_ms=1_000)
    assert rate.per_second(now_ms=2_000) == 50_000
