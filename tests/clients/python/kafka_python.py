"""A client of the tests, see README.md: python kafka_python.py SERVERS create|produce|consume TOPIC."""

import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic


def create(servers: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers.split(","), client_id="kafka-python")
    asked = NewTopic(topic, num_partitions=1, replication_factor=3, topic_configs={"min.insync.replicas": "2"})
    admin.create_topics([asked])
    admin.close()
    print("created", topic)


def produce(servers: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=servers.split(","), client_id="kafka-python", enable_idempotence=True)
    while line := sys.stdin.readline():
        value = line.rstrip("\n")
        sent = producer.send(topic, value.encode())
        sent.add_callback(lambda acked, value=value: print("acked", value, acked.offset, flush=True))
        sent.add_errback(lambda error, value=value: print("failed", value, error, flush=True))
    producer.close()


def consume(servers: str, topic: str) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=servers.split(","),
        client_id="kafka-python",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    try:
        for record in consumer:
            print("read", record.value.decode(), record.offset, flush=True)
    except Exception as error:
        print("error", repr(error), flush=True)


if __name__ == "__main__":
    {"create": create, "produce": produce, "consume": consume}[sys.argv[2]](sys.argv[1], sys.argv[3])
