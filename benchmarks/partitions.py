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

from benchmarks.cluster import BROKER_IDS, CONTROLLER_ID, REPLICATION_FACTOR, BenchmarkCluster, BenchmarkError
from benchmarks.figure import Figure
from laststand.emulator.core import events
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.storage.line_file import line_files, read_lines

COUNTS: Final = (100, 500, 1_000, 2_000)

_SESSION_TIMEOUT_MS: Final = 2_000
_HEARTBEATS: Final = (("broker.heartbeat.interval.ms", "250"),)
_SETTLED_TIMEOUT_S: Final = 180.0
_IDLE_S: Final = 5.0
_POLL_S: Final = 0.5
_MEBIBYTE: Final = 1 << 20
_TOPIC: Final = "many"
_KILLED, _STOPPED = BROKER_IDS[1], BROKER_IDS[2]


class _Line(msgspec.Struct, frozen=True):
    """The part of an event's line that is read."""

    type: str
    time_ns: int
    topic: str | None = None
    partition: int | None = None
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

        async def await_full_isrs() -> None:
            await cluster.wait_until(partial(_are_isrs_full, count), what="full ISRs", timeout_s=_SETTLED_TIMEOUT_S)

        await cluster.start()
        created_ns = time.monotonic_ns()
        await cluster.create_topic(_TOPIC, replicas)
        created_s = await _await_leaders(directory, created_ns, count)
        await await_full_isrs()
        await asyncio.sleep(_IDLE_S)
        cpu_s = _cpu_s(cluster)
        await asyncio.sleep(_IDLE_S)
        idle_cpu = (_cpu_s(cluster) - cpu_s) / _IDLE_S
        rss = max(psutil.Process(cluster.pid(broker)).memory_info().rss for broker in BROKER_IDS)
        partitions = [TopicPartition(_TOPIC, partition) for partition in range(count)]
        led_by_killed = sum(cluster.partition(partition).leader == _KILLED for partition in partitions)
        killed_ns = time.monotonic_ns()
        await cluster.processes.kill_node(_KILLED)
        led_again_s = await _await_leaders(directory, killed_ns, led_by_killed)
        back_ns = time.monotonic_ns()
        await cluster.processes.start_node(_KILLED)
        await await_full_isrs()
        stopped_ns = time.monotonic_ns()
        await cluster.processes.stop_node(_STOPPED)
        ended_ns = time.monotonic_ns()
        cluster.check()
    fenced = [
        line
        for line in _lines(directory, events.BrokerFenced)
        if line.time_ns < killed_ns or line.broker_id not in (_KILLED, _STOPPED)
    ]
    return [
        ("created", "s", created_s),
        ("idle_cpu", "cores", idle_cpu),
        ("broker_rss", "MB", rss / _MEBIBYTE),
        ("led_again", "s", led_again_s - _SESSION_TIMEOUT_MS / 1e3),
        ("back", "s", (stopped_ns - back_ns) / 1e9),
        ("stop", "s", (ended_ns - stopped_ns) / 1e9),
        ("fenced", "brokers", len(fenced)),
    ]


async def _await_leaders(directory: Path, since_ns: int, count: int) -> float:
    """Waits until so many partitions got a leader since a moment; returns the seconds from then to the last of them.

    Raises:
        BenchmarkError: they did not.
    """
    try:
        async with asyncio.timeout(_SETTLED_TIMEOUT_S):
            while len(led := _led_since(directory, since_ns)) < count:  # noqa: ASYNC110  # other processes write it
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise BenchmarkError(f"{count} partitions got no leaders within {_SETTLED_TIMEOUT_S} s") from None
    return (max(led.values()) - since_ns) / 1e9


def _led_since(directory: Path, since_ns: int) -> dict[int | None, int]:
    """Returns when each partition's leader began to lead, of those that did since a moment."""
    leaders = _lines(directory, events.BecameLeader)
    return {line.partition: line.time_ns for line in leaders if line.topic == _TOPIC and line.time_ns > since_ns}


def _lines(directory: Path, kind: type[events.Event]) -> list[_Line]:
    """Returns the events of a kind that nodes have written."""
    files = line_files(directory / "events")
    return [line for file in files for line in _LINES.decode_lines(read_lines(file)) if line.type == kind.__name__]


def _cpu_s(cluster: BenchmarkCluster) -> float:
    times = [psutil.Process(cluster.pid(node)).cpu_times() for node in (CONTROLLER_ID, *BROKER_IDS)]
    return float(sum(each.user + each.system for each in times))


def _are_isrs_full(count: int, image: MetadataImage) -> bool:
    isrs = [state.isr for name, state in image.partitions.items() if name.topic == _TOPIC]
    return len(isrs) == count and all(len(isr) == REPLICATION_FACTOR for isr in isrs)
