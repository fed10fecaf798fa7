"""The cost of TLS, and of an authorizer without entries: CPU of brokers and producer for each MB that is acknowledged.

Four clusters run side by side: plain, with TLS between all processes and to clients of Kafka, with
``StandardAuthorizer``, and another plain one, whose ratio shows what this sitting can tell apart. They are written to
in turn, in short windows: by the project's own producer, which is suspended in between, and by librdkafka through the
listener, at 100 KB and acks=all. So each ratio is of windows that follow each other, to the mean of both plain ones;
time would measure whatever else the machine does.

The authorizer's cost is below what such ratios show on a busy machine: it is also taken from the core alone, by two
clusters in virtual time, of which one has an authorizer, in one process and in turn.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import psutil
from confluent_kafka import KafkaError, Message, Producer

from benchmarks.cluster import (
    BROKER_IDS,
    CONTROLLER_ID,
    PARTITIONS,
    TOPIC,
    BenchmarkCluster,
    BenchmarkError,
    are_isrs_full,
)
from benchmarks.figure import Figure
from benchmarks.load import RECORD_SIZE, Completion, LoadClient, load_client, records_that_fit
from benchmarks.produce import BATCH_SIZES, Sample, as_many_as_taken, sample
from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.properties import STANDARD_AUTHORIZER, TLS_PROPERTIES, NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import Acks, LeaderEpoch, Offset
from laststand.emulator.plan.nodes import KAFKA
from laststand.emulator.rpc.certificates import Certificates
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster

ROUNDS: Final = 12
_SIZE: Final = "100k"
_PLAIN: Final = "plain"
_AGAIN: Final = "plain_again"
_OPEN: Final = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
_VARIANTS: Final[Mapping[str, Mapping[str, str]]] = {
    _PLAIN: {},
    "tls": TLS_PROPERTIES,
    "authorizer": _OPEN,
    _AGAIN: {},
}
_SESSION_TIMEOUT_MS: Final = 60_000
"""Nobody gives up the connection of a producer that is suspended for a quarter of it."""

_SETTLES_S: Final = 0.5
_WINDOW_S: Final = 1.5
_LISTENER_MB: Final = 24
_MEBIBYTE: Final = 1 << 20
_PRODUCES: Final = 200


def measure() -> Iterator[Figure]:
    """Yields the figures.

    Raises:
        BenchmarkError: a node died, or nothing was acknowledged.
    """
    for load, costs in asyncio.run(_measure()).items():
        for name, values in costs.items():
            yield Figure(name=f"identity{load}_{name}_cpu", unit="us/MB", values=tuple(values))
        again = _ratios(costs[_AGAIN], costs[_PLAIN])
        yield Figure(name=f"identity{load}_{_AGAIN}_over_plain", unit="x", values=again)
        plain = list(map(statistics.mean, zip(costs[_PLAIN], costs[_AGAIN], strict=True)))
        for name in ("tls", "authorizer"):
            yield Figure(name=f"identity{load}_{name}_over_plain", unit="x", values=_ratios(costs[name], plain))
    yield Figure(name="identity_authorizer_core", unit="us/batch", values=tuple(_core_costs()))


def _ratios(costs: Sequence[float], others: Sequence[float]) -> tuple[float, ...]:
    return tuple(each / other for each, other in zip(costs, others, strict=True))


# --- On processes -----------------------------------------------------------------------------------------------------


class _Variant:
    """A cluster that runs, and its two producers."""

    def __init__(self, cluster: BenchmarkCluster, client: LoadClient) -> None:
        self.cluster = cluster
        self.client = client
        self.windows: list[tuple[Sample, Sample]] = []
        self._brokers = [psutil.Process(cluster.pid(broker)) for broker in BROKER_IDS]
        self._controller = psutil.Process(cluster.pid(CONTROLLER_ID))
        self._own_producer = psutil.Process(client.pid)
        self._own_producer.suspend()
        self._kafka_producer = Producer(self._settings())

    def _settings(self) -> dict[str, object]:
        settings: dict[str, object] = {
            "bootstrap.servers": ",".join(self.cluster.processes.kafka_addresses()[KAFKA].values()),
            "acks": "all",
            "enable.idempotence": True,
            "batch.size": BATCH_SIZES[_SIZE],
            "linger.ms": 20,
            "log_level": 0,
        }
        layout = self.cluster.processes.layout
        if not layout.has_tls:
            return settings
        shown = Certificates(layout.tls_folder, KAFKA)
        return settings | {
            "security.protocol": "SSL",
            "ssl.ca.location": str(shown.authority),
            "ssl.certificate.location": str(shown.client),
            "ssl.key.location": str(shown.client),
        }

    async def play_own(self) -> None:
        """Lets the project's own producer write for a window."""
        self._own_producer.resume()
        await asyncio.sleep(_SETTLES_S)
        start = sample(self._brokers, self._controller, self._own_producer)
        await asyncio.sleep(_WINDOW_S)
        self.windows.append((start, sample(self._brokers, self._controller, self._own_producer)))
        self._own_producer.suspend()
        self.cluster.check()

    async def play_listener(self) -> float:
        """Has librdkafka write some megabytes, and returns the CPU of brokers and of this process for each."""
        start, own_s = self._broker_cpu_s(), time.process_time()
        await asyncio.to_thread(self._write)
        self.cluster.check()
        return (self._broker_cpu_s() - start + time.process_time() - own_s) * 1e6 / _LISTENER_MB

    def _write(self) -> None:
        failures: list[KafkaError] = []

        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        for number in range(_LISTENER_MB * _MEBIBYTE // RECORD_SIZE):
            partition = number // (BATCH_SIZES[_SIZE] // RECORD_SIZE) % len(PARTITIONS)
            self._kafka_producer.produce(TOPIC, bytes(RECORD_SIZE), partition=partition, on_delivery=note)
        self._kafka_producer.flush()
        if failures:
            raise BenchmarkError(f"librdkafka: {failures[0]}")

    def _broker_cpu_s(self) -> float:
        return sample(self._brokers, self._controller, self._own_producer).broker_cpu_s

    async def own_costs(self) -> list[float]:
        """Ends the project's own producer, and returns the CPU of brokers and producer for a MB of each window."""
        self._own_producer.resume()
        await self.client.stop()
        completions = self.client.completions()
        return [_cpu_per_mb(start, end, completions) for start, end in self.windows]


def _cpu_per_mb(start: Sample, end: Sample, completions: list[Completion]) -> float:
    records = sum(each.records for each in completions if start.time_ns <= each.acked_ns < end.time_ns)
    if not records:
        raise BenchmarkError("nothing was acknowledged in a whole window")
    used_s = end.broker_cpu_s + end.producer_cpu_s - start.broker_cpu_s - start.producer_cpu_s
    return used_s * 1e6 / (records * RECORD_SIZE / _MEBIBYTE)


async def _measure() -> dict[str, dict[str, list[float]]]:
    """Returns the costs in each round, by load and variant."""
    listener: dict[str, list[float]] = {name: [] for name in _VARIANTS}
    async with AsyncExitStack() as stack:
        variants = {name: await _start(stack, properties) for name, properties in _VARIANTS.items()}
        for variant in variants.values():
            await variant.play_listener()  # a warm-up
        names = list(variants)
        for number in range(ROUNDS):
            place = number % len(names)
            for name in names[place:] + names[:place]:
                await variants[name].play_own()
                listener[name].append(await variants[name].play_listener())
        return {"": {name: await each.own_costs() for name, each in variants.items()}, "_listener": listener}


async def _start(stack: AsyncExitStack, properties: Mapping[str, str]) -> _Variant:
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="laststand-benchmark-")))
    cluster = await stack.enter_async_context(
        BenchmarkCluster(
            directory,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            properties=tuple(properties.items()),
            kafka_clients=(KAFKA,),
        )
    )
    client = await stack.enter_async_context(
        load_client(
            cluster.processes.supervisor,
            directory,
            as_many_as_taken(records_that_fit(BATCH_SIZES[_SIZE])),
            session_timeout_ms=_SESSION_TIMEOUT_MS,
        )
    )
    await cluster.start()
    await cluster.wait_until(are_isrs_full, what="full ISRs")
    client.start(cluster.processes.direct_addresses())
    await client.await_ack()
    return _Variant(cluster, client)


# --- In the core alone ------------------------------------------------------------------------------------------------


def _core_costs() -> Iterator[float]:
    """Yields by how much processor time an authorizer lengthens a batch's way through all brokers, round by round."""
    plain, guarded = (
        _simulated(properties)
        for properties in (
            NodeProperties(min_insync_replicas=2),
            NodeProperties(
                min_insync_replicas=2, authorizer_class_name=STANDARD_AUTHORIZER, allow_everyone_if_no_acl_found=True
            ),
        )
    )
    for number in range(ROUNDS):
        used = {}
        for cluster in (plain, guarded) if number % 2 else (guarded, plain):
            started = time.process_time()
            for _ in range(_PRODUCES):
                _produce(cluster)
            used[cluster] = time.process_time() - started
        yield (used[guarded] - used[plain]) * 1e6 / _PRODUCES


def _simulated(properties: NodeProperties) -> SimulatedCluster:
    cluster = SimulatedCluster(brokers=len(BROKER_IDS), switches=Switches(), properties=properties)
    for broker_id in BROKER_IDS:
        cluster.processes.start(cluster.nodes[broker_id])
    brokers = cluster.controller.image.brokers
    cluster.run_until(lambda: len(brokers) == len(BROKER_IDS) and not any(each.fenced for each in brokers.values()))
    cluster.clients.create_topic(TOPIC, (BROKER_IDS,), {})
    cluster.run(1000)
    _produce(cluster)
    return cluster


def _produce(cluster: SimulatedCluster) -> None:
    size = BATCH_SIZES[_SIZE]
    records = size // RECORD_SIZE
    batch = BatchDescriptor(
        base_offset=Offset(0),
        last_offset=Offset(records - 1),
        leader_epoch=LeaderEpoch(0),
        crc=0,
        size=size,
        record_count=records,
    )
    partitions = (messages.ProducePartition(topic=TOPIC, partition=0, batch=batch),)
    request = messages.ProduceRequest(acks=Acks.ALL, timeout_ms=1000, partitions=partitions)
    request_id = cluster.clients.ask(BROKER_IDS[0], request, cause="benchmark")
    if not cluster.run_until(lambda: request_id in cluster.clients.answers):
        raise BenchmarkError("a batch was not acknowledged in virtual time")
