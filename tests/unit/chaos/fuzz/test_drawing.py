"""Plans are drawn as the simulator draws them, and become scenarios where barriers can keep their order."""

import itertools
from pathlib import Path

import pytest

from laststand.chaos.fuzz.drawing import Drawn, DrawOptions, draw, expectation_of
from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario import Scenario, VerdictName
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.core.types import Acks
from laststand.emulator.plan.plan import parse_plan
from laststand.emulator.simulator.profiles.profile import Budget
from laststand.emulator.simulator.profiles.profiles import PROFILES

PLAYABLE = DrawOptions(first_seed=0, era=DEFAULT_ERA, profiles=("last-standing",))


def scenario_of(drawn: Drawn) -> Scenario:
    assert drawn.scenario is not None
    return read_scenario(Path("drawn.yaml"), drawn.scenario)


@pytest.fixture(scope="module")
def first() -> Drawn:
    return draw(4, PLAYABLE)


def test_a_seed_always_leads_to_the_same_scenario(first: Drawn) -> None:
    assert first == draw(4, PLAYABLE)
    assert first.profile == "last-standing"
    scenario = scenario_of(first)
    assert scenario.name == "fuzz/4"
    assert len(scenario.steps) >= len(parse_plan(first.plan).actions) // 2


def test_within_the_budget_a_run_must_be_valid(first: Drawn) -> None:
    expectation = scenario_of(first).expectation(DEFAULT_ERA)
    assert expectation is not None
    assert (expectation.verdict, expectation.lost) == (VerdictName.VALID, None)


def test_another_client_sends_beside_the_producers_of_the_plan(first: Drawn) -> None:
    rates = {producer.name: producer.rate for producer in scenario_of(first).producers}
    assert rates.pop("background") > 0
    assert set(rates.values()) == {0}


def test_nothing_breaks_before_each_partition_has_a_record_to_lose(first: Drawn) -> None:
    scenario = scenario_of(first)
    (written,) = (step.action for step in scenario.steps if "acked" in step.text)
    assert isinstance(written, conditions.Until)
    assert written.condition == conditions.Acked(
        count=1,
        acks=Acks.ALL,
        partitions=scenario.partitions,
        per=conditions.CountPer.PARTITION,
        since=conditions.Since.RUN,
    )
    before = itertools.takewhile(lambda step: step.action is not written, scenario.steps)
    assert all(isinstance(step.action, conditions.Until) for step in before)


@pytest.mark.parametrize("budget", Budget)
def test_profiles_are_those_of_the_budget(budget: Budget) -> None:
    options = DrawOptions(first_seed=0, era=DEFAULT_ERA, budget=budget)
    assert {PROFILES[name].budget for name in options.sweep.profiles} == {budget}


HEAD = "cluster brokers=3 era=kip-966\ntopic orders replicas=(0,1,2) min.insync.replicas=2{}\n{}\n"


@pytest.mark.parametrize(
    ("topic", "lines", "verdict"),
    [
        ("", "kill 0", VerdictName.VALID),
        (" unclean.recovery.strategy=Balanced", "kill 0", VerdictName.VALID),
        (" unclean.recovery.strategy=Aggressive", "kill 0", VerdictName.VALID_OR_EXCEEDED),
        (
            "",
            "alter_config: {topic: orders, set: {unclean.leader.election.enable: true}}",
            VerdictName.VALID_OR_EXCEEDED,
        ),
        ("", "elect_leaders: {type: unclean, partition: orders-0}", VerdictName.VALID_OR_EXCEEDED),
    ],
)
def test_allowing_unclean_elections_accepts_their_losses(topic: str, lines: str, verdict: VerdictName) -> None:
    assert expectation_of(Budget.WITHIN, parse_plan(HEAD.format(topic, lines))) == {"verdict": verdict.value}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("recreate orders", {"verdict": "valid_or_exceeded", "lost": 0}),
        (
            "delete_topic: {name: orders}\ncreate_topic: {name: orders, replicas: [[0, 1, 2]]}",
            {"verdict": "valid_or_exceeded", "lost": 0},
        ),
        ("create_topic: {name: refunds, replicas: [[0, 1, 2]]}", {"verdict": "valid"}),
        ("recreate orders\nelect_leaders: {type: unclean, partition: orders-0}", {"verdict": "valid_or_exceeded"}),
    ],
)
def test_who_has_a_topic_created_again_accepts_what_consumers_miss_and_no_loss(
    lines: str, expected: dict[str, str | int]
) -> None:
    assert expectation_of(Budget.WITHIN, parse_plan(HEAD.format("", lines))) == expected
