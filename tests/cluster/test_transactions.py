"""Transactions of clients of Kafka (librdkafka): atomic over partitions, and as durable as any record."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from laststand.emulator.verification.verdict.report import Verdict
from laststand.standing_cluster import StandingCluster
from tests.cluster.settings import PATIENT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180), pytest.mark.usefixtures("judged_here")]

SETTINGS = {
    **PATIENT,
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "100",
}
PARTITIONS = 6
"""Two for each broker, so that a request has several batches."""
_WITHIN_S = 30.0


def transactional(servers: str, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "log_level": 0,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "transaction.timeout.ms": 60_000,
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )
    producer.init_transactions(_WITHIN_S)
    return producer


def reader(servers: str, isolation: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "log_level": 0,
            "group.id": "app",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )


def read_all(servers: str, topic: str, partitions: int, count: int, isolation: str = "read_committed") -> list[bytes]:
    """Returns the values of a topic, once there are as many as that and each partition was read to its end."""
    consumer = reader(servers, isolation)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    values: list[bytes] = []
    read = set[int]()
    deadline = time.monotonic() + _WITHIN_S
    try:
        while time.monotonic() < deadline and (len(values) < count or len(read) < partitions):
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                values.append(message.value())
                read.discard(message.partition())
            elif error.code() == KafkaError._PARTITION_EOF:
                read.add(message.partition())
    finally:
        consumer.close()
    return values


def produce(producer: Producer, topic: str, values: list[str], partitions: int) -> None:
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % partitions)


def test_readers_of_committed_records_see_what_was_committed(tmp_path: Path) -> None:
    with StandingCluster(store=tmp_path, kafka=True, settings=SETTINGS) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS, replication_factor=3)
        servers = cluster.bootstrap_servers
        producer = transactional(servers, "shop")
        producer.begin_transaction()
        produce(producer, "orders", [f"kept-{number}" for number in range(10)], PARTITIONS)
        producer.commit_transaction(_WITHIN_S)
        producer.begin_transaction()
        produce(producer, "orders", [f"dropped-{number}" for number in range(10)], PARTITIONS)
        producer.flush(_WITHIN_S)
        producer.abort_transaction(_WITHIN_S)
        producer.begin_transaction()
        produce(producer, "orders", [f"after-{number}" for number in range(10)], PARTITIONS)
        producer.commit_transaction(_WITHIN_S)
        expected = [*(f"kept-{number}" for number in range(10)), *(f"after-{number}" for number in range(10))]
        assert sorted(read_all(servers, "orders", PARTITIONS, 20)) == sorted(map(str.encode, expected))
        assert len(read_all(servers, "orders", PARTITIONS, 30, "read_uncommitted")) == 30
        zombie = producer
        successor = transactional(servers, "shop")
        zombie.begin_transaction()
        zombie.produce("orders", value="zombie", partition=0)
        with pytest.raises(KafkaException) as fenced:
            zombie.commit_transaction(_WITHIN_S)
        assert fenced.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
        successor.begin_transaction()
        successor.produce("orders", value="last", partition=0)
        successor.commit_transaction(_WITHIN_S)
        assert sorted(read_all(servers, "orders", PARTITIONS, 21)) == sorted(map(str.encode, [*expected, "last"]))
        report = cluster.verify()
    assert (report.verdict, report.lost_records) == (Verdict.VALID, 0), report.unknown_reasons
