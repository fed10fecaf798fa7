"""Scenarios on Apache Kafka itself, where it is installed: played, judged, and nothing left running.

In the first one a controller of three fails, and its disk is replaced.
"""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from laststand.chaos.campaign import Campaign, EraOrder, play_runs, run_orders
from laststand.chaos.kafka.program import judged_as, kafka_program
from laststand.chaos.play.expectation import compare
from laststand.chaos.scenario.scenario import Scenario
from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.cli.main import cli
from laststand.emulator.cluster.kafka_distribution import PLAYED_VERSION, KafkaProgram
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.errors import MissingToolError
from laststand.emulator.core.switches import era_switches
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.judge_here import judge_here
from laststand.emulator.verification.rules.check import Premise
from laststand.emulator.verification.verdict.forms import summary
from laststand.emulator.verification.verdict.report import CheckStatus, Expected, Verdict, VerdictReport
from laststand.emulator.verification.verify import verify_runs
from tests.cluster.hand_started_kafka import hand_started
from tests.cluster.settings import patient_copy
from tests.cluster.survivors import MARK, await_end, survivors

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]

SCENARIO = """\
name: test/on-kafka
cluster:
  brokers: 3
  controllers: 3
  properties: {broker.session.timeout.ms: 9000, broker.heartbeat.interval.ms: 500, replica.lag.time.max.ms: 6000}
topics:
  - {name: orders, replicas: [[0, 1, 2], [0, 1, 2]], min.insync.replicas: 2}
workload:
  producers: [{acks: all, rate: 50}]
  consumers: [{}]
steps:
  - until: {acked: 50, acks: all, within: 60 s}
  - reassign: {partition: orders-1, replicas: [0, 1]}
  - until: {partition: orders-1, replicas: [0, 1], adding_replicas: [], removing_replicas: [], within: 60 s}
  - until: {node: 2, log: orders-1, exists: false, within: 60 s}
  - reassign: {partition: orders-1, replicas: [0, 1, 2]}
  - until: {partition: orders-1, isr: [0, 1, 2], within: 60 s}
  - until: {node: 2, log: orders-1, exists: true, within: 60 s}
  - kill: {node: 100}
  - cut: {from: 2, to: 0}
  - until: {partition: orders-0, leader: 0, isr: [0, 1], within: 60 s}
  - heal: all
  - until: {partition: orders-0, isr: [0, 1, 2], within: 60 s}
  - hold: {requests: Fetch, from: 2, to: 0}
  - until: {partition: orders-0, isr: [0, 1], within: 60 s}
  - until: {intercepted: 1, requests: Fetch, from: 2, to: 0}
  - release: {requests: Fetch, from: 2, to: 0}
  - until: {partition: orders-0, isr: [0, 1, 2], within: 60 s}
  - until: {partition: orders-1, isr: [0, 1, 2], within: 60 s}
  - stop: {node: 0}
  - until: {partition: orders-0, leader: 1, isr: [1, 2], within: 60 s}
  - kill: {node: 1}
  - until: {partition: orders-0, leader: 2, isr: [2], elr: [1], within: 60 s}
  - alter_config: {topic: orders, set: {min.insync.replicas: 1}}
  - until: {acked: 50, acks: all, within: 60 s}
  - replace_disk: {node: 100}
  - start: {nodes: [100, 0, 1]}
  - until: {partition: orders-0, isr: [0, 1, 2], within: 60 s}
  - until: {acked: 50, acks: all, within: 60 s}
"""
"""All that the driver does differently for JVMs in one run, because to start each of them takes seconds of CPU."""

JUDGED = ("D1", "D4", "D6", "D12", "D13", "C1", "C2", "M1", "M6", "M9", "M12", "Q1", "Q2", "Q3", "Q5", "Q6")
NOT_ASKED = ("D2", "E1", "H1", "L1", "M5")

OF_A_KNOWN_LOSS = "kip-966/reassignment-cancelled-at-any-price"
BUNDLED = ("kip-11/revoked-while-metadata-is-late", OF_A_KNOWN_LOSS)
"""The first loses no records there. In it everybody logs in. ``make hazards`` plays the others that lose some."""

PATIENT = (
    ("broker.session.timeout.ms", "9000"),
    ("broker.heartbeat.interval.ms", "500"),
    ("replica.lag.time.max.ms", "6000"),
)
"""A broker that is fenced without a fault makes a verdict unknown: other tests are no fault."""

ENDLESS = """\
name: test/on-kafka-for-ever
cluster: {brokers: 1}
topics: [{name: orders, replicas: [[0]]}]
workload: {producers: [{acks: all, rate: 0}]}
steps:
  - pause: {node: 0}
  - until: {partition: orders-0, leader: none, within: 600 s}
"""


@pytest.fixture(scope="module")
def kafka() -> KafkaProgram:
    try:
        return kafka_program(PLAYED_VERSION)
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def played(kafka: KafkaProgram, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Scenario, VerdictReport]]:
    """Each scenario with its verdict, by name. They are played side by side: clusters mostly wait."""
    directory = tmp_path_factory.mktemp("kafka")
    path = directory / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    scenarios = [load_scenario(each) for each in (path, *(patient_copy(name, directory) for name in BUNDLED))]
    orders = [
        order for scenario in scenarios for order in run_orders(campaign_of(scenario, kafka, directory / "store"))
    ]
    assert play_runs(orders, on_status=lambda _: None) == (None,) * len(orders)
    assert not [each for each in psutil.process_iter(["cmdline"]) if str(directory) in str(each.info["cmdline"])]
    reports = verify_runs([order.directory for order in orders], spark=None)
    return {order.scenario.name: (order.scenario, report) for order, report in zip(orders, reports, strict=True)}


def campaign_of(scenario: Scenario, kafka: KafkaProgram, store: Path) -> Campaign:
    era = judged_as(kafka.distribution)
    return Campaign(
        scenario=scenario,
        eras=(EraOrder(era=era, switches=era_switches(era), properties=PATIENT),),
        store=store,
        seed=966,
        toxiproxy=find_toxiproxy(),
        driver=DriverName.KAFKA,
        kafka=kafka,
    )


def test_a_scenario_is_played_and_judged(played: dict[str, tuple[Scenario, VerdictReport]]) -> None:
    _, report = played["test/on-kafka"]
    assert report.doubts == ()
    statuses = {check.check_id: check for check in report.checks}
    assert {check_id: statuses[check_id].status for check_id in JUDGED} == dict.fromkeys(JUDGED, CheckStatus.OK)
    assert {check_id: statuses[check_id].status for check_id in NOT_ASKED} == dict.fromkeys(
        NOT_ASKED, CheckStatus.NOT_ASKED
    )
    assert statuses["Q4"].not_asked_because == Premise.OWN_WORD.value
    assert [check.check_id for check in report.checks if check.status is CheckStatus.VIOLATED] == []
    assert sum(counts.lost for counts in report.counts if counts.acks == -1) == 0
    assert sum(counts.acked for counts in report.counts) >= 150


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_scenario_ends_as_expected_of_the_era(
    name: str, kafka: KafkaProgram, played: dict[str, tuple[Scenario, VerdictReport]]
) -> None:
    scenario, report = played[name]
    assert compare(report, scenario.expectation(judged_as(kafka.distribution))) == (Expected.MET, ()), summary(report)


def test_hooks_alone_lose_as_many_records_as_the_driver(
    kafka: KafkaProgram, played: dict[str, tuple[Scenario, VerdictReport]], tmp_path: Path
) -> None:
    scenario, of_driver = played[OF_A_KNOWN_LOSS]
    with hand_started(kafka, tmp_path, brokers=4, properties=dict(scenario.properties)) as bootstrap:
        words = ["run", str(patient_copy(OF_A_KNOWN_LOSS, tmp_path)), "--driver", "external", "--bootstrap", bootstrap]
        words += ["--hooks", str(tmp_path / "hooks.yaml"), "--judge", "here", "--out", str(tmp_path / "out")]
        cli.main(words, standalone_mode=False)
    [run] = (tmp_path / "out" / OF_A_KNOWN_LOSS).glob("2*")
    report = judge_here(run).report
    assert (report.doubts, report.verdict) == ((), Verdict.VIOLATION)
    assert (
        (report.counts[0].acked, report.lost_records)
        == (150, 50)
        == (of_driver.counts[0].acked, of_driver.lost_records)
    )


@pytest.mark.parametrize("moment", ["start the cluster", "{pause: {node: 0}} ->"])
def test_no_jvm_outlives_a_killed_harness(moment: str, kafka: KafkaProgram, tmp_path: Path) -> None:
    path, mark = tmp_path / "scenario.yaml", uuid.uuid4().hex
    path.write_text(ENDLESS, encoding="utf-8")
    words = ("run", str(path), "--driver", "kafka", "--kafka", kafka.distribution.version, "--no-verify")
    with subprocess.Popen(
        [sys.executable, "-m", "laststand.cli", *words, "--out", str(tmp_path / "store")],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark, "PYTHONPATH": str(ROOT)},
    ) as harness:
        assert harness.stderr is not None
        if not any(moment in line for line in harness.stderr):
            pytest.fail(f"the harness ended with {harness.wait()} before it came to {moment!r}")
        while "java" not in [process.name() for process in survivors(mark)]:
            assert harness.poll() is None
        harness.kill()
    assert await_end(mark) == []
