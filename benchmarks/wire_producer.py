"""A producer that writes Kafka's protocol with as little work of its own as the project's producer has.

``python -m benchmarks.wire_producer TOPIC BATCH_RECORDS ADDRESS…`` prints MB/s. Kafka's own performance test takes
more processor time to make records and batches than brokers take to store them, so that on two cores it says little
about the listener; this one encodes its batches as the project's own producer does. Partition ``i`` is led by the
``i``-th address, has a connection and a thread, and one batch in flight; acks=all, idempotent.
"""

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from benchmarks.load import RECORD_SIZE
from laststand.emulator.client.records import encode_batch
from laststand.emulator.core.client.steps import BatchContent
from laststand.emulator.core.types import Acks, TopicPartition
from tests.wire.player import Connection

WARM_UP_S: Final = 1.0
WINDOW_S: Final = 3.0
_TIMEOUT_MS: Final = 15_000
_MEBIBYTE: Final = 1 << 20


def throughput(addresses: Sequence[tuple[str, int]], topic: str, batch_records: int) -> float:
    """Returns what is acknowledged, in MB/s, after a warm-up.

    Raises:
        RuntimeError: a batch was refused.
    """
    since_s = time.monotonic() + WARM_UP_S
    until_s = since_s + WINDOW_S
    counts = [0] * len(addresses)
    failures: list[Exception] = []

    def send(partition: int) -> None:
        try:
            for acked_s in _acknowledged(addresses[partition], topic, partition, batch_records):
                counts[partition] += since_s <= acked_s < until_s
                if acked_s >= until_s:
                    return
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(partition,)) for partition in range(len(addresses))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RuntimeError(str(failures[0])) from failures[0]
    return sum(counts) * batch_records * RECORD_SIZE / _MEBIBYTE / WINDOW_S


def _acknowledged(address: tuple[str, int], topic: str, partition: int, batch_records: int) -> Iterator[float]:
    """Sends batches without end, and yields when each was acknowledged, in seconds of the monotonic clock."""
    connection = Connection(address)
    producer = connection.ask("InitProducerId", 4, {"transactionalId": None, "transactionTimeoutMs": 0})
    sent = 0
    while True:
        content = BatchContent(
            partition=TopicPartition(topic, partition),
            first_record_id=sent,
            record_count=batch_records,
            producer_id=producer["producerId"],
            producer_epoch=producer["producerEpoch"],
            base_sequence=sent % (1 << 31),
        )
        records, _ = encode_batch("producer-0", content, record_size=RECORD_SIZE)
        partitions: list[dict[str, Any]] = [{"index": partition, "records": records}]
        answer = connection.ask(
            "Produce",
            9,
            {
                "transactionalId": None,
                "acks": Acks.ALL,
                "timeoutMs": _TIMEOUT_MS,
                "topicData": [{"name": topic, "partitionData": partitions}],
            },
        )
        error = answer["responses"][0]["partitionResponses"][0]["errorCode"]
        if error:
            raise RuntimeError(f"{topic}-{partition} answered {error}")
        yield time.monotonic()
        sent += batch_records


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.wire_producer")
    parser.add_argument("topic")
    parser.add_argument("batch_records", type=int)
    parser.add_argument("addresses", nargs="+")
    options = parser.parse_args()
    addresses = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in options.addresses)]
    print(throughput(addresses, options.topic, options.batch_records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
