"""Three controllers of Apache Kafka: a failover, a replaced disk, and what is judged of them."""

from pathlib import Path

import pytest

from laststand.chaos.campaign import Campaign, EraOrder, play_runs, run_orders
from laststand.chaos.kafka.program import judged_as, kafka_program
from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.emulator.cluster.kafka_distribution import PLAYED_VERSION
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.errors import MissingToolError
from laststand.emulator.core.switches import era_switches
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.verification.rules.check import Premise
from laststand.emulator.verification.verdict.report import CheckStatus
from laststand.emulator.verification.verify import verify_runs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SCENARIO = """\
name: test/quorum-on-kafka
cluster:
  brokers: 2
  controllers: 3
  properties: {broker.session.timeout.ms: 9000, broker.heartbeat.interval.ms: 500, replica.lag.time.max.ms: 6000}
topics:
  - {name: orders, replicas: [[0, 1]], min.insync.replicas: 1}
workload:
  producers: [{acks: all, rate: 50}]
  consumers: [{}]
steps:
  - until: {acked: 50, acks: all, within: 60 s}
  - kill: {node: 100}
  - stop: {node: 1}
  - until: {partition: orders-0, leader: 0, isr: [0], within: 60 s}
  - replace_disk: {node: 100}
  - start: {nodes: [100, 1]}
  - until: {partition: orders-0, isr: [0, 1], within: 60 s}
  - until: {acked: 50, acks: all, within: 60 s}
"""


def test_controllers_fail_over_and_are_judged_by_their_logs(tmp_path: Path) -> None:
    try:
        kafka = kafka_program(PLAYED_VERSION)
    except MissingToolError as error:
        pytest.skip(str(error))
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    era = judged_as(kafka.distribution)
    campaign = Campaign(
        scenario=load_scenario(path),
        eras=(EraOrder(era=era, switches=era_switches(era), properties=()),),
        store=tmp_path / "store",
        seed=39,
        toxiproxy=find_toxiproxy(),
        driver=DriverName.KAFKA,
        kafka=kafka,
    )
    orders = run_orders(campaign)
    assert play_runs(orders, on_status=lambda _: None) == (None,)
    [report] = verify_runs([order.directory for order in orders], spark=None)
    assert report.doubts == ()
    checks = {check.check_id: check for check in report.checks}
    assert [check for check in checks.values() if check.status is CheckStatus.VIOLATED] == []
    asked = ("D1", "M1", "M9", "Q1", "Q2", "Q3", "Q5", "Q6")
    assert {checks[check_id].status for check_id in asked} == {CheckStatus.OK}
    assert checks["Q4"].not_asked_because == Premise.OWN_WORD.value
    assert sum(counts.lost for counts in report.counts) == 0
