"""Each client of ``docs/clients.md`` creates a topic, produces with idempotence and reads it; then the verdict."""

from collections import Counter

import pytest

from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.clients.clients import CLIENTS, start

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

COUNT = 100
QUICK_TO_START = ("kcat", "confluent-kafka", "kafka-python", "aiokafka")
"""The rest needs a JVM, or a Go that builds it: ``make clients``."""

_acked: Counter[str] = Counter()


@pytest.mark.parametrize(
    "client",
    [name if name in QUICK_TO_START else pytest.param(name, marks=pytest.mark.every_client) for name in CLIENTS],
)
def test_a_client_produces_and_consumes(client: str, cluster: StandingCluster) -> None:
    servers, topic = cluster.bootstrap_servers, client.replace(" ", "-")
    if client == "kcat":
        cluster.create_topic(topic, partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    else:
        with start(client, "create", servers, topic) as creating:
            creating.finish()
            assert creating.said("created")
    values = [f"record-{number}" for number in range(COUNT)]
    with start(client, "produce", servers, topic) as producer:
        producer.send(values)
        producer.finish()
        assert client == "kcat" or producer.values("acked") == values
        assert producer.said("failed") == []
    _acked[topic] += COUNT
    with start(client, "consume", servers, topic) as consumer:
        assert consumer.wait_for("read", COUNT) == values


def test_nothing_that_was_acknowledged_to_them_is_lost(cluster: StandingCluster) -> None:
    report = cluster.verify()
    assert report.verdict is Verdict.VALID, report.unknown_reasons
    assert sum(counts.acked for counts in report.counts) == _acked.total()
