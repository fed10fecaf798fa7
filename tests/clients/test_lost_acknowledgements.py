"""The last replica standing loses power beside an unmodified Java producer: the era decides what it loses."""

from pathlib import Path

import pytest

from laststand.emulator.verification.verdict.forms import summary
from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.clients.clients import start
from tests.clients.conftest import QUICK

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("era", "verdict"), [("kafka-3.9", Verdict.VIOLATION), ("kip-966", Verdict.VALID)])
def test_a_java_producer(era: str, verdict: Verdict, tmp_path: Path) -> None:
    with StandingCluster(store=tmp_path, kafka=True, settings=QUICK, era=era) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
        with start("Java 4.2", "produce", cluster.bootstrap_servers, "orders") as producer:
            producer.send(range(20))
            producer.wait_for("acked", 20)
            cluster.chaos("isolate: {node: 0}")
            cluster.until("partition: orders-0, leader: 1, isr: [1, 2]", within="120 s")
            producer.send(range(20, 40))
            producer.wait_for("acked", 40)
            cluster.chaos("isolate: {node: 1}")
            cluster.until("partition: orders-0, leader: 2, isr: [2]", within="120 s")
            cluster.chaos("power_loss: {node: 2, keep: none}")
            cluster.until("partition: orders-0, leader: none", within="120 s")
            cluster.chaos("start: {node: 2}")
            cluster.until("node: 2, unfenced: true", within="120 s")
            cluster.chaos("heal: all")
            cluster.until("partition: orders-0, isr: [0, 1, 2]", within="120 s")
            producer.finish()
            acked = {int(offset): value for value, offset in producer.said("acked")}
        report = cluster.verify()
    assert sorted(acked.values(), key=int) == [str(number) for number in range(40)]
    gone = {offset for loss in report.losses for span in loss.offsets for offset in range(span.first, span.last + 1)}
    assert report.verdict is verdict, summary(report)
    assert gone == (set(acked) if verdict is Verdict.VIOLATION else set())
