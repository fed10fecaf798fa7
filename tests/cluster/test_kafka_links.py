"""Clients of Kafka with links of their own: what is done to the link of one of them leaves the others alone."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from laststand.chaos.standing.kafka_clients import client_connections
from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.cluster.settings import PATIENT
from tests.cluster.test_kafka_clients import consume

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("kafka-links"),
    pytest.mark.usefixtures("judged_here"),
]

FULL_ISR = "until: {partition: orders-0, leader: 0, isr: [0, 1, 2]}"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandingCluster]:
    with StandingCluster(store=tmp_path, kafka_clients=("app", "spark"), settings=PATIENT) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
        cluster.chaos(FULL_ISR)
        yield cluster


@asynccontextmanager
async def producing(cluster: StandingCluster, client: str, **settings: object) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers_of(client),
        client_id=client,
        acks="all",
        request_timeout_ms=5000,  # an answer that only a busy machine delays is not one that is lost
        retry_backoff_ms=50,
        **settings,
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def send(producer: AIOKafkaProducer, value: bytes) -> int:
    return int((await producer.send_and_wait("orders", value, partition=0)).offset)


def values(cluster: StandingCluster, count: int) -> list[bytes]:
    return asyncio.run(consume(cluster.bootstrap_servers_of("spark"), count))


async def play_cut(cluster: StandingCluster) -> None:
    async with producing(cluster, "app") as app, producing(cluster, "spark") as spark:
        assert await send(app, b"before") == 0
        await asyncio.to_thread(cluster.chaos, "cut: {from: app, to: 0}")
        with pytest.raises(KafkaError):
            await send(app, b"never arrives")
        assert await send(spark, b"meanwhile") == 1
        await asyncio.to_thread(cluster.chaos, FULL_ISR)
        await asyncio.to_thread(cluster.chaos, "heal: {from: app, to: 0}")
        assert await send(app, b"after") == 2


def test_a_clients_link_is_cut_while_the_cluster_is_well(cluster: StandingCluster) -> None:
    asyncio.run(play_cut(cluster))
    assert values(cluster, 3) == [b"before", b"meanwhile", b"after"]
    told = Counter[str | None]()
    for each in client_connections(cluster.directory):
        told[each.link] += each.acked
    assert told == {"app": 2, "spark": 1}
    plan = (cluster.directory / "plan.yaml").read_text()
    assert "{cut: {from: app, to: 0}}" in plan
    assert "kafka_clients:\n  - app\n  - spark\n" in plan
    report = cluster.verify()
    assert (report.verdict, report.lost_records) == (Verdict.VALID, 0), report.unknown_reasons


async def lose_an_answer(cluster: StandingCluster, **settings: object) -> None:
    async with producing(cluster, "app", **settings) as app:
        await send(app, b"first")
        await asyncio.to_thread(cluster.chaos, "lose: {responses: Produce, from: app, to: 0, count: 1}")
        await send(app, b"second")


def test_an_answer_that_is_lost_makes_a_producer_send_again_and_only_idempotence_shows_that(
    cluster: StandingCluster,
) -> None:
    asyncio.run(lose_an_answer(cluster))
    asyncio.run(lose_an_answer(cluster, enable_idempotence=True))
    assert values(cluster, 5) == [b"first", b"second", b"second", b"first", b"second"]
    report = cluster.verify()
    assert (report.verdict, report.lost_records) == (Verdict.VALID, 0), report.unknown_reasons
