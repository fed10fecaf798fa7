"""Kafka's own producer through the listener and against a warm Apache Kafka, in one sitting, and what clients wait for.

``kafka-producer-perf-test`` of Kafka 4.2.0 writes the same load to both clusters in turn: acks=all, idempotent, RF 3,
min ISR 2, 1 KB records, 3 partitions whose leaders are three brokers. Kafka's brokers run with the options of its own
start script, so that their code is compiled as in production. At the two larger batch sizes a producer of Kafka's
protocol in Python takes a turn at both clusters, which leaves more of the cores to brokers than Kafka's own does, and
the project's own producer at ours, with one batch in flight for each partition: brokers read no further request of a
connection until the last one is answered, so that a client of Kafka has no more here. ``listener_first_list_s`` is the
time that ``kcat -L`` takes once brokers are unfenced.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from benchmarks.cluster import BROKER_IDS, PARTITIONS, REPLICAS, BenchmarkCluster, BenchmarkError, are_isrs_full
from benchmarks.figure import Figure
from benchmarks.kafka import running_kafka
from benchmarks.load import RECORD_SIZE, Load, load_client, records_that_fit
from benchmarks.produce import BATCH_SIZES
from laststand.chaos.kafka.program import kafka_program
from laststand.emulator.cluster.layout import token_file
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.parent_death import die_with_parent
from tests.clients.programs import java

REPETITIONS: Final = 3
KAFKA_OPTIONS: Final = ("-Xms512m", "-Xmx512m", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
"""Options of ``kafka-server-start.sh``, with half of its heap."""

_SESSION_TIMEOUT_MS: Final = 9_000
_TOOLS: Final = "kafka-tools-4.2.0"
_TOPIC: Final = "perf"
_MEBIBYTE: Final = 1 << 20
_LOAD_MB: Final = {"16k": 16, "100k": 64, "1m": 128}
_WARM_UP_MB: Final = 16
_COMPARED: Final = (
    ("", "_kafka", "_kafka"),
    ("_wire_client", "_kafka_wire_client", "_kafka"),
    ("_wire_client", "_own_client", "_own_client"),
)
"""Pairs of measurements that are compared, and the name that the second one has in the figure's."""

_SINGLE_RECORDS: Final = 1_000
_SINGLE_RECORDS_PER_S: Final = 100
_OWN_WARM_UP_S: Final = 1.0
_OWN_WINDOW_S: Final = 3.0
_TOOL_TIMEOUT_S: Final = 180.0
_RESULT: Final = re.compile(r"\((?P<throughput>[\d.]+) MB/sec\).* (?P<p99>\d+) ms 99th")


class Brokers(NamedTuple):
    """A cluster that clients of Kafka reach.

    Attributes:
        servers: its ``bootstrap.servers``.
        java_options: for programs in Java that connect to it.
    """

    servers: str
    java_options: tuple[str, ...] = ()


class Result(NamedTuple):
    """The last line of the performance test: MB/s, and a latency in ms."""

    throughput: float
    p99_ms: float


def measure() -> Iterator[Figure]:
    """Yields the figures.

    Raises:
        BenchmarkError: a cluster or the performance test failed, or a program is missing.
    """
    try:
        yield from asyncio.run(_measure())
    except EmulatorError as error:
        raise BenchmarkError(str(error)) from error
    except pytest.skip.Exception as skipped:
        raise BenchmarkError(str(skipped)) from None


async def _measure() -> list[Figure]:
    program = msgspec.structs.replace(kafka_program("4.2.0"), jvm_options=KAFKA_OPTIONS)
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as name:
        directory = Path(name)
        async with (
            BenchmarkCluster(
                directory, session_timeout_ms=_SESSION_TIMEOUT_MS, properties=(), kafka_clients=("kafka",)
            ) as cluster,
            running_kafka(program) as kafka_cluster,
        ):
            await cluster.start()
            ours = Brokers(_joined(cluster.processes.kafka_addresses()["kafka"].values()))
            first_list_s = await _first_list(ours)
            await cluster.wait_until(are_isrs_full, what="full ISRs")
            hosts = kafka_cluster.layout.node_directory(BROKER_IDS[0]) / "hosts"
            kafka = Brokers(
                _joined(kafka_cluster.direct_addresses()[broker] for broker in BROKER_IDS),
                (f"-Djdk.net.hosts.file={hosts}",),
            )
            for brokers in (ours, kafka):
                await _create_topic(brokers)
                await _play(brokers, BATCH_SIZES["16k"], megabytes=_WARM_UP_MB)
            figures = [Figure(name="listener_first_list_s", unit="s", values=(first_list_s,))]
            for name, batch_size in BATCH_SIZES.items():
                figures += await _compare(cluster, ours, kafka, name, batch_size)
            return [*figures, *await _single_records(ours, kafka)]


async def _compare(
    cluster: BenchmarkCluster, ours: Brokers, kafka: Brokers, name: str, batch_size: int
) -> list[Figure]:
    """Returns the throughput of each at one batch size, and that through the listener as a multiple of the others."""
    rounds: dict[str, list[float]] = {
        "": [],
        "_kafka": [],
        "_wire_client": [],
        "_kafka_wire_client": [],
        "_own_client": [],
    }
    for _ in range(REPETITIONS):
        rounds[""].append((await _play(ours, batch_size, megabytes=_LOAD_MB[name])).throughput)
        rounds["_kafka"].append((await _play(kafka, batch_size, megabytes=_LOAD_MB[name])).throughput)
        if name != "16k":
            rounds["_wire_client"].append(await _wire_client(ours, records_that_fit(batch_size)))
            rounds["_kafka_wire_client"].append(await _wire_client(kafka, records_that_fit(batch_size)))
            rounds["_own_client"].append(await _own_client(cluster, records_that_fit(batch_size)))
    measured = {who: values for who, values in rounds.items() if values}
    return [
        *(
            Figure(name=f"listener{who}_{name}_throughput", unit="MB/s", values=tuple(values))
            for who, values in measured.items()
        ),
        *(
            Figure(name=f"listener{one}_over{short}_{name}", unit="x", values=_ratios(measured[one], measured[other]))
            for one, other, short in _COMPARED
            if other in measured
        ),
    ]


async def _single_records(ours: Brokers, kafka: Brokers) -> list[Figure]:
    """Returns the 99th percentile of the latency of records that are sent one by one."""
    rounds: dict[str, list[float]] = {"": [], "_kafka": []}
    for _ in range(REPETITIONS):
        for who, brokers in (("", ours), ("_kafka", kafka)):
            result = await _perform(
                brokers, records=_SINGLE_RECORDS, per_s=_SINGLE_RECORDS_PER_S, settings=("linger.ms=0",)
            )
            rounds[who].append(result.p99_ms)
    return [Figure(name=f"listener{who}_1k_latency_p99", unit="ms", values=tuple(each)) for who, each in rounds.items()]


async def _play(brokers: Brokers, batch_size: int, *, megabytes: int) -> Result:
    settings = (f"batch.size={batch_size}", "linger.ms=20", f"max.request.size={2 * batch_size}")
    return await _perform(brokers, records=megabytes * _MEBIBYTE // RECORD_SIZE, per_s=-1, settings=settings)


async def _perform(brokers: Brokers, *, records: int, per_s: int, settings: Sequence[str]) -> Result:
    """Runs the performance test; the first fifth of the records is not measured."""
    said = await _tool(
        brokers,
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", _TOPIC, "--num-records", str(records), "--warmup-records", str(records // 5)),
        *("--record-size", str(RECORD_SIZE), "--throughput", str(per_s), "--command-property", "acks=all", *settings),
    )
    found = _RESULT.search(said.splitlines()[-1] if said else "")
    if found is None:
        raise BenchmarkError(f"the performance test said: {said.strip()[-500:]}")
    return Result(float(found["throughput"]), float(found["p99"]))


async def _create_topic(brokers: Brokers) -> None:
    replicas = ",".join(":".join(map(str, partition)) for partition in REPLICAS)
    options = ("--create", "--topic", _TOPIC, "--replica-assignment", replicas, "--config", "min.insync.replicas=2")
    await _tool(brokers, "org.apache.kafka.tools.TopicCommand", *options)


async def _tool(brokers: Brokers, name: str, *arguments: str) -> str:
    program, *options = java(_TOOLS, name, "--bootstrap-server", brokers.servers, *arguments)
    # The later options win: the client is compiled as in production, too.
    client = ("-Xmx512m", "-XX:TieredStopAtLevel=4")
    place = options.index("-cp")
    return await _run(program, *options[:place], *client, *brokers.java_options, *options[place:])


async def _wire_client(brokers: Brokers, batch_records: int) -> float:
    """Returns the throughput of a producer that speaks Kafka's protocol and works as the project's own, in MB/s."""
    servers = brokers.servers.split(",")
    return float(await _run(sys.executable, "-m", "benchmarks.wire_producer", _TOPIC, str(batch_records), *servers))


async def _own_client(cluster: BenchmarkCluster, batch_records: int) -> float:
    """Returns the throughput of the project's own producer, in MB/s."""
    load = Load(partitions=PARTITIONS, batch_records=batch_records, buffer_records=30 * batch_records, max_in_flight=1)
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as name:
        directory = Path(name)
        shutil.copy(cluster.processes.layout.token_file, token_file(directory))
        async with load_client(
            cluster.processes.supervisor, directory, load, session_timeout_ms=_SESSION_TIMEOUT_MS
        ) as client:
            client.start(cluster.processes.direct_addresses())
            await client.await_ack()
            await asyncio.sleep(_OWN_WARM_UP_S)
            since_ns = time.monotonic_ns()
            await asyncio.sleep(_OWN_WINDOW_S)
            until_ns = time.monotonic_ns()
            await client.stop()
            acked = sum(each.records for each in client.completions() if since_ns <= each.acked_ns < until_ns)
    return acked * RECORD_SIZE / _MEBIBYTE / ((until_ns - since_ns) / 1e9)


async def _first_list(brokers: Brokers) -> float:
    kcat = shutil.which("kcat")
    if kcat is None:
        raise BenchmarkError("no kcat on PATH")
    started_ns = time.monotonic_ns()
    await _run(kcat, "-b", brokers.servers, "-L")
    return (time.monotonic_ns() - started_ns) / 1e9


async def _run(*command: str) -> str:
    """Runs a program, and returns what it printed.

    Raises:
        BenchmarkError: it failed, or took too long.
    """
    process = await asyncio.create_subprocess_exec(
        *die_with_parent(command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=os.environ
    )
    try:
        async with asyncio.timeout(_TOOL_TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        raise BenchmarkError(f"{command[0]} took more than {_TOOL_TIMEOUT_S:g} s") from None
    text = output.decode(errors="replace")
    if process.returncode:
        raise BenchmarkError(f"{command[0]} ended with {process.returncode}: {text[-500:]}")
    return text


def _joined(addresses: Iterable[str]) -> str:
    return ",".join(addresses)


def _ratios(ours: Sequence[float], others: Sequence[float]) -> tuple[float, ...]:
    """Returns ratios of measurements that were made in turn."""
    return tuple(each / other for each, other in zip(ours, others, strict=True))
