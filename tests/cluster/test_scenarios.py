"""The scenarios that come along do what they expect of each era: all in virtual time, the quick ones as processes, too.

Runs are judged together, because a verification takes longer than a run. ``make scenarios`` plays all of them as
processes, which takes some minutes.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laststand.chaos.campaign import Campaign, EraOrder, play_runs, run_orders
from laststand.chaos.plans.lost_records import lost_records_of
from laststand.chaos.play.expectation import compare
from laststand.chaos.play.expressible import not_expressible
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario, scenario_names
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.eras import era_rules, with_rule
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.story.story_file import STORY_FILE
from laststand.emulator.verification.verdict.forms import VERDICT_FILE, write_verdict
from laststand.emulator.verification.verdict.report import Expected, VerdictReport
from laststand.emulator.verification.verify import verify_runs
from tests.documented_scenarios import STEP_CATALOGUE, documented_scenarios

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(900)]

SEED = 966

AS_PROCESSES = {
    "kip-966/elect-leaders-designated": "kip-966",
    "kip-966/elr-election": "kafka-4.2",
    "kip-966/reassignment": "kip-966",
    "kip-966/reassignment-below-min-isr": "kip-966",
    "kip-966/reassignment-with-a-dead-target": "kip-966-text",
    "kip-966/recovery-waits-for-a-late-replica": "kip-966",
    "kip-966/hole-between-segments": "kafka-4.2",
    "kip-966/min-isr-of-another-partition": "kafka-4.2",
    "kip-966/proof-of-a-start-in-vain": "kafka-4.2",
    "kip-966/strategy-none-without-manager": "kip-966",
    "kip-966/term-that-ended-unseen": "kafka-4.2",
    "kip-550/stray-after-reassignment": "kip-966",
    "kip-107/deleted-records-come-back": "kafka-4.2",
    "kip-107/log-start-comes-back": "kafka-4.2",
    **{name: "kip-966" for name in scenario_names() if name.startswith("faults/")},
}
"""Eras by scenario: none of these takes a minute."""

AT_A_TIME = 3
"""Runs of processes that are played side by side: they mostly wait."""

IN_STORIES = [name for name in scenario_names() if "last-replica-standing" in name]
"""Scenarios that test_story and test_zookeeper_story play as processes in each era; here in one."""

IN_VIRTUAL_TIME = [
    (name, era)
    for name in scenario_names()
    if name not in IN_STORIES
    if not not_expressible(scenario := load_scenario(find_scenario(name)), (), DriverName.SIMULATOR)
    for era, _ in scenario.expect
]

Judged = dict[tuple[DriverName, str, str], tuple[RunOrder, VerdictReport]]


DOCUMENTED = [
    (name, era)
    for name, scenario in sorted(documented_scenarios().items())
    if name != STEP_CATALOGUE
    for era, _ in scenario.expect
]
"""What README and docs show, played on each of these drivers."""

DRIVERS = (DriverName.PROCESS, DriverName.SIMULATOR)


def order(name: str, era: str, driver: DriverName, store: Path, *changed: tuple[str, str]) -> RunOrder:
    switches = era_rules(era)
    for rule, value in changed:
        switches = with_rule(switches, rule, value)
    campaign = Campaign(
        scenario=documented_scenarios().get(name) or load_scenario(find_scenario(name)),
        eras=(EraOrder(era=era, switches=switches),),
        store=store,
        seed=SEED,
        toxiproxy=find_toxiproxy() if driver is DriverName.PROCESS else None,
        driver=driver,
    )
    (only,) = run_orders(campaign)
    return only


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    store = tmp_path_factory.mktemp("scenarios") / "store"
    wanted = [(DriverName.PROCESS, name, era) for name, era in AS_PROCESSES.items()]
    wanted += [(DriverName.SIMULATOR, name, era) for name, era in IN_VIRTUAL_TIME]
    wanted += [(DriverName.SIMULATOR, name, load_scenario(find_scenario(name)).expect[0][0]) for name in IN_STORIES]
    wanted += [(driver, name, era) for name, era in DOCUMENTED for driver in DRIVERS]
    orders = [order(name, era, driver, store) for driver, name, era in wanted]
    simulated = [each for each in orders if each.driver is DriverName.SIMULATOR]
    played = [each for each in orders if each.driver is DriverName.PROCESS]
    for each in simulated:
        play_runs([each], on_status=lambda _: None)
    for first in range(0, len(played), AT_A_TIME):
        play_runs(played[first : first + AT_A_TIME], on_status=lambda _: None)
    reports = verify_runs([each.directory for each in orders], spark=spark)
    return dict(zip(wanted, zip(orders, reports, strict=True), strict=True))


def assert_as_expected(judged: Judged, driver: DriverName, name: str, era: str) -> None:
    played, report = judged[driver, name, era]
    outcome, misses = compare(report, played.scenario.expectation(era))
    assert (outcome, misses) == (Expected.MET, ())


@pytest.mark.parametrize(("name", "era"), IN_VIRTUAL_TIME)
def test_in_virtual_time_a_scenario_does_what_it_expects(name: str, era: str, judged: Judged) -> None:
    assert_as_expected(judged, DriverName.SIMULATOR, name, era)


def test_this_process_judges_each_scenario_as_spark_does(judged: Judged) -> None:
    one_of_each = {name: result for (_, name, _), result in judged.items()}
    assert one_of_each.keys() >= set(scenario_names())
    for name, (played, by_spark) in one_of_each.items():
        story = (played.directory / STORY_FILE).read_bytes()
        write_verdict(by_spark, played.directory)
        verdict = (played.directory / VERDICT_FILE).read_bytes()
        judge_here(played.directory)
        assert (played.directory / VERDICT_FILE).read_bytes() == verdict, name
        assert (played.directory / STORY_FILE).read_bytes() == story, name


@pytest.mark.parametrize(("name", "era"), AS_PROCESSES.items())
def test_processes_do_what_a_scenario_expects(name: str, era: str, judged: Judged) -> None:
    assert_as_expected(judged, DriverName.PROCESS, name, era)


def test_processes_elect_an_empty_replica_by_the_other_reading_of_the_kip(tmp_path: Path) -> None:
    name = "kip-966/recovery-waits-for-a-late-replica"
    hasty = order(name, "kip-966", DriverName.PROCESS, tmp_path / "store", ("recovery_waits", "off"))
    play_runs([hasty], on_status=lambda _: None)
    assert len(lost_records_of(hasty.directory)) == 300


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("name", "era"), DOCUMENTED)
def test_a_scenario_of_the_documents_does_what_it_expects(
    name: str, era: str, driver: DriverName, judged: Judged
) -> None:
    assert_as_expected(judged, driver, name, era)
