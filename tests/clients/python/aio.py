"""A client of the tests, see README.md: python aio.py SERVERS create|produce|consume TOPIC."""

import asyncio
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic


async def create(servers: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers, client_id="aiokafka")
    await admin.start()
    asked = NewTopic(topic, num_partitions=1, replication_factor=3, topic_configs={"min.insync.replicas": "2"})
    await admin.create_topics([asked])
    await admin.close()
    print("created", topic)


async def produce(servers: str, topic: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=servers, client_id="aiokafka", enable_idempotence=True)
    await producer.start()
    outcomes = []
    while line := await asyncio.to_thread(sys.stdin.readline):
        value = line.rstrip("\n")
        sent = await producer.send(topic, value.encode())
        outcomes.append(asyncio.ensure_future(say_outcome(value, sent)))
    await producer.flush()
    await asyncio.gather(*outcomes)
    await producer.stop()


async def say_outcome(value: str, sent: asyncio.Future[Any]) -> None:
    try:
        acked = await sent
    except Exception as error:
        print("failed", value, repr(error), flush=True)
    else:
        print("acked", value, acked.offset, flush=True)


async def consume(servers: str, topic: str) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        client_id="aiokafka",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    await consumer.seek_to_beginning()
    try:
        async for record in consumer:
            print("read", record.value.decode(), record.offset, flush=True)
    except Exception as error:
        print("error", repr(error), flush=True)
    finally:
        await consumer.stop()


if __name__ == "__main__":
    asyncio.run({"create": create, "produce": produce, "consume": consume}[sys.argv[2]](sys.argv[1], sys.argv[3]))
