"""A client of the tests, see README.md: python confluent.py SERVERS create|produce|consume TOPIC."""

import sys

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def create(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "client.id": "confluent-kafka"})
    asked = NewTopic(topic, num_partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    for outcome in admin.create_topics([asked]).values():
        outcome.result()
    print("created", topic)


def say_outcome(error: KafkaError | None, record: Message) -> None:
    value = record.value().decode()
    print(*(("acked", value, record.offset()) if error is None else ("failed", value, error)), flush=True)


def produce(servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": "confluent-kafka", "enable.idempotence": True})
    while line := sys.stdin.readline():
        producer.produce(topic, line.rstrip("\n"), on_delivery=say_outcome)
        producer.poll(0)
    producer.flush()


def consume(servers: str, topic: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "client.id": "confluent-kafka",
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        record = consumer.poll(1.0)
        if record is None:
            continue
        if record.error():
            print("error", record.error(), flush=True)
        else:
            print("read", record.value().decode(), record.offset(), flush=True)


if __name__ == "__main__":
    {"create": create, "produce": produce, "consume": consume}[sys.argv[2]](sys.argv[1], sys.argv[3])
