"""Times that schedules draw: whatever order a rule may depend on, some schedule has it."""

from collections import Counter
from itertools import permutations
from random import Random
from typing import Final

from laststand.emulator.simulator.profiles.profiles import PROFILES
from laststand.emulator.simulator.profiles.spreads import HEARTBEAT, LIMITS, SESSION, TIMES, draw_properties

SWEEP: Final = "leader.imbalance.check.interval.seconds"
DRAWS: Final = 5_000
OCCURS: Final = 10
"""Of the draws, at least: one in 500, of which a sweep of 5,000 schedules has ten."""


def drawn_ms(seed: int) -> dict[str, int]:
    times = TIMES.draw(Random(seed))
    return {name: value * 1000 if name == SWEEP else value for name, value in times.items()}


def test_each_pair_of_times_occurs_in_both_orders_but_a_heartbeat_is_always_within_the_session() -> None:
    before: Counter[tuple[str, str]] = Counter()
    for seed in range(DRAWS):
        times = drawn_ms(seed)
        before.update(pair for pair in permutations(times, 2) if times[pair[0]] < times[pair[1]])
    assert before[SESSION, HEARTBEAT] == 0
    rare = {
        pair: before[pair]
        for pair in permutations((*TIMES.ranges, HEARTBEAT), 2)
        if before[pair] < OCCURS and pair != (SESSION, HEARTBEAT)
    }
    assert rare == {}


def test_every_schedule_of_every_profile_draws_its_times() -> None:
    for profile in PROFILES.values():
        drawn = draw_properties(profile.spreads, Random(1)) | dict(profile.properties)
        assert {*TIMES.ranges, HEARTBEAT} <= drawn.keys(), profile.name
        assert not TIMES.ranges.keys() & dict(profile.properties).keys(), profile.name


def test_about_half_of_the_schedules_of_a_profile_with_limits_have_them() -> None:
    with_limits = sum(bool(LIMITS.draw(Random(seed))) for seed in range(1_000))
    assert 400 < with_limits < 600
