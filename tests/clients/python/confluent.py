"""A client of the tests, see README.md: python confluent.py SERVERS create|produce|consume|pipe TOPIC."""

import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
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


def pipe(servers: str, topic: str) -> None:
    # librdkafka forgets a coordinator that it has not asked for so long. If the broker dies and leaves the metadata
    # within that time, it waits for it without end (its issues 5511 and 5456).
    settings = {"bootstrap.servers": servers, "client.id": "confluent-kafka", "metadata.max.age.ms": 1000}
    producer = Producer({**settings, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions()
    consumer = Consumer({**settings, "group.id": topic, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while True:
        records = [record for record in consumer.consume(5, 0.2) if not record.error()]
        if not records:
            continue
        producer.begin_transaction()
        try:
            for record in records:
                producer.produce(f"{topic}-out", record.value())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
            producer.commit_transaction()
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction()
            for position in consumer.committed(consumer.assignment()):
                consumer.seek(TopicPartition(position.topic, position.partition, max(position.offset, 0)))
            continue
        for record in records:
            print("piped", record.value().decode(), flush=True)


if __name__ == "__main__":
    {"create": create, "produce": produce, "consume": consume, "pipe": pipe}[sys.argv[2]](sys.argv[1], sys.argv[3])
