"""A topic of many partitions on processes: RF 3 on three brokers, so that each leads a third of them.

``broker.session.timeout.ms`` 2000 and heartbeats every 250 ms, as in bundled scenarios. By the nodes' own events:

- ``created``: from the request to the last leader that leads;
- ``led_again``: from SIGKILL of a broker to the last leader that leads in its place, less the session timeout;
- ``fenced``: brokers that lost their session without a fault.

By the clock of the benchmark: ``back``, from the restart of the killed broker to full ISRs, and ``stop``, from SIGTERM
of another broker to the end of its process.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import psutil

from benchmarks.cluster import BROKER_IDS, CONTROLLER_ID, REPLICATION_FACTOR, BenchmarkCluster
from benchmarks.figure import Figure
from laststand.emulator.core import events
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId
from laststand.emulator.storage.line_file import line_files, read_lines

COUNTS: Final = (100, 500, 1_000, 2_000)

_SESSION_TIMEOUT_MS: Final = 2_000
_HEARTBEATS: Final = (("broker.heartbeat.interval.ms", "250"),)
_SETTLED_TIMEOUT_S: Final = 180.0
_IDLE_S: Final = 5.0
_MEBIBYTE: Final = 1 << 20
_TOPIC: Final = "many"
_KILLED, _STOPPED = BROKER_IDS[1], BROKER_IDS[2]


class _Line(msgspec.Struct, frozen=True):
    """The part of an event's line that is read."""

    type: str
    time_ns: int
    topic: str | None = None
    broker_id: int | None = None


_LINES: Final = msgspec.json.Decoder(_Line)


def measure() -> Iterator[Figure]:
    """Yields the figures, one number of partitions after the other.

    Raises:
        BenchmarkError: a cluster did not settle, or a node died.
    """
    for count in COUNTS:
        with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
            for name, unit, value in asyncio.run(_play(Path(directory), count)):
                yield Figure(name=f"partitions_{count}_{name}", unit=unit, values=(value,))


async def _play(directory: Path, count: int) -> list[tuple[str, str, float]]:
    replicas = tuple(
        tuple(BROKER_IDS[(partition + replica) % len(BROKER_IDS)] for replica in range(REPLICATION_FACTOR))
        for partition in range(count)
    )
    async with BenchmarkCluster(directory, session_timeout_ms=_SESSION_TIMEOUT_MS, properties=_HEARTBEATS) as cluster:
        await cluster.start()
        created_ns = time.monotonic_ns()
        await cluster.create_topic(_TOPIC, replicas)
        await cluster.wait_until(
            partial(_are_in_isrs, BROKER_IDS, count), what="full ISRs", timeout_s=_SETTLED_TIMEOUT_S
        )
        await asyncio.sleep(_IDLE_S)
        cpu_s = _cpu_s(cluster)
        await asyncio.sleep(_IDLE_S)
        idle_cpu = (_cpu_s(cluster) - cpu_s) / _IDLE_S
        rss = max(psutil.Process(cluster.pid(broker)).memory_info().rss for broker in BROKER_IDS)
        killed_ns = time.monotonic_ns()
        await cluster.processes.kill_node(_KILLED)
        await cluster.wait_until(partial(_are_led_without, _KILLED), what="new leaders", timeout_s=_SETTLED_TIMEOUT_S)
        await asyncio.sleep(_IDLE_S)
        back_ns = time.monotonic_ns()
        await cluster.processes.start_node(_KILLED)
        await cluster.wait_until(
            partial(_are_in_isrs, BROKER_IDS, count), what="full ISRs", timeout_s=_SETTLED_TIMEOUT_S
        )
        stopped_ns = time.monotonic_ns()
        await cluster.processes.stop_node(_STOPPED)
        stop_s = (time.monotonic_ns() - stopped_ns) / 1e9
        await cluster.wait_until(partial(_are_led_without, _STOPPED), what="new leaders", timeout_s=_SETTLED_TIMEOUT_S)
        cluster.check()
    lines = [line for file in line_files(directory / "events") for line in _LINES.decode_lines(read_lines(file))]
    leading = [line.time_ns for line in lines if line.type == events.BecameLeader.__name__ and line.topic == _TOPIC]
    fenced = [
        line
        for line in lines
        if line.type == events.BrokerFenced.__name__
        and (line.time_ns < killed_ns or line.broker_id not in (_KILLED, _STOPPED))
    ]
    led_ns = max(each for each in leading if each < killed_ns)
    led_again_ns = max(each for each in leading if killed_ns < each < back_ns)
    return [
        ("created", "s", (led_ns - created_ns) / 1e9),
        ("idle_cpu", "cores", idle_cpu),
        ("broker_rss", "MB", rss / _MEBIBYTE),
        ("led_again", "s", (led_again_ns - killed_ns) / 1e9 - _SESSION_TIMEOUT_MS / 1e3),
        ("back", "s", (stopped_ns - back_ns) / 1e9),
        ("stop", "s", stop_s),
        ("fenced", "brokers", len(fenced)),
    ]


def _cpu_s(cluster: BenchmarkCluster) -> float:
    times = [psutil.Process(cluster.pid(node)).cpu_times() for node in (CONTROLLER_ID, *BROKER_IDS)]
    return float(sum(each.user + each.system for each in times))


def _are_in_isrs(brokers: tuple[BrokerId, ...], count: int, image: MetadataImage) -> bool:
    partitions = [state for name, state in image.partitions.items() if name.topic == _TOPIC]
    return len(partitions) == count and all({*brokers} <= {*state.isr} for state in partitions)


def _are_led_without(broker: BrokerId, image: MetadataImage) -> bool:
    return all(state.leader not in (None, broker) for state in image.partitions.values())
