"""The time that a cluster takes from nothing to the first acknowledged record.

A producer waits already and asks for its topic every 100 ms, as Kafka's does. Then ``benchmarks.boot_launcher`` is
started, a Python process of its own, which starts 1 controller and 3 brokers and creates the topic (RF 3, min ISR 2).
``boot_s`` is the time from the start of that process to the first ack of acks=all that the producer sees, and
``boot_zookeeper_s`` the same of ``benchmarks.zookeeper_launcher``, with a ZooKeeper server in the controller's place.
"""

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.boot_launcher import SESSION_TIMEOUT_MS
from benchmarks.cluster import PARTITIONS, BenchmarkError
from benchmarks.figure import Figure
from benchmarks.load import Load, load_client
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.module_command import source_environment
from laststand.emulator.parent_death import die_with_parent

REPETITIONS: Final = 7
_LAUNCHERS: Final = {"boot_s": "benchmarks.boot_launcher", "boot_zookeeper_s": "benchmarks.zookeeper_launcher"}


def measure() -> Iterator[Figure]:
    """Yields ``boot_s`` and ``boot_zookeeper_s``."""
    for name, launcher in _LAUNCHERS.items():
        values = []
        for _ in range(REPETITIONS):
            with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
                values.append(asyncio.run(_boot(launcher, Path(directory))))
        yield Figure(name=name, unit="s", values=tuple(values))


async def _boot(module: str, directory: Path) -> float:
    load = Load(partitions=PARTITIONS[:1], rate=100, tick_ms=10)
    async with (
        Supervisor() as supervisor,
        load_client(supervisor, directory, load, session_timeout_ms=SESSION_TIMEOUT_MS) as client,
    ):
        started_ns = time.monotonic_ns()
        launcher = await asyncio.create_subprocess_exec(
            *die_with_parent((sys.executable, "-m", module, str(directory))),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **source_environment()},
        )
        try:
            if launcher.stdout is None or not (line := await launcher.stdout.readline()):
                raise BenchmarkError("the launcher ended")
            client.start(msgspec.json.decode(line, type=dict[int, str]))
            await client.await_ack()
            await client.stop()
        finally:
            if launcher.returncode is None:
                launcher.send_signal(signal.SIGTERM)
            await launcher.wait()
        return (client.completions()[0].acked_ns - started_ns) / 1e9
