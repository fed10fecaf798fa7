"""A scenario on Apache Kafka itself, where a version of it is installed: played, judged, and nothing left running."""

from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from chaos.campaign import Campaign, EraOrder, play_runs, run_orders
from chaos.kafka.program import judged_as, kafka_program
from chaos.scenario.scenario_file import load_scenario
from emulator.cluster.kafka_distribution import KafkaProgram
from emulator.cluster.toxiproxy_build import find_toxiproxy
from emulator.core.errors import MissingToolError
from emulator.core.switches import era_switches
from emulator.plan.drivers import DriverName
from emulator.verification.verdict import CheckStatus
from emulator.verification.verify import verify_runs

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(600)]

SCENARIO = """\
name: test/on-kafka
cluster:
  brokers: 3
  properties: {broker.session.timeout.ms: 9000, broker.heartbeat.interval.ms: 500, replica.lag.time.max.ms: 6000}
topics:
  - {name: orders, replicas: [[0, 1, 2]], min.insync.replicas: 2}
workload:
  producers: [{acks: all, rate: 50}]
  consumers: [{}]
steps:
  - until: {acked: 50, acks: all, within: 60 s}
  - cut: {from: 2, to: 0}
  - until: {partition: orders-0, leader: 0, isr: [0, 1], within: 60 s}
  - heal: all
  - until: {partition: orders-0, isr: [0, 1, 2], within: 60 s}
  - hold: {requests: Fetch, from: 2, to: 0}
  - until: {partition: orders-0, isr: [0, 1], within: 60 s}
  - until: {intercepted: 1, requests: Fetch, from: 2, to: 0}
  - release: {requests: Fetch, from: 2, to: 0}
  - until: {partition: orders-0, isr: [0, 1, 2], within: 60 s}
  - stop: {node: 0}
  - until: {partition: orders-0, leader: 1, isr: [1, 2], within: 60 s}
  - alter_config: {topic: orders, set: {min.insync.replicas: 1}}
  - until: {acked: 50, acks: all, within: 60 s}
  - kill: {node: 1}
  - start: {nodes: [0, 1]}
  - until: {partition: orders-0, isr: [0, 1, 2], within: 60 s}
  - until: {acked: 50, acks: all, within: 60 s}
"""

JUDGED = ("D1", "D4", "D6", "D12", "D13", "C1", "C2", "M1", "M6", "M9", "M12")
NOT_ASKED = ("D2", "E1", "H1", "L1", "M5")


@pytest.fixture(scope="module")
def kafka() -> KafkaProgram:
    try:
        return kafka_program(None)
    except MissingToolError as error:
        pytest.skip(str(error))


def test_a_scenario_is_played_and_judged(kafka: KafkaProgram, tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    era = judged_as(kafka.distribution)
    campaign = Campaign(
        scenario=load_scenario(path),
        eras=(EraOrder(era=era, switches=era_switches(era)),),
        properties=(),
        store=tmp_path / "store",
        seed=966,
        toxiproxy=find_toxiproxy(),
        driver=DriverName.KAFKA,
        kafka=kafka,
    )
    (order,) = run_orders(campaign)
    (problem,) = play_runs((order,), on_status=lambda _: None)
    assert problem is None, (order.directory / "run.log").read_text()
    assert not [each for each in psutil.process_iter(["cmdline"]) if str(order.directory) in str(each.info["cmdline"])]

    (report,) = verify_runs([order.directory], spark=spark)
    statuses = {check.check_id: check for check in report.checks}
    assert {check_id: statuses[check_id].status for check_id in JUDGED} == dict.fromkeys(JUDGED, CheckStatus.OK)
    assert {check_id: statuses[check_id].status for check_id in NOT_ASKED} == dict.fromkeys(
        NOT_ASKED, CheckStatus.NOT_ASKED
    )
    assert [check.check_id for check in report.checks if check.status is CheckStatus.VIOLATED] == []
    assert sum(counts.lost for counts in report.counts if counts.acks == -1) == 0
    assert sum(counts.acked for counts in report.counts) >= 150
