"""Shrinks a plan that did not come to what its scenario expects: in the simulator, or else by playing it again.

What real processes do depends on their timing, so a shorter plan is played several times, and one failure is enough.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from chaos.fuzz.drawing import FOLDER
from chaos.plans.scenario_of_plan import scenario_of, settled_or_missing
from chaos.plans.settle_times import SettledPlan
from emulator.plan.plan import Plan
from emulator.simulator.run_writer import play_and_stop
from emulator.simulator.shrink import drop_actions, drop_kinds, goal_of, shrink

TRIALS_MAX: Final = 24
"""Shorter plans that are played on processes: some minutes."""


class Fails(Protocol):
    """Plays a scenario as often as it takes to say whether it still fails."""

    def __call__(self, text: str) -> bool:
        """Returns whether it failed at least once; ``text`` is a scenario file."""
        ...


class ShrunkFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A shorter plan that fails.

    Attributes:
        plan: the plan.
        is_simulated: whether the simulator finds it, too.
        trials: how many plans were tried.
    """

    plan: Plan
    is_simulated: bool
    trials: int


def shrink_failure(plan: Plan, *, fails: Fails, trials_max: int = TRIALS_MAX) -> ShrunkFailure:
    """Returns the shortest plan that was found.

    Args:
        plan: that failed on processes, with its waits long enough for barriers.
        fails: plays shorter ones there.
        trials_max: how many it may play; the simulator has limits of its own.
    """
    findings = play_and_stop(plan).outcome().findings
    shrunk = shrink(plan, goal_of(findings)) if findings else None
    if shrunk is not None:
        return ShrunkFailure(plan=shrunk.plan, is_simulated=True, trials=shrunk.trials)
    search = _Search(plan, fails=fails, trials_max=trials_max)
    drop_kinds(search)
    while not search.is_over:
        before = search.plan
        drop_actions(search)
        if search.plan == before:
            break
    return ShrunkFailure(plan=search.plan, is_simulated=False, trials=search.trials)


class _Search:
    """The shortest plan so far that failed on processes."""

    def __init__(self, plan: Plan, *, fails: Callable[[str], bool], trials_max: int) -> None:
        self.plan = plan
        self.trials = 0
        self._fails = fails
        self._trials_max = trials_max

    @property
    def is_over(self) -> bool:
        """Whether all trials are used up."""
        return self.trials >= self._trials_max

    def accepts(self, candidate: Plan) -> bool:
        """Plays a plan, and keeps it if it fails."""
        if self.is_over:
            return False
        settled = settled_or_missing(candidate)
        if not isinstance(settled, SettledPlan):
            return False
        self.trials += 1
        text = scenario_of(
            settled, name=f"{FOLDER}/shrinking-{self.trials}", expectation={"verdict": "valid"}, is_exact=False
        )
        if not self._fails(text):
            return False
        self.plan = candidate
        return True
