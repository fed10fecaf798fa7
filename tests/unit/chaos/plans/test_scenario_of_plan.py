"""A plan that settles after each action, and the scenario that is made of it."""

from pathlib import Path

import pytest

from laststand.chaos.plans.lost_records import RecordName
from laststand.chaos.plans.scenario_of_plan import SCALE, as_it_is_or_missing, scenario_of, settled_or_missing
from laststand.chaos.plans.settle_times import SettledPlan, settle
from laststand.chaos.scenario.scenario import VerdictName
from laststand.chaos.scenario.scenario_file import read_scenario
from laststand.emulator.plan import actions
from laststand.emulator.plan.plan import Plan, parse_plan

HEAD = """\
cluster brokers=3 era=kip-966 unclean_detection=off
topic orders replicas=(0,1,2) min.insync.replicas=2
"""

LOSES_A_RECORD = f"""{HEAD}
pause 1
wait 500
produce orders-0 acks=all records=1
wait 100
isolate 0
power-loss 2 keep=none kept=0 truncation=kept
wait 450
"""

LOST = frozenset({RecordName("orders", 0, "producer-all", 0)})


def settled(text: str) -> SettledPlan:
    found = settled_or_missing(parse_plan(text))
    assert isinstance(found, SettledPlan)
    return found


def verbs(plan: Plan) -> list[str]:
    text = scenario_of(SettledPlan(plan=plan, result=settle(plan).result, timed=()), name="test/plan")
    return [step.text.strip("{").split(":")[0] for step in read_scenario(Path("plan.yaml"), text).steps]


def test_a_settled_plan_loses_what_the_plan_lost_and_mends_things_one_by_one() -> None:
    found = settled(LOSES_A_RECORD)
    assert found.result.lost == LOST
    assert found.timed == ()
    again = settle(found.plan)
    assert again.result == found.result


def test_the_scenario_waits_for_what_the_simulator_saw_and_expects_what_it_came_to() -> None:
    scenario = read_scenario(Path("plan.yaml"), scenario_of(settled(LOSES_A_RECORD), name="test/plan"))
    texts = [step.text for step in scenario.steps]
    produced = texts.index("{produce: {partition: orders-0, producer: producer-all, records: 1}}")
    assert texts[produced - 1] == "{until: {partition: orders-0, leader: 0, isr: [0, 2], elr: []}}"
    assert texts[produced + 1] == "{until: {acked: 1, acks: all, partition: orders-0, since: run}}"
    assert "{until: {node: 2, log: orders-0, end: 1}}" in texts[produced:]
    assert any(
        isinstance(step.action, actions.PowerLoss) and step.action.loss.exact is not None for step in scenario.steps
    )
    assert isinstance(scenario.steps[texts.index("{start: {node: 2}}")].action, actions.Start)
    expected = scenario.expectation("kip-966")
    assert expected is not None
    assert (expected.verdict, expected.guarantee) == (VerdictName.VIOLATION, "broken")
    assert expected.lost is not None
    assert expected.lost.holds(1)
    assert not expected.lost.holds(0)
    assert dict(scenario.properties)["broker.session.timeout.ms"] == str(400 * SCALE)


def test_a_plan_that_loses_nothing_expects_that() -> None:
    found = settled(f"{HEAD}produce orders-0 acks=all records=1\nwait 50\nkill 1\nwait 600\nstart 1\n")
    scenario = read_scenario(Path("plan.yaml"), scenario_of(found, name="test/plan"))
    assert [type(step.action) for step in scenario.steps if not step.text.startswith("{until")][1:] == [
        actions.Kill,
        actions.Start,
    ]
    expected = scenario.expectation("kip-966")
    assert expected is not None
    assert expected.verdict is VerdictName.VALID


def test_what_is_produced_at_a_moment_comes_after_what_else_happens_then() -> None:
    plan = parse_plan(f"{HEAD}produce orders-0 acks=all records=1\nkill 2\nwait 900\nstart 2\nwait 900\n")
    steps = [verb for verb in verbs(settle(plan).plan) if verb != "until"]
    assert steps == ["kill", "produce", "start"]


@pytest.mark.parametrize(
    ("action", "why"),
    [("hold 100->100 Sync response", "within a turn"), ("draw 1", "draws by itself")],
)
def test_actions_that_are_no_steps_are_named_once(action: str, why: str) -> None:
    found = settled_or_missing(parse_plan(f"{HEAD}{action}\nwait 10\n{action}\nkill 1\n"))
    assert isinstance(found, tuple)
    (missing,) = found
    assert missing.what == action
    assert why in missing.why


def test_a_plan_that_turns_on_time_is_no_scenario_and_says_where() -> None:
    found = settled_or_missing(
        parse_plan(
            "cluster brokers=3 era=kip-966 elr=off\ntopic orders replicas=(0,1,2) min.insync.replicas=2\n"
            "produce orders-0 acks=all records=1\nexpire 0\npause 0\npause 1\nwait 401\n"
            "power-loss 2 keep=none kept=0 truncation=kept\n"
        )
    )
    assert isinstance(found, tuple)
    assert any(missing.what == "the time that passes after 'pause 1'" for missing in found)


def test_a_plan_keeps_its_waits_where_these_are_asked_for() -> None:
    plan = parse_plan(
        "cluster brokers=2 era=kip-966 replica.lag.time.max.ms=30000\n"
        "topic orders replicas=(0,1) min.insync.replicas=1\n"
        "hold 1->0 Fetch request\nwait 9000\nproduce orders-0 acks=all records=1\nwait 12000\n"
        "release 1->0 Fetch request\nwait 2500\n"
    )
    found = as_it_is_or_missing(plan)
    assert isinstance(found, SettledPlan)
    scenario = read_scenario(Path("plan.yaml"), scenario_of(found, name="test/plan", keeps_waits=True))
    texts = [step.text for step in scenario.steps]
    waits = [text for text in texts if "elapsed" in text]
    assert len(waits) == 2
    assert f"elapsed: {9_000 * SCALE} ms" in waits[0]
    assert "elapsed: 12000 ms" in waits[1]
    counts = [text for text in texts if "intercepted" in text]
    assert "{until: {intercepted: 1, requests: Fetch, from: 1, to: 0}}" in counts, "not how often it was sent again"
    assert "elapsed" not in texts[-1]
    assert dict(scenario.properties)["replica.lag.time.max.ms"] == "30000"
    assert dict(scenario.properties)["broker.session.timeout.ms"] == str(400 * SCALE)


def test_what_processes_do_not_have_is_missing_with_the_plans_own_waits_too() -> None:
    found = as_it_is_or_missing(parse_plan(f"{HEAD}draw 1\nwait 10\nkill 1\n"))
    assert isinstance(found, tuple)
    assert [missing.what for missing in found] == ["draw 1"]
