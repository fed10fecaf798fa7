"""``python -m benchmarks.boot_launcher DIRECTORY``: starts a cluster, and keeps it until SIGTERM.

Prints where its nodes will listen, as one line of JSON, before it starts them.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.cluster import BenchmarkCluster

SESSION_TIMEOUT_MS: Final = 9_000
"""Kafka's default."""


async def _launch(directory: Path) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with BenchmarkCluster(directory, session_timeout_ms=SESSION_TIMEOUT_MS, properties=()) as cluster:
        sys.stdout.buffer.write(msgspec.json.encode(cluster.processes.direct_addresses()) + b"\n")
        sys.stdout.flush()
        await cluster.start()
        await over.wait()


if __name__ == "__main__":
    asyncio.run(_launch(Path(sys.argv[1])))
