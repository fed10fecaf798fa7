"""The quick ones of the scenarios that come along do what they expect of an era, played as processes.

Runs are judged together, because a verification takes longer than a run. ``make scenarios`` plays all of them as
processes, which takes some minutes; ``tests/simulation`` plays all in virtual time.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laststand.chaos.campaign import Campaign, EraOrder, play_runs, run_orders
from laststand.chaos.plans.lost_records import lost_records_of
from laststand.chaos.play.expectation import compare
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.scenario.scenario_file import scenario_names
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.eras import era_rules, with_rule
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.story.story_file import STORY_FILE
from laststand.emulator.verification.verdict.forms import VERDICT_FILE, write_verdict
from laststand.emulator.verification.verdict.report import Expected, VerdictReport
from laststand.emulator.verification.verify import verify_runs
from tests.library import SEED, eras_of, scenario_of, shown

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(900)]

AS_PROCESSES = {
    "kip-595/all-controllers-lose-power": "kip-966",
    "kip-853/disk-replaced-while-another-lags": "kafka-3.9",
    "kip-966/elr-election": "kafka-4.2",
    "kip-966/reassignment-with-a-dead-target": "kip-966-text",
    "kip-966/hole-between-segments": "kafka-4.2",
    "kip-550/stray-after-reassignment": "kip-966",
    "kip-107/deleted-records-come-back": "kafka-4.2",
    "faults/bytes": "kip-966",
    "faults/disks": "kip-966",
    "faults/flipped-bit": "kip-966",
    "faults/flipped-bit-of-the-leader": "kip-966",
    "faults/messages": "kip-966",
    "faults/quorum": "kip-966",
    "faults/slow-links": "kip-966",
}
"""Eras by scenario: all that virtual time cannot play, and some of each subject; ``make soak`` plays the others."""

AT_A_TIME = 3
"""Runs of processes that are played side by side: they mostly wait."""

Judged = dict[tuple[str, str], tuple[RunOrder, VerdictReport]]


def order(name: str, era: str, store: Path, *changed: tuple[str, str]) -> RunOrder:
    switches = era_rules(era)
    for rule, value in changed:
        switches = with_rule(switches, rule, value)
    campaign = Campaign(
        scenario=scenario_of(name),
        eras=(EraOrder(era=era, switches=switches),),
        store=store,
        seed=SEED,
        toxiproxy=find_toxiproxy(),
        driver=DriverName.PROCESS,
    )
    (only,) = run_orders(campaign)
    return only


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    store = tmp_path_factory.mktemp("scenarios") / "store"
    wanted = [*AS_PROCESSES.items(), *((name, era) for name in shown() for era in eras_of(name))]
    orders = [order(name, era, store) for name, era in wanted]
    for first in range(0, len(orders), AT_A_TIME):
        play_runs(orders[first : first + AT_A_TIME], on_status=lambda _: None)
    reports = verify_runs([each.directory for each in orders], spark=spark)
    return dict(zip(wanted, zip(orders, reports, strict=True), strict=True))


def check_as_expected(name: str, era: str, judged: Judged) -> None:
    played, report = judged[name, era]
    assert compare(report, played.scenario.expectation(era)) == (Expected.MET, ())


@pytest.mark.parametrize(("name", "era"), AS_PROCESSES.items())
def test_processes_do_what_a_scenario_expects(name: str, era: str, judged: Judged) -> None:
    check_as_expected(name, era, judged)


def test_processes_do_what_a_scenario_of_the_documents_expects(judged: Judged) -> None:
    for name in shown():
        for era in eras_of(name):
            check_as_expected(name, era, judged)


def test_this_process_judges_each_scenario_as_spark_does(judged: Judged) -> None:
    # Of those that are played in virtual time, too, tests/verification/test_judges.py says it.
    assert {name for name, _ in judged} | {name for name in scenario_names() if eras_of(name)} >= set(scenario_names())
    for (name, _), (played, by_spark) in judged.items():
        story = (played.directory / STORY_FILE).read_bytes()
        write_verdict(by_spark, played.directory)
        verdict = (played.directory / VERDICT_FILE).read_bytes()
        judge_here(played.directory)
        assert (played.directory / VERDICT_FILE).read_bytes() == verdict, name
        assert (played.directory / STORY_FILE).read_bytes() == story, name


def test_processes_elect_an_empty_replica_by_the_other_reading_of_the_kip(tmp_path: Path) -> None:
    name = "kip-966/recovery-waits-for-a-late-replica"
    hasty = order(name, "kip-966", tmp_path / "store", ("recovery_waits", "off"))
    play_runs([hasty], on_status=lambda _: None)
    assert len(lost_records_of(hasty.directory)) == 300
