"""A story of KIP-497 around a real ZooKeeper server: before the KIP and after it, judged as all runs are."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from chaos.campaign import Campaign, EraOrder, play_runs, run_orders
from chaos.play.expectation import compare
from chaos.play.run_order import RunOrder
from chaos.play.zookeeper_server import zookeeper_for
from chaos.scenario.scenario_file import find_scenario, load_scenario
from emulator.cluster.toxiproxy_build import find_toxiproxy
from emulator.core.eras import era_rules
from emulator.plan.drivers import DriverName
from emulator.verification.verdict import Expected, Verdict, VerdictReport
from emulator.verification.verify import verify_runs

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]

STORY = "zookeeper/leader-loses-zookeeper"
ERAS = ("kafka-2.6-zk", "kafka-3.9-zk")
"""Leaders write ISRs themselves; leaders ask the controller."""

Told = Mapping[str, tuple[RunOrder, str | None, VerdictReport]]


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Told:
    campaign = Campaign(
        scenario=load_scenario(find_scenario(STORY)),
        eras=tuple(EraOrder(era=era, switches=era_rules(era)) for era in ERAS),
        store=tmp_path_factory.mktemp("zookeeper") / "store",
        seed=497,
        toxiproxy=find_toxiproxy(),
        zookeeper=zookeeper_for(ERAS, DriverName.PROCESS),
    )
    orders = run_orders(campaign)
    problems = play_runs(orders, on_status=lambda _: None)
    reports = verify_runs([order.directory for order in orders], spark=spark)
    return {order.era: told for order, *told in zip(orders, orders, problems, reports, strict=True)}  # type: ignore[misc]


@pytest.mark.parametrize("era", ERAS)
def test_what_is_acknowledged_by_all_survives_a_leader_that_loses_zookeeper(story: Told, era: str) -> None:
    order, problem, report = story[era]
    assert problem is None, (order.directory / "run.log").read_text()
    outcome, misses = compare(report, order.scenario.expectation(era))
    assert (outcome, misses) == (Expected.MET, ())


@pytest.mark.parametrize("era", ERAS)
def test_it_is_told_who_wrote_the_isr(story: Told, era: str) -> None:
    _, _, report = story[era]
    [*_, election] = [line for line in report.leaders if "elected as" in line and "epoch 0" not in line]
    assert re.search(r"written by broker \d, controller in epoch \d ", election)
    [*_, expansion] = [line for line in report.leaders if "ISR [2, 0, 1]" in line or "ISR [0, 2, 1]" in line]
    if era == "kafka-2.6-zk":  # The log tells a session: of the leader, which may be the controller, too.
        assert re.search(r"written by broker 2, (the leader itself|controller in epoch \d)", expansion), expansion
    else:
        assert re.search(r"written by broker \d, controller in epoch \d", expansion), expansion


def test_a_transaction_log_that_says_something_else_makes_it_unknown(
    story: Told, spark: SparkSession, tmp_path: Path
) -> None:
    order, _, _ = story["kafka-3.9-zk"]
    copy = shutil.copytree(order.directory, tmp_path / order.directory.name)
    [log] = (copy / "nodes" / "100" / "data" / "version-2").glob("log.*")
    log.write_bytes(log.read_bytes()[:4096])
    [report] = verify_runs([copy], spark=spark)
    assert report.verdict is Verdict.UNKNOWN
    assert any(each.sentence.startswith("the transaction log of node 100 has no ") for each in report.doubts)


@pytest.mark.parametrize("era", ERAS)
def test_nothing_of_it_is_left_running(story: Told, era: str) -> None:
    order, _, _ = story[era]
    commands = [str(each.info["cmdline"]) for each in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if str(order.directory) in command]
