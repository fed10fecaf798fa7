"""The time that a cluster of three controllers is without an active one.

The active controller is killed with SIGKILL; the figures are the times from then to the answer of the first request
that another one accepts, here for a new topic. ``controller_failover_s`` has Kafka's times: a follower gives a silent
leader up after ``controller.quorum.fetch.timeout.ms``, 2000, twice the election timeout. In
``controller_failover_short_fetch_s`` both are 1000. Whoever was killed comes back, and catches up while the others are
asked for nothing, before the next repetition.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.cluster import BROKER_IDS, BenchmarkCluster
from benchmarks.figure import Figure

REPETITIONS: Final = 9

_CONTROLLERS: Final = 3
_SESSION_TIMEOUT_MS: Final = 9_000
_SETTLE_S: Final = 1.5
_SHORT: Final = (("controller.quorum.fetch.timeout.ms", "1000"), ("controller.quorum.election.timeout.ms", "1000"))


def measure() -> Iterator[Figure]:
    """Yields both figures."""
    yield Figure(name="controller_failover_s", unit="s", values=_measured(()))
    yield Figure(name="controller_failover_short_fetch_s", unit="s", values=_measured(_SHORT))


def _measured(properties: tuple[tuple[str, str], ...]) -> tuple[float, ...]:
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
        return tuple(asyncio.run(_fail_over(Path(directory), properties)))


async def _fail_over(directory: Path, properties: tuple[tuple[str, str], ...]) -> list[float]:
    waits: list[float] = []
    async with BenchmarkCluster(
        directory, session_timeout_ms=_SESSION_TIMEOUT_MS, properties=properties, controllers=_CONTROLLERS
    ) as cluster:
        await cluster.start()
        for repetition in range(REPETITIONS):
            await asyncio.sleep(_SETTLE_S)
            active = cluster.active_controller
            killed_ns = time.monotonic_ns()
            await cluster.processes.kill_node(active)
            await cluster.create_topic(f"after-{repetition}", (BROKER_IDS,))
            waits.append((time.monotonic_ns() - killed_ns) / 1e9)
            await cluster.processes.start_node(active)
        cluster.check()
    return waits
