"""A story of KIP-497 around a real ZooKeeper server: before the KIP and after it, judged as all runs are."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from laststand.chaos.campaign import Campaign, EraOrder, play_runs, run_orders
from laststand.chaos.play.expectation import compare
from laststand.chaos.play.run_order import RunOrder
from laststand.chaos.play.runner import RunStatus
from laststand.chaos.play.zookeeper_server import zookeeper_for
from laststand.chaos.scenario.scenario_file import find_scenario, load_scenario, read_scenario
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.eras import era_rules
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.verdict.report import Expected, Verdict, VerdictReport
from laststand.emulator.verification.verify import verify_runs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

STORY = "zookeeper/leader-loses-zookeeper"
ERAS = ("kafka-2.6-zk", "kafka-3.9-zk")
"""Leaders write ISRs themselves; leaders ask the controller."""

Told = Mapping[str, tuple[RunOrder, str | None, VerdictReport]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Told:
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
    reports = verify_runs([order.directory for order in orders], spark=None)
    return {order.era: told for order, *told in zip(orders, orders, problems, reports, strict=True)}  # type: ignore[misc]


@pytest.mark.parametrize("era", ERAS)
def test_what_is_acknowledged_by_all_survives_a_leader_that_loses_zookeeper(story: Told, era: str) -> None:
    order, problem, report = story[era]
    assert problem is None, (order.directory / "run.log").read_text()
    outcome, misses = compare(report, order.scenario.expectation(era))
    assert (outcome, misses) == (Expected.MET, ())


@pytest.mark.parametrize("era", ERAS)
def test_the_story_names_the_writer_of_the_isr(story: Told, era: str) -> None:
    _, _, report = story[era]
    [*_, election] = [line for line in report.leaders if "elected as" in line and "epoch 0" not in line]
    assert re.search(r"written by broker \d, controller in epoch \d ", election)
    [*_, expansion] = [line for line in report.leaders if "ISR [2, 0, 1]" in line or "ISR [0, 2, 1]" in line]
    if era == "kafka-2.6-zk":  # The log tells a session: of the leader, which may be the controller, too.
        assert re.search(r"written by broker 2, (the leader itself|controller in epoch \d)", expansion), expansion
    else:
        assert re.search(r"written by broker \d, controller in epoch \d", expansion), expansion


def test_a_transaction_log_that_says_something_else_makes_it_unknown(story: Told, tmp_path: Path) -> None:
    order, _, _ = story["kafka-3.9-zk"]
    copy = shutil.copytree(order.directory, tmp_path / order.directory.name)
    [log] = (copy / "nodes" / "100" / "data" / "version-2").glob("log.*")
    log.write_bytes(log.read_bytes()[:4096])
    [report] = verify_runs([copy], spark=None)
    assert report.verdict is Verdict.UNKNOWN
    assert any(each.sentence.startswith("the transaction log of node 100 has no ") for each in report.doubts)


SHORT = """\
name: test/server-dies
cluster: {brokers: 1, properties: {broker.session.timeout.ms: 20000}}
topics: [{name: orders, replicas: [[0]]}]
workload: {producers: [{acks: all, rate: 100}], consumers: [{}]}
steps:
  - until: {acked: 20, acks: all}
  - until: {acked: 20, acks: all}
"""


def test_a_server_that_is_killed_from_outside_makes_the_verdict_unknown(tmp_path: Path) -> None:
    era = "kafka-3.9-zk"
    campaign = Campaign(
        scenario=read_scenario(tmp_path / "server-dies.yaml", SHORT),
        eras=(EraOrder(era=era, switches=era_rules(era)),),
        store=tmp_path / "store",
        seed=497,
        toxiproxy=None,
        zookeeper=zookeeper_for((era,), DriverName.PROCESS),
    )
    [order] = run_orders(campaign)
    killed: list[int] = []

    def kill_server(status: RunStatus) -> None:
        if not killed and status.step == 2:
            for process in psutil.process_iter(["name", "cmdline"]):
                if process.info["name"] == "java" and str(order.directory) in str(process.info["cmdline"]):
                    killed.append(process.pid)
                    process.kill()

    play_runs([order], on_status=kill_server)
    assert len(killed) == 1
    report = judge_here(order.directory).report
    assert report.verdict is Verdict.UNKNOWN
    assert "incarnation 0 of node 100 was ended by a signal that no step sent" in report.unknown_reasons


@pytest.mark.parametrize("era", ERAS)
def test_nothing_of_it_is_left_running(story: Told, era: str) -> None:
    order, _, _ = story[era]
    commands = [str(each.info["cmdline"]) for each in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if str(order.directory) in command]
