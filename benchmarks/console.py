"""The speed at which ``laststand produce`` takes lines from standard input, as a user pipes them.

A standing cluster without proxies, RF 3, min ISR 2, 3 partitions on 3 leaders, acks=all, idempotent, default options.
For lines of 100 bytes and of 1 KB, 200 MB are piped in, ``REPETITIONS`` times. CPU time is that of the command alone,
from its start to its end; where other things run on the machine, it is the figure to compare.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.cluster import BenchmarkError
from benchmarks.figure import Figure
from laststand.emulator.module_command import source_environment

INPUT_BYTES: Final = 200 << 20
LINE_BYTES: Final = {"100b": 100, "1k": 1024}
"""Bytes of a line with its end, by the name that its figures carry."""

REPETITIONS: Final = 3

_COMMAND_TIMEOUT_S: Final = 300.0
_MEBIBYTE: Final = 1 << 20
_TOPIC: Final = "bench"


def measure() -> Iterator[Figure]:
    """Yields the figures, line length by line length.

    Raises:
        BenchmarkError: a command failed.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as name:
        directory = Path(name)
        _laststand(directory, "up", "--no-proxies")
        try:
            create = ("topics", "create", _TOPIC, "--partitions", "3", "--replication-factor", "3")
            _laststand(directory, *create, "--config", "min.insync.replicas=2")
            for label, line_bytes in LINE_BYTES.items():
                path = directory / "lines"
                path.write_bytes((b"x" * (line_bytes - 1) + b"\n") * (INPUT_BYTES // line_bytes))
                yield from figures(f"console_{label}", [_pipe(directory, path) for _ in range(REPETITIONS)])
        finally:
            _laststand(directory, "down", "--as-is")


def figures(prefix: str, runs: list[tuple[float, float]]) -> Iterator[Figure]:
    """Yields throughput and CPU time of runs, each given as seconds on the clock and of CPU time."""
    size = INPUT_BYTES / _MEBIBYTE
    yield Figure(name=f"{prefix}_throughput", unit="MB/s", values=tuple(size / wall_s for wall_s, _ in runs))
    yield Figure(name=f"{prefix}_producer_cpu", unit="us/MB", values=tuple(cpu_s * 1e6 / size for _, cpu_s in runs))


def _pipe(directory: Path, path: Path) -> tuple[float, float]:
    with subprocess.Popen(("cat", str(path)), stdout=subprocess.PIPE) as source:
        started = time.monotonic()
        command = subprocess.Popen(
            _command("produce", _TOPIC),
            stdin=source.stdout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=_environment(),
        )
        _, status, usage = os.wait4(command.pid, 0)
        wall_s = time.monotonic() - started
        command.returncode = os.waitstatus_to_exitcode(status)
    if command.returncode != 0:
        raise BenchmarkError(f"laststand produce ended with {command.returncode}")
    return wall_s, usage.ru_utime + usage.ru_stime


def _laststand(directory: Path, *arguments: str) -> None:
    command = _command(*arguments)
    done = subprocess.run(
        command,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
        capture_output=True,
        text=True,
        cwd=directory,
        env=_environment(),
    )
    if done.returncode != 0:
        raise BenchmarkError(f"laststand {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")


def _environment() -> dict[str, str]:
    return {**os.environ, **source_environment()}


def _command(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "laststand.cli", *arguments)
