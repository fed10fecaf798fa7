"""Throughput, latency, memory and CPU of acks=all at three batch sizes.

RF 3, min ISR 2, 1 KB records, 3 partitions whose leaders are three brokers, idempotent, 5 batches in flight per
partition; every record is encoded. After a warm-up the same load is measured in windows, one value of each figure per
window. A cluster of its own for each batch size.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
import psutil

from benchmarks.cluster import BROKER_IDS, CONTROLLER_ID, PARTITIONS, BenchmarkCluster, BenchmarkError, are_isrs_full
from benchmarks.figure import Figure
from benchmarks.load import RECORD_SIZE, Completion, Load, load_client, records_that_fit

BATCH_SIZES: Final = {"16k": 16_384, "100k": 102_400, "1m": 1_048_576}
"""Kafka's ``batch.size`` by the name that its figures carry."""

WARM_UP_S: Final = 2.0
WINDOW_S: Final = 2.0
WINDOWS: Final = 5

_SESSION_TIMEOUT_MS: Final = 9_000
_IN_FLIGHT: Final = 5
_MEBIBYTE: Final = 1 << 20

# A batch for each place in flight and as many again made ready, so that no place waits for the producer's next tick.
_BUFFERED_BATCHES: Final = 2 * _IN_FLIGHT * len(PARTITIONS)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time and memory that the processes had used at one moment; sizes in bytes."""

    time_ns: int
    broker_cpu_s: float
    producer_cpu_s: float
    broker_rss: int  # of the largest
    controller_rss: int
    producer_rss: int


def measure() -> Iterator[Figure]:
    """Yields the figures, batch size by batch size.

    Raises:
        BenchmarkError: a node died, or nothing was acknowledged.
    """
    for name, batch_size in BATCH_SIZES.items():
        with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
            samples, completions = asyncio.run(produce(Path(directory), records_that_fit(batch_size)))
        yield from figures(f"produce_{name}", samples, completions)


def as_many_as_taken(batch_records: int) -> Load:
    """Returns the load of a producer that always has the next batch ready."""
    return Load(partitions=PARTITIONS, batch_records=batch_records, buffer_records=_BUFFERED_BATCHES * batch_records)


async def produce(directory: Path, batch_records: int) -> tuple[list[Sample], list[Completion]]:
    """Returns what was sampled around each window of a load, and what was acknowledged.

    Args:
        directory: for the cluster.
        batch_records: records of a batch.

    Raises:
        BenchmarkError: a node died, or nothing was acknowledged.
    """
    async with (
        BenchmarkCluster(directory, session_timeout_ms=_SESSION_TIMEOUT_MS, properties=()) as cluster,
        load_client(
            cluster.processes.supervisor,
            directory,
            as_many_as_taken(batch_records),
            session_timeout_ms=_SESSION_TIMEOUT_MS,
        ) as client,
    ):
        await cluster.start()
        await cluster.wait_until(are_isrs_full, what="full ISRs")
        client.start(cluster.processes.direct_addresses())
        await client.await_ack()
        brokers = [psutil.Process(cluster.pid(broker)) for broker in BROKER_IDS]
        controller = psutil.Process(cluster.pid(CONTROLLER_ID))
        producer = psutil.Process(client.pid)
        await asyncio.sleep(WARM_UP_S)
        samples = [sample(brokers, controller, producer)]
        for _ in range(WINDOWS):
            await asyncio.sleep(WINDOW_S)
            samples.append(sample(brokers, controller, producer))
        await client.stop()
        cluster.check()
        return samples, client.completions()


def sample(brokers: list[psutil.Process], controller: psutil.Process, producer: psutil.Process) -> Sample:
    """Returns what processes have used until now."""
    return Sample(
        time_ns=time.monotonic_ns(),
        broker_cpu_s=sum(map(_cpu_s, brokers)),
        producer_cpu_s=_cpu_s(producer),
        broker_rss=max(broker.memory_info().rss for broker in brokers),
        controller_rss=controller.memory_info().rss,
        producer_rss=producer.memory_info().rss,
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def figures(prefix: str, samples: list[Sample], completions: list[Completion]) -> Iterator[Figure]:
    """Yields the figures of the windows between samples; what was acknowledged outside of them does not count.

    Raises:
        BenchmarkError: nothing was acknowledged in a window.
    """
    megabytes, records, p50, p99, broker_cpu, producer_cpu = [], [], [], [], [], []
    for start, end in pairwise(samples):
        acked = [each for each in completions if start.time_ns <= each.acked_ns < end.time_ns]
        if not acked:
            raise BenchmarkError("nothing was acknowledged in a whole window")
        seconds = (end.time_ns - start.time_ns) / 1e9
        count = sum(each.records for each in acked)
        latencies = sorted((each.acked_ns - each.invoked_ns) / 1e6 for each in acked)
        size = count * RECORD_SIZE / _MEBIBYTE
        records.append(count / seconds)
        megabytes.append(size / seconds)
        p50.append(latencies[len(latencies) // 2])
        p99.append(latencies[len(latencies) * 99 // 100])
        broker_cpu.append((end.broker_cpu_s - start.broker_cpu_s) * 1e6 / size)
        producer_cpu.append((end.producer_cpu_s - start.producer_cpu_s) * 1e6 / size)
    yield Figure(name=f"{prefix}_throughput", unit="MB/s", values=tuple(megabytes))
    yield Figure(name=f"{prefix}_records", unit="records/s", values=tuple(records))
    yield Figure(name=f"{prefix}_latency_p50", unit="ms", values=tuple(p50))
    yield Figure(name=f"{prefix}_latency_p99", unit="ms", values=tuple(p99))
    yield Figure(name=f"{prefix}_broker_cpu", unit="us/MB", values=tuple(broker_cpu))
    yield Figure(name=f"{prefix}_producer_cpu", unit="us/MB", values=tuple(producer_cpu))
    ends = samples[1:]
    yield Figure(name=f"{prefix}_broker_rss", unit="MB", values=_megabytes(each.broker_rss for each in ends))
    yield Figure(name=f"{prefix}_controller_rss", unit="MB", values=_megabytes(each.controller_rss for each in ends))
    yield Figure(name=f"{prefix}_producer_rss", unit="MB", values=_megabytes(each.producer_rss for each in ends))


def _megabytes(sizes: Iterator[int]) -> tuple[float, ...]:
    return tuple(size / _MEBIBYTE for size in sizes)
