"""The time that a partition is without a leader beyond what the session timeout explains.

RF 3, min ISR 2, acks=all, ``broker.session.timeout.ms`` 2000, heartbeats every 250 ms. The leader is killed with
SIGKILL; ``failover_s`` is the time from then to the first ack of a record made after it, less the session timeout. It
may be negative: the session began with the last heartbeat, not with the kill. The killed broker comes back and catches
up before the next repetition.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.cluster import PARTITIONS, BenchmarkCluster, BenchmarkError, are_isrs_full
from benchmarks.figure import Figure
from benchmarks.load import Completion, Load, load_client
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId

REPETITIONS: Final = 7

_SESSION_TIMEOUT_MS: Final = 2_000
_HEARTBEAT_MS: Final = 250
_RATE: Final = 200
_SETTLE_S: Final = 0.5
_PARTITION: Final = PARTITIONS[0]


def measure() -> Iterator[Figure]:
    """Yields ``failover_s``."""
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
        kills, completions = asyncio.run(_fail_over(Path(directory)))
    values = tuple(first_ack_after(kill_ns, completions) - _SESSION_TIMEOUT_MS / 1000 for kill_ns in kills)
    yield Figure(name="failover_s", unit="s", values=values)


async def _fail_over(directory: Path) -> tuple[list[int], list[Completion]]:
    load = Load(partitions=(_PARTITION,), rate=_RATE, tick_ms=1000 // _RATE, buffer_records=10_000)
    heartbeats = (("broker.heartbeat.interval.ms", str(_HEARTBEAT_MS)),)
    kills: list[int] = []
    async with (
        BenchmarkCluster(directory, session_timeout_ms=_SESSION_TIMEOUT_MS, properties=heartbeats) as cluster,
        load_client(cluster.processes.supervisor, directory, load, session_timeout_ms=_SESSION_TIMEOUT_MS) as client,
    ):
        await cluster.start()
        client.start(cluster.processes.direct_addresses())
        await client.await_ack()
        for _ in range(REPETITIONS):
            await cluster.wait_until(are_isrs_full, what="full ISRs")
            await asyncio.sleep(_SETTLE_S)
            leader = cluster.partition(_PARTITION).leader
            if leader is None:
                raise BenchmarkError("a full ISR without a leader")
            kills.append(time.monotonic_ns())
            await cluster.processes.kill_node(leader)
            await cluster.wait_until(partial(_is_led_by_another, leader), what="new leader")
            await client.await_ack()
            await cluster.processes.start_node(leader)
        await cluster.wait_until(are_isrs_full, what="full ISRs")
        await client.stop()
        return kills, client.completions()


def _is_led_by_another(old: BrokerId, image: MetadataImage) -> bool:
    return image.partitions[_PARTITION].leader not in (None, old)


def first_ack_after(kill_ns: int, completions: list[Completion]) -> float:
    """Returns the seconds from a kill to the first ack of a record that was made after it.

    Raises:
        BenchmarkError: there is none.
    """
    acks = [each.acked_ns for each in completions if each.invoked_ns > kill_ns]
    if not acks:
        raise BenchmarkError("nothing was acknowledged after a kill")
    return (min(acks) - kill_ns) / 1e9
