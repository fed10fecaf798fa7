"""The time that Apache Kafka takes until three brokers may lead, and the memory that each of them takes then.

1 controller and 3 brokers, started as for ``--driver kafka``, without proxies and without the library that records
syncs. ``kafka_boot_s`` is the time from the first process to the moment when the metadata log has every broker
unfenced, ``kafka_broker_rss`` the resident memory of each broker then. The version is the newest that is installed.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import psutil

from benchmarks.cluster import BROKER_IDS, CONTROLLER_ID, BenchmarkError, are_all_active
from benchmarks.figure import Figure
from laststand.chaos.kafka.metadata import KafkaMetadata
from laststand.chaos.kafka.program import judged_as, kafka_program, rules_of_release
from laststand.chaos.kafka.witness import NodeWitness
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.kafka_cluster import KafkaCluster
from laststand.emulator.cluster.kafka_distribution import KafkaProgram
from laststand.emulator.cluster.layout import ClusterLayout
from laststand.emulator.cluster.link_messages import LinkMessages
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.switches import era_switches
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.channels import Link
from laststand.emulator.rpc.frame_proxy import FrameProxy
from laststand.emulator.rpc.interception import Interceptor

REPETITIONS: Final = 5

_TIMEOUT_S: Final = 60.0


def measure() -> Iterator[Figure]:
    """Yields ``kafka_boot_s`` and ``kafka_broker_rss``."""
    try:
        kafka = kafka_program(None)
        boots = [asyncio.run(_boot(kafka)) for _ in range(REPETITIONS)]
    except EmulatorError as error:
        raise BenchmarkError(str(error)) from error
    yield Figure(name="kafka_boot_s", unit="s", values=tuple(seconds for seconds, _ in boots))
    resident = tuple(size / 2**20 for _, sizes in boots for size in sizes)
    yield Figure(name="kafka_broker_rss", unit="MB", values=resident)


async def _boot(kafka: KafkaProgram) -> tuple[float, list[int]]:
    """Returns how many seconds a start took, and how many bytes of memory each broker has."""
    started_ns = time.monotonic_ns()
    async with running_kafka(kafka) as cluster:
        took_ns = time.monotonic_ns() - started_ns
        pids = [cluster.supervisor.children[str(broker_id)].pid for broker_id in BROKER_IDS]
        return took_ns / 1e9, [psutil.Process(pid).memory_info().rss for pid in pids]


@asynccontextmanager
async def running_kafka(kafka: KafkaProgram) -> AsyncIterator[KafkaCluster]:
    """Starts a cluster, and yields it when all three brokers are unfenced.

    Raises:
        BenchmarkError: they were not in time.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
        layout = ClusterLayout(
            run="kafka",
            directory=Path(directory),
            controller_ids=(CONTROLLER_ID,),
            broker_ids=BROKER_IDS,
            switches=era_switches(judged_as(kafka.distribution)),
            properties=(),
            toxiproxy=None,
        )
        witness, changed = NodeWitness(layout), asyncio.Event()
        metadata = KafkaMetadata(layout, witness=witness, has_ledgers=False, on_change=changed.set)
        async with _cluster(layout, kafka, witness) as cluster:
            following = asyncio.create_task(metadata.run())
            starting = asyncio.create_task(cluster.start())
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    while not are_all_active(metadata.image):
                        changed.clear()
                        await changed.wait()
                    await starting
            except TimeoutError:
                raise BenchmarkError(f"no three active brokers within {_TIMEOUT_S:g} s") from None
            finally:
                following.cancel()
                starting.cancel()
            yield cluster


def _cluster(layout: ClusterLayout, kafka: KafkaProgram, witness: NodeWitness) -> KafkaCluster:
    return KafkaCluster(
        layout,
        kafka=kafka,
        rules_of=rules_of_release,
        properties={},
        sync_shim=None,
        messages=LinkMessages((), make_proxy=_no_proxy, record=witness.intercepted),
        on_start=witness.started,
        on_stop=witness.stopping,
        on_end=lambda node_id, incarnation, end: witness.ended(node_id, incarnation, end.cause),
        on_unexpected_end=_ended,
    )


def _no_proxy(link: Link[NodeId], _address: str, _interceptor: Callable[[], Interceptor]) -> FrameProxy:
    raise BenchmarkError(f"nothing is done to messages, nor to those on {link}")


def _ended(name: str, end: ProcessEnd) -> None:
    raise BenchmarkError(f"{name} ended unasked: {' '.join(end.stderr_tail)}")
