"""Draws plans that can be played with barriers: from a seed to a scenario, or to the reason why there is none.

A plan is drawn as the simulator draws its schedules, by the same moves and within the same budget. That takes a second
or two of one core, so a separate program does it, a line of JSON per seed. It ends with the last plan that was asked
for; its pipe blocks it while there is no reader::

    python -m laststand.chaos.fuzz.drawing '{"first_seed": 1, "era": "kip-966", "profiles": ["restarts"], "count": 10}'
"""

import itertools
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from laststand.chaos.plans.scenario_of_plan import Missing, scenario_of, settled_or_missing
from laststand.chaos.plans.settle_times import SettledPlan
from laststand.chaos.plans.unprovable import unprovable
from laststand.chaos.scenario.scenario import VerdictName
from laststand.emulator.plan import actions
from laststand.emulator.plan.lines import format_action
from laststand.emulator.plan.plan import Plan, format_plan
from laststand.emulator.simulator.profiles.profile import Budget
from laststand.emulator.simulator.profiles.profiles import PROFILES
from laststand.emulator.simulator.search.explorer import StopAt, SweepOptions, explore

FOLDER: Final = "fuzz"
"""The folder of drawn scenarios in a store, and the beginning of their names."""


class DrawOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of drawing plans.

    Attributes:
        first_seed: every seed from there on is drawn.
        era: era whose rules hold.
        switches: rules that differ, by name.
        properties: of every node; they override the drawn ones.
        profiles: names to choose from; if none, all of the budget.
        budget: whether plans may break more than the guarantee covers.
        count: number of playable plans after which drawing ends; ``None`` for no limit.
    """

    first_seed: int
    era: str
    switches: tuple[tuple[str, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    profiles: tuple[str, ...] = ()
    budget: Budget = Budget.WITHIN
    count: int | None = None

    @property
    def sweep(self) -> SweepOptions:
        """The sweep's options for the simulator."""
        own = tuple(name for name, profile in PROFILES.items() if profile.budget is self.budget)
        return SweepOptions(
            era=self.era,
            switches=self.switches,
            properties=self.properties,
            profiles=self.profiles or own,
            stop_at=StopAt.OUTCOME,
        )


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a seed, and its scenario.

    Attributes:
        seed: the seed.
        profile: the profile that it chose.
        plan: with its waits long enough for barriers; as it was drawn, if it cannot be played.
        scenario: the plan as a scenario file; ``None`` if processes cannot play it.
        missing: the reasons, if processes cannot play it.
    """

    seed: int
    profile: str
    plan: str
    scenario: str | None = None
    missing: tuple[Missing, ...] = ()


def draw(seed: int, options: DrawOptions) -> Drawn:
    """Draws and settles one plan.

    Its scenario expects what the budget allows, whatever the simulator finds.
    """
    schedule = explore(seed, options.sweep)
    passed_over = tuple(_passed_over(schedule.plan))
    settled = passed_over or settled_or_missing(schedule.plan)
    if isinstance(settled, SettledPlan):
        settled = tuple(unprovable(settled.plan)) or settled
    if not isinstance(settled, SettledPlan):
        return Drawn(seed=seed, profile=schedule.profile, plan=format_plan(schedule.plan), missing=settled)
    return Drawn(
        seed=seed,
        profile=schedule.profile,
        plan=format_plan(settled.plan),
        scenario=scenario_of(
            settled, name=f"{FOLDER}/{seed}", expectation=expectation_of(options.budget, settled.plan), is_exact=False
        ),
    )


def expectation_of(budget: Budget, plan: Plan) -> Mapping[str, str | int]:
    """Returns the expectation of a plan's scenario for every era.

    For a plan with unclean elections the expectation accepts the records that they lose. For a plan that creates a
    topic again it accepts that a consumer continues at its old offset, and skips the records below (C4), which loses no
    record.
    """
    if budget is not Budget.WITHIN or _allows_unclean_elections(plan):
        return {"verdict": VerdictName.VALID_OR_EXCEEDED.value}
    if _creates_a_topic_again(plan):
        return {"verdict": VerdictName.VALID_OR_EXCEEDED.value, "lost": 0}
    return {"verdict": VerdictName.VALID.value}


def _passed_over(plan: Plan) -> Iterator[Missing]:
    """Yields actions that processes could play, but whose effect would depend on timing."""
    for action in plan.actions:
        if isinstance(action, actions.OnChannel | actions.LoseResponses | actions.Expire):
            yield Missing(what=format_action(action), why="the message may have been on its way already")


def _creates_a_topic_again(plan: Plan) -> bool:
    deleted: set[str] = set()
    for action in plan.actions:
        match action:
            case actions.RecreateTopic():
                return True
            case actions.DeleteTopic(name=name):
                deleted.add(name)
            case actions.CreateTopic(topic=topic) if topic.name in deleted:
                return True
            case _:
                pass
    return False


def _allows_unclean_elections(plan: Plan) -> bool:
    properties = [*plan.properties, *(entry for topic in plan.topics for entry in topic.properties)]
    return any(map(_is_unclean, properties)) or any(map(_asks_for_unclean_election, plan.actions))


def _is_unclean(entry: tuple[str, str | None]) -> bool:
    name, value = entry
    match name:
        case "unclean.leader.election.enable":
            return str(value).lower() == "true"
        case "unclean.recovery.strategy":
            return value == "Aggressive"
        case _:
            return False


def _asks_for_unclean_election(action: actions.Action) -> bool:
    match action:
        case actions.ElectLeaders():
            return bool(action.unclean_elections)
        case actions.AlterConfig(config=config):
            return any(map(_is_unclean, config.changes))
        case _:
            return False


def main(arguments: list[str]) -> int:
    """Prints the drawn plans until there are as many as asked for, or the reader closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    (text,) = arguments
    options = msgspec.json.decode(text, type=DrawOptions)
    playable = 0
    for seed in itertools.count(options.first_seed):
        drawn = draw(seed, options)
        sys.stdout.buffer.write(msgspec.json.encode(drawn) + b"\n")
        sys.stdout.buffer.flush()
        playable += drawn.scenario is not None
        if playable == options.count:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
