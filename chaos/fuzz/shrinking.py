"""Shrinks a plan whose result was not as expected: in the simulator, or else by playing it again.

Real processes depend on their timing, so a shorter plan is played several times, and one failure is enough.
"""

import functools
from typing import Final, Protocol, cast

import msgspec

from laststand.chaos.fuzz.drawing import FOLDER, expectation_of
from laststand.chaos.plans.scenario_of_plan import scenario_of, settled_or_missing
from laststand.chaos.plans.settle_times import SettledPlan
from laststand.emulator.plan.plan import Plan
from laststand.emulator.simulator.profiles.profile import Budget
from laststand.emulator.simulator.run.writer import play_and_stop
from laststand.emulator.simulator.search.shrink import Search, drop_actions, drop_kinds, goal_of, shrink

TRIALS_MAX: Final = 24
"""Shorter plans that are played on processes: some minutes."""


class Fails(Protocol):
    """Plays a scenario several times, and returns whether it still fails."""

    def __call__(self, text: str) -> bool:
        """Returns whether it failed at least once; ``text`` is a scenario file."""
        ...


class ShrunkFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A shorter plan that fails.

    Attributes:
        plan: the plan.
        is_simulated: whether the simulator finds it, too.
        trials: number of plans tried.
    """

    plan: Plan
    is_simulated: bool
    trials: int


def shrink_failure(
    plan: Plan, *, fails: Fails, budget: Budget = Budget.WITHIN, trials_max: int = TRIALS_MAX
) -> ShrunkFailure:
    """Returns the shortest plan that was found.

    Args:
        plan: that failed on processes, with its waits long enough for barriers.
        fails: plays shorter plans on processes.
        budget: of the plan.
        trials_max: how many plans it may play; the simulator has its own limits.
    """
    findings = play_and_stop(plan).outcome().findings
    shrunk = shrink(plan, goal_of(findings)) if findings else None
    if shrunk is not None:
        return ShrunkFailure(plan=shrunk.plan, is_simulated=True, trials=shrunk.trials)
    settled = functools.cache(settled_or_missing)

    def find(candidate: Plan) -> Plan | None:
        text = scenario_of(
            cast(SettledPlan, settled(candidate)),
            name=f"{FOLDER}/shrinking-{search.trials}",
            expectation=expectation_of(budget, candidate),
            is_exact=False,
        )
        return candidate if fails(text) else None

    search = Search(
        plan,
        find,
        trials_max=trials_max,
        can_be_tried=lambda candidate: isinstance(settled(candidate), SettledPlan),
    )
    drop_kinds(search)
    while not search.is_over:
        before = search.plan
        drop_actions(search)
        if search.plan == before:
            break
    return ShrunkFailure(plan=search.plan, is_simulated=False, trials=search.trials)
