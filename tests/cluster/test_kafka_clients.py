"""A client of Apache Kafka that knows nothing of this project is served, loses what its era loses, and is judged."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from laststand.emulator.core.address import host_and_port
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from laststand.standing_cluster import StandingCluster
from tests.cluster.settings import PATIENT, QUICK
from tests.wire.player import Connection

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180), pytest.mark.usefixtures("judged_here")]

SOFTWARE = {"clientSoftwareName": "test", "clientSoftwareVersion": "1"}
FETCH, CREATE_TOPICS, DESCRIBE_TOPIC_PARTITIONS = 1, 19, 75


async def produce(servers: str, count: int, **settings: object) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all", **settings)
    await producer.start()
    try:
        for number in range(count):
            await producer.send_and_wait("orders", b"record %d" % number, key=b"order-%d" % number, partition=0)
    finally:
        await producer.stop()


async def consume(servers: str, count: int) -> list[bytes]:
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([TopicPartition("orders", 0)])
        return [(await consumer.getone()).value for _ in range(count)]
    finally:
        await consumer.stop()


def test_a_client_produces_and_consumes_and_is_judged(tmp_path: Path) -> None:
    with StandingCluster(store=tmp_path, kafka=True, settings=PATIENT) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
        servers = cluster.bootstrap_servers
        asyncio.run(produce(servers, 20))
        asyncio.run(produce(servers, 20, enable_idempotence=True, client_id="app"))
        values = asyncio.run(consume(servers, 40))
        assert values == [b"record %d" % number for number in (*range(20), *range(20))]
        report = cluster.verify()
    assert report.verdict is Verdict.VALID, report.unknown_reasons
    assert (acked(report), report.lost_records) == (40, 0)


def acked(report: VerdictReport) -> int:
    return sum(counts.acked for counts in report.counts)


def play_last_replica_standing(cluster: StandingCluster, servers: str) -> None:
    """Has a client write 40 records, by addresses of brokers in their order, while the last replica loses power."""
    cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    # Not broker 0: once isolated, it still believes that it leads, and a client that asked it would wait in vain.
    others = ",".join(servers.split(",")[1:])
    asyncio.run(produce(servers, 20))
    cluster.chaos("isolate: {node: 0, clients: connected}")
    cluster.chaos("until: {partition: orders-0, leader: 1, isr: [1, 2]}")
    asyncio.run(produce(others, 20))
    cluster.chaos("isolate: {node: 1, clients: connected}")
    cluster.chaos("until: {partition: orders-0, leader: 2, isr: [2]}")
    cluster.chaos("power_loss: {node: 2, keep: none}")
    cluster.chaos("until: {partition: orders-0, leader: none}")
    cluster.chaos("start: {node: 2}")
    cluster.chaos("until: {node: 2, unfenced: true}")
    cluster.chaos("heal: all")
    cluster.chaos("until: {partition: orders-0, isr: [0, 1, 2]}")


def verdict_on_last_replica_standing(store: Path, era: str) -> VerdictReport:
    with StandingCluster(store=store, kafka=True, settings=QUICK, era=era) as cluster:
        play_last_replica_standing(cluster, cluster.bootstrap_servers)
        return cluster.verify()


def test_the_era_decides_what_a_client_loses(tmp_path: Path) -> None:
    lost = verdict_on_last_replica_standing(tmp_path / "before", "kafka-3.9")
    kept = verdict_on_last_replica_standing(tmp_path / "after", "kip-966")
    assert (lost.verdict, acked(lost), lost.lost_records) == (Verdict.VIOLATION, 40, 40)
    assert (kept.verdict, acked(kept), kept.lost_records) == (Verdict.VALID, 40, 0)


def test_beside_zookeeper_a_client_meets_brokers_of_that_era(tmp_path: Path) -> None:
    with StandingCluster(store=tmp_path, kafka=True, settings=PATIENT, era="kafka-2.5-zk") as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
        asyncio.run(produce(cluster.bootstrap_servers, 20))
        assert len(asyncio.run(consume(cluster.bootstrap_servers, 20))) == 20
        brokers = [Connection(host_and_port(address)) for address in cluster.bootstrap_servers.split(",")]
        offered = {api["apiKey"]: api["maxVersion"] for api in brokers[0].ask("ApiVersions", 3, SOFTWARE)["apiKeys"]}
        assert (offered[FETCH], offered[CREATE_TOPICS], DESCRIBE_TOPIC_PARTITIONS in offered) == (11, 5, False)
        # Every broker has a controller, which refuses unless it is elected; an administrator asks the one of Metadata.
        controller = brokers[0].ask("Metadata", 9, {"topics": []})["controllerId"]
        election = {"electionType": 0, "topicPartitions": [{"topic": "orders", "partitions": [0]}], "timeoutMs": 5000}
        answers = [broker.ask("ElectLeaders", 2, election) for broker in brokers]
        assert [answer["errorCode"] == ErrorCode.NOT_CONTROLLER for answer in answers] == [
            broker_id != controller for broker_id in range(3)
        ]
        topic = {"name": "more", "numPartitions": 2, "replicationFactor": 3, "assignments": [], "configs": []}
        creation = {"topics": [topic], "timeoutMs": 5000, "validateOnly": False}
        created = [broker.ask("CreateTopics", 5, creation)["topics"][0]["errorCode"] for broker in brokers]
        assert created == [0 if each == controller else ErrorCode.NOT_CONTROLLER for each in range(3)]
        for broker in brokers:
            broker.close()
        report = cluster.verify()
    assert report.verdict is Verdict.VALID, report.unknown_reasons
    assert (acked(report), report.lost_records) == (20, 0)
