"""The alarm works: with a rule off the simulator finds what it prevents, and with everything on it finds nothing."""

from pathlib import Path
from typing import Final

import msgspec
import pytest

from laststand.emulator.core.eras import era_rules, rule_texts
from laststand.emulator.core.promises import PromiseKind
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.oracle.finding import Guarantee
from laststand.emulator.simulator.search.explorer import Schedule, StopAt, SweepOptions
from laststand.emulator.simulator.search.shrink import Goal, goal_of, replay, shrink
from laststand.emulator.simulator.search.sweep import sweep
from tests.simulation.mutants import MUTANTS, Harmless, mutants
from tests.simulation.mutation import loses_nothing_with_every_rule
from tests.simulation.zookeeper_mutants import ROWS, ZOOKEEPER_MUTANTS, zookeeper_mutants

REGRESSIONS: Final = Path(__file__).parent / "regressions"


@pytest.fixture(scope="module")
def canary() -> Schedule:
    """The first schedule that loses records where ELR is off."""
    options = SweepOptions(switches=(("elr", "off"),), profiles=("restarts",), stop_at=StopAt.OUTCOME)
    (schedule,) = sweep(iter(range(300)), options).findings
    return schedule


def test_the_canary_is_found_and_shrunk(canary: Schedule) -> None:
    assert any(finding.kind is PromiseKind.OUTCOME for finding in canary.outcome.findings)
    shrunk = shrink(canary.plan, goal_of(canary.outcome.findings))
    assert shrunk is not None
    assert shrunk.finding.kind is PromiseKind.OUTCOME
    assert shrunk.plan.length <= 15


def test_shrinking_keeps_the_best_plan_when_its_trials_are_used_up(canary: Schedule) -> None:
    goal = goal_of(canary.outcome.findings)
    first, again = (shrink(canary.plan, goal, trials_max=5) for _ in range(2))
    whole = shrink(canary.plan, goal)
    assert first is not None
    assert again is not None
    assert whole is not None
    assert first.trials == 5
    assert first.plan == again.plan
    assert replay(first.plan, goal) is not None
    assert whole.plan.length < first.plan.length < canary.plan.length


def test_what_a_rule_saves_where_the_guarantee_has_ended_is_shrunk_with_the_rule_at_hand() -> None:
    plan = parse_plan((REGRESSIONS / "s34-unclean-pick-first.txt").read_text())
    goal = Goal(kind=PromiseKind.OUTCOME, check_id="D1")
    beyond = msgspec.structs.replace(goal, is_beyond=True)
    assert shrink(plan, goal) is None
    assert shrink(plan, beyond, is_allowed=lambda _: False) is None
    shrunk = shrink(plan, beyond, is_allowed=loses_nothing_with_every_rule)
    assert shrunk is not None
    assert shrunk.finding.guarantee is Guarantee.EXCEEDED
    assert loses_nothing_with_every_rule(shrunk.plan)


def test_every_rule_has_a_row_that_says_what_to_expect_without_it() -> None:
    assert set(MUTANTS) == set(mutants())
    assert set(ZOOKEEPER_MUTANTS) == set(zookeeper_mutants())


def test_a_rule_is_another_one_than_its_era_has() -> None:
    for (name, value), row in ROWS.items():
        assert rule_texts(era_rules(row.era))[name] != value


def test_evidence_is_a_plan_without_that_rule() -> None:
    for mutant, row in MUTANTS.items():
        if isinstance(row, Harmless) and row.evidence is not None:
            plan = parse_plan((REGRESSIONS / row.evidence).read_text())
            assert plan.switches == (*row.beside, mutant)


@pytest.mark.parametrize(
    "profile",
    [
        "steady",
        "isr-churn",
        "elections",
        "restarts",
        "controller",
        "partitions",
        "races",
        "min-isr",
        "reassignment",
        "readers",
    ],
)
def test_nothing_is_found_with_every_rule_on(profile: str) -> None:
    report = sweep(iter(range(10)), SweepOptions(profiles=(profile,)), keep_going=True)
    assert [str(finding) for schedule in report.findings for finding in schedule.outcome.findings] == []
    assert report.acks > 10 * 10
