"""Spark's sink and source for Kafka, batch and streaming."""

import sys
from pathlib import Path

import pytest

from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.clients.clients import Running
from tests.clients.programs import HERE, jars

pytestmark = [pytest.mark.cluster, pytest.mark.every_client, pytest.mark.timeout(900)]


def spark(cluster: StandingCluster, topic: str, directory: Path) -> Running:
    """Starts an application on Spark, with a checkpoint in a directory."""
    connector = [str(jar) for jar in sorted(jars("spark-sql-kafka-4.2.0").glob("*.jar"))]
    script = (sys.executable, str(HERE / "python" / "spark.py"))
    return Running("spark", (*script, cluster.bootstrap_servers, topic, str(directory), *connector))


def test_sink_batch_and_stream(cluster: StandingCluster, tmp_path: Path) -> None:
    cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    values = tuple(f"spark-{number}" for number in range(50))
    with spark(cluster, "orders", tmp_path) as application:
        application.send(["write 50", "batch", "stream true", "write 50", "stream true"])
        application.finish()
        assert application.said("batch") == [values]
        assert application.said("stream") == [values, values]  # the second goes on where the first had ended


def test_nothing_that_was_acknowledged_to_it_is_lost(cluster: StandingCluster) -> None:
    report = cluster.verify()
    assert report.verdict is Verdict.VALID, report.unknown_reasons
