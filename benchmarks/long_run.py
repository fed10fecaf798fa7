"""An hour on processes at 2,000 records a second, with retention, rolling segments and three faults a minute.

``laststand fuzz --one-run`` is played as a command. While it plays, memory of its processes and the bytes of its files
are sampled into a table, ``long-run.tsv`` in the working directory, which stays:

- ``broker_rss`` and the like: resident memory of the largest one of that kind;
- ``logs_mb``: files of all nodes, which retention bounds;
- ``evidence_mb``: events and history, which grow with the run.

``python -m benchmarks.long_run MINUTES`` plays a shorter one.
"""

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import psutil

from benchmarks.cluster import BenchmarkError
from benchmarks.figure import Figure
from laststand.emulator.module_command import module_command

MINUTES: Final = 60
RATE: Final = 2_000
TABLE: Final = "long-run.tsv"

_SAMPLE_S: Final = 5.0
_MEBIBYTE: Final = 1 << 20
_PROCESSES: Final[Mapping[str, str]] = {
    "broker_rss": "emulator.node broker",
    "controller_rss": "emulator.node controller",
    "client_rss": "emulator.client",
    "harness_rss": "laststand.cli fuzz",
}
"""Names of samples, with the part of a command line by which the sampled processes are known."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a run at a moment; sizes in MB."""

    seconds: float
    broker_rss: float
    controller_rss: float
    client_rss: float
    harness_rss: float
    logs_mb: float
    evidence_mb: float


def measure(minutes: int = MINUTES) -> Iterator[Figure]:
    """Yields the figures of one run.

    Raises:
        BenchmarkError: its verdict is not valid.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
        samples = tuple(_play(Path(directory), minutes))
    edge = max(1, len(samples) // 6)
    for name in (each for each in Sample.__struct_fields__ if each != "seconds"):
        values = [getattr(sample, name) for sample in samples]
        yield Figure(name=f"long_run_{name}", unit="MB", values=tuple(values))
        early, late = statistics.median(values[edge : 2 * edge]), statistics.median(values[-edge:])
        yield Figure(name=f"long_run_{name}_growth", unit="MB", values=(late - early,))


def _play(store: Path, minutes: int) -> Iterator[Sample]:
    options = ("--one-run", "--duration", f"{minutes}m", "--rate", str(RATE), "--out", str(store))
    begun = time.monotonic()
    with (
        Path(TABLE).open("w", encoding="utf-8") as table,
        subprocess.Popen(module_command("laststand.cli", "fuzz", *options)) as command,
    ):
        print(*Sample.__struct_fields__, sep="\t", file=table, flush=True)
        while command.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.wait(_SAMPLE_S)
            with contextlib.suppress(psutil.NoSuchProcess):
                sample = _sample(psutil.Process(command.pid), store, time.monotonic() - begun)
                if sample.broker_rss == 0:
                    continue
                print(*(f"{value:.1f}" for value in msgspec.structs.astuple(sample)), sep="\t", file=table, flush=True)
                yield sample
        if command.returncode != 0:
            raise BenchmarkError(f"the run ended with exit code {command.returncode}")


def _sample(command: psutil.Process, store: Path, seconds: float) -> Sample:
    largest = dict.fromkeys(_PROCESSES, 0.0)
    for process in (command, *command.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            line, rss = " ".join(process.cmdline()), process.memory_info().rss / _MEBIBYTE
            for name, part in _PROCESSES.items():
                if part in line:
                    largest[name] = max(largest[name], rss)
    return Sample(
        seconds=seconds,
        broker_rss=largest["broker_rss"],
        controller_rss=largest["controller_rss"],
        client_rss=largest["client_rss"],
        harness_rss=largest["harness_rss"],
        logs_mb=_size_mb(store, "nodes"),
        evidence_mb=_size_mb(store, "events") + _size_mb(store, "history*"),
    )


def _size_mb(store: Path, name: str) -> float:
    size = 0
    for found in {each.resolve() for each in store.glob(f"*/*/*/{name}")}:  # one name of a run is a link to the newest
        for file in (found, *found.rglob("*")):
            with contextlib.suppress(OSError):
                size += file.lstat().st_size if file.is_file() else 0
    return size / _MEBIBYTE


if __name__ == "__main__":
    for each in measure(int(sys.argv[1])):
        print(each.line(), flush=True)
