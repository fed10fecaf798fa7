"""Speed and memory of verification: one large log, and a hundred small ones beside one.

``oracle_100_runs_ratio`` compares whole processes (``laststand verify``), the start of Spark included, as a user waits
for them; the other figures are those of one verification in a session that is already there.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.figure import Figure
from benchmarks.generate_log import generate_run
from emulator.verification.session import SparkSessionStarter
from emulator.verification.verdict import Verdict
from emulator.verification.verify import verify_runs

EVENTS: Final = 1_000_000
SMALL_EVENTS: Final = 300
SMALL_RUNS: Final = 100
REPETITIONS: Final = 3
_KIB_PER_MB: Final = 1024


def measure() -> Iterator[Figure]:
    """Yields the oracle's figures. Main thread only: it starts Spark.

    Raises:
        RuntimeError: a generated run is not valid, so the figure would mean nothing.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-bench-") as name:
        directory = Path(name)
        yield from _measure_large(directory)
        yield _measure_many(directory)


def _measure_large(directory: Path) -> Iterator[Figure]:
    run = directory / "large"
    generate_run(run, events=EVENTS)
    lines = sum(path.read_bytes().count(b"\n") for path in (run / "events").iterdir())
    starter = SparkSessionStarter(log_path=directory / "spark.log")
    speeds = []
    try:
        session = starter.session()
        for _ in range(REPETITIONS):
            begin = time.perf_counter()
            (report,) = verify_runs([run], spark=session)
            speeds.append(lines / (time.perf_counter() - begin))
            if report.verdict is not Verdict.VALID:
                raise RuntimeError(f"the generated run is {report.verdict.value}: {report.unknown_reasons}")
        memory = _peak_mb("self") + (_peak_mb(str(starter.jvm_pid)))
    finally:
        starter.stop()
    yield Figure(name="oracle_events_per_s", unit="events/s", values=tuple(speeds))
    yield Figure(name="oracle_peak_memory_mb", unit="MB", values=(memory,))


def _measure_many(directory: Path) -> Figure:
    runs = [directory / f"small-{number}" for number in range(SMALL_RUNS)]
    for run in runs:
        generate_run(run, events=SMALL_EVENTS)
    ratios = []
    for _ in range(REPETITIONS):
        one = _verify_seconds(runs[:1])
        ratios.append(_verify_seconds(runs) / one)
    return Figure(name="oracle_100_runs_ratio", unit="x", values=tuple(ratios))


def _verify_seconds(runs: list[Path]) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "emulator.cli", "verify", *map(str, runs)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def _peak_mb(process: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / _KIB_PER_MB
    raise RuntimeError(f"process {process} has no peak of memory")
