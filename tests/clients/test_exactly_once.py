"""Pipes read, write and commit their positions in transactions, while the broker that coordinates them dies."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

import pytest

from laststand.emulator.verification.verdict.forms import summary
from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.clients.clients import start
from tests.clients.conftest import QUICK

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SETTINGS: Final = {
    **QUICK,
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "100",
}
COUNT: Final = 200
BEFORE: Final = 20
END: Final = "end"


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandingCluster]:
    """A cluster in which one broker coordinates all groups and all transactions, and leads all topics."""
    with StandingCluster(store=tmp_path_factory.mktemp("store"), kafka=True, settings=SETTINGS) as standing:
        yield standing


@pytest.mark.parametrize(
    "clients",
    [("confluent-kafka",), pytest.param(("confluent-kafka", "Java 4.2", "franz-go"), marks=pytest.mark.every_client)],
    ids=["one", "three"],
)
def test_each_input_has_one_output_through_a_failover(clients: Sequence[str], cluster: StandingCluster) -> None:
    values = [str(number) for number in range(COUNT)]
    topics = {client: client.replace(" ", "-") for client in clients}
    with ExitStack() as stack:
        pipes = []
        for client, topic in topics.items():
            cluster.create_topic(topic, partitions=1, replication_factor=3)
            cluster.create_topic(f"{topic}-out", partitions=1, replication_factor=3)
            produce(cluster, topic, values[:BEFORE])
            pipes.append(stack.enter_context(start(client, "pipe", cluster.bootstrap_servers, topic)))
        for pipe in pipes:
            pipe.wait_for("piped", BEFORE)
        for coordinators in ("__consumer_offsets", "__transaction_state"):
            cluster.until(f"partition: {coordinators}-0, isr: [0, 1, 2]", within="60 s")
        for topic in topics.values():
            produce(cluster, topic, values[BEFORE:])
        cluster.chaos("kill: {node: leader(__transaction_state-0)}")
        for pipe in pipes:
            assert pipe.wait_for("piped", COUNT) == values
            assert pipe.said("error") == []
    for topic in topics.values():
        produce(cluster, f"{topic}-out", [END])
        with start("confluent-kafka", "consume", cluster.bootstrap_servers, f"{topic}-out") as consumer:
            assert consumer.wait_for("read", COUNT + 1) == [*values, END]
    report = cluster.verify()
    assert (report.verdict, report.lost_records) == (Verdict.VALID, 0), summary(report)


def produce(cluster: StandingCluster, topic: str, values: Sequence[str]) -> None:
    assert cluster.produce(topic, [value.encode() for value in values]).acked == len(values)
