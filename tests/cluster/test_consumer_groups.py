"""Groups of a client of Kafka: members share partitions, and what they committed is as durable as any record."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from laststand.emulator.verification.verdict.report import CheckStatus, Verdict
from laststand.standing_cluster import StandingCluster
from tests.cluster.settings import QUICK
from tests.cluster.test_kafka_clients import produce

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180), pytest.mark.usefixtures("judged_here")]

ORDERS = TopicPartition("orders", 0)
SETTINGS = {
    **QUICK,
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "100",
}
_WITHIN_S = 60.0


def member(servers: str, *topics: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=servers,
        group_id="app",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        metadata_max_age_ms=1000,
    )


async def until_assigned(members: list[AIOKafkaConsumer], counts: list[int]) -> None:
    async with asyncio.timeout(_WITHIN_S):
        while sorted(len(each.assignment()) for each in members) != counts:
            await asyncio.gather(*(each.getmany(timeout_ms=100) for each in members))


async def share_partitions(servers: str) -> None:
    """Has two members share two partitions, and one take both over when the other leaves."""
    first, second = member(servers, "orders"), member(servers, "orders")
    await first.start()
    try:
        await until_assigned([first], [2])
        await second.start()
        try:
            await until_assigned([first, second], [1, 1])
            assert first.assignment() | second.assignment() == {ORDERS, TopicPartition("orders", 1)}
        finally:
            await second.stop()
        await until_assigned([first], [2])
    finally:
        await first.stop()


async def commit(servers: str, offset: int) -> None:
    async with asyncio.timeout(_WITHIN_S):
        consumer = member(servers)
        await consumer.start()
        try:
            consumer.assign([ORDERS])
            await consumer.commit({ORDERS: offset})
        finally:
            await consumer.stop()


async def committed(servers: str) -> int | None:
    async with asyncio.timeout(_WITHIN_S):
        consumer = member(servers)
        await consumer.start()
        try:
            consumer.assign([ORDERS])
            offset: int | None = await consumer.committed(ORDERS)
            return offset
        finally:
            await consumer.stop()


def test_members_share_partitions_and_positions_survive_the_coordinator(tmp_path: Path) -> None:
    with StandingCluster(store=tmp_path, kafka=True, settings=SETTINGS) as cluster:
        cluster.create_topic("orders", partitions=2, replication_factor=3)
        servers = cluster.bootstrap_servers
        asyncio.run(produce(servers, 20))
        asyncio.run(share_partitions(servers))
        asyncio.run(commit(servers, 11))
        cluster.chaos("kill: {node: 0}")
        cluster.chaos("until: {partition: __consumer_offsets-0, leader: 1}")
        assert asyncio.run(committed(servers)) == 11
        asyncio.run(commit(servers, 17))
        cluster.chaos("start: {node: 0}")
        cluster.chaos("until: {partition: __consumer_offsets-0, isr: [0, 1, 2]}")
        cluster.chaos("power_loss: {node: 1, keep: none}")
        cluster.chaos("until: {partition: __consumer_offsets-0, leader: 0}")
        assert asyncio.run(committed(servers)) == 17
        report = cluster.verify()
    assert (report.verdict, report.lost_records) == (Verdict.VALID, 0), report.unknown_reasons


def position_after_last_replica_standing(store: Path, era: str) -> tuple[int | None, CheckStatus]:
    """Returns the position of a group whose only in-sync replica lost power, and what C5 says of it."""
    with StandingCluster(store=store, kafka=True, settings=SETTINGS, era=era) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3)
        servers = cluster.bootstrap_servers.split(",")
        asyncio.run(produce(",".join(servers), 20))
        asyncio.run(commit(",".join(servers), 5))
        cluster.chaos("isolate: {node: 0}")
        cluster.chaos("until: {partition: __consumer_offsets-0, leader: 1, isr: [1, 2]}")
        asyncio.run(commit(",".join(servers[1:]), 15))
        cluster.chaos("isolate: {node: 1}")
        cluster.chaos("until: {partition: __consumer_offsets-0, leader: 2, isr: [2]}")
        cluster.chaos("power_loss: {node: 2, keep: none}")
        cluster.chaos("until: {partition: __consumer_offsets-0, leader: none}")
        cluster.chaos("start: {node: 2}")
        cluster.chaos("until: {node: 2, unfenced: true}")
        cluster.chaos("heal: all")
        cluster.chaos("until: {partition: __consumer_offsets-0, isr: [0, 1, 2]}")
        position = asyncio.run(committed(",".join(servers)))
        report = cluster.verify()
    assert report.doubts == ()
    return position, next(check.status for check in report.checks if check.check_id == "C5")


def test_the_era_decides_whether_positions_go_back(tmp_path: Path) -> None:
    assert position_after_last_replica_standing(tmp_path / "before", "kafka-3.9") == (None, CheckStatus.VIOLATED)
    assert position_after_last_replica_standing(tmp_path / "after", "kip-966") == (15, CheckStatus.OK)
