"""Brokers are restarted in turn under idempotent producers in three languages: nothing is lost, nothing comes twice."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import pytest

from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.clients.clients import Running, start

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]

PRODUCERS: Final = ("confluent-kafka", "Java 4.2", "franz-go")
INTERVAL_S: Final = 0.02


class Feeding:
    """Gives each producer a record every 20 ms until it is stopped."""

    def __init__(self, producers: Sequence[Running]) -> None:
        self._producers = producers
        self._is_over = threading.Event()
        self.count = 0
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _feed(self) -> None:
        while not self._is_over.wait(INTERVAL_S):
            for producer in self._producers:
                producer.send([f"{producer.name}-{self.count}".replace(" ", "-")])
            self.count += 1


def test_a_rolling_restart(cluster: StandingCluster) -> None:
    cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    with ExitStack() as stack:
        producers = [
            stack.enter_context(start(name, "produce", cluster.bootstrap_servers, "orders")) for name in PRODUCERS
        ]
        feeding = Feeding(producers)
        for producer in producers:
            producer.wait_for("acked", 50)
        for node in range(3):
            cluster.chaos(f"stop: {{node: {node}}}")
            cluster.chaos(f"start: {{node: {node}}}")
            cluster.until("partition: orders-0, isr: [0, 1, 2]", within="120 s")
        feeding.stop()
        for producer in producers:
            producer.finish()
            assert producer.said("failed") == []
            assert len(producer.said("acked")) == feeding.count
        acked = sorted(value for producer in producers for value in producer.values("acked"))
    with start("Java 4.2", "consume", cluster.bootstrap_servers, "orders") as consumer:
        assert sorted(consumer.wait_for("read", len(acked))) == acked
    report = cluster.verify()
    assert report.verdict is Verdict.VALID, report.unknown_reasons
    assert (sum(counts.acked for counts in report.counts), report.lost_records) == (len(acked), 0)
