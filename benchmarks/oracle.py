"""Speed and memory of verification: a large log, two runs as in the demo; ``laststand verify``; the demo as a whole.

The latter two are whole processes as a user waits for them, the start of Spark included, wall and CPU time of all their
processes. The figures before are those of one verification in a session that is already there, as a scenario finds it
when its clusters have stopped.
"""

import contextlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import psutil

from benchmarks.figure import Figure
from benchmarks.generate_log import generate_run
from laststand.emulator.storage.file_digest import content_of
from laststand.emulator.verification.spark.session import SparkSessionStarter
from laststand.emulator.verification.verdict.report import Verdict
from laststand.emulator.verification.verify import rehearse, verify_runs
from tests.verification.standalone_cluster import Cluster

EVENTS: Final = 1_000_000
LARGE_EVENTS: Final = (10_000_000, 50_000_000)
MANY_PARTITIONS: Final = 2_000
SMALL_EVENTS: Final = 4_000
"""About as many as each run of ``make demo`` has; of one partition, too."""

SMALL_RUNS: Final = 100
DEMO_RUNS: Final = 2
DEMO_SCENARIO: Final = "kip-966/last-replica-standing"
DEMO_ERAS: Final = ("kafka-3.9", "kip-966")
"""As ``make demo`` has them."""

REPETITIONS: Final = 3
_CLUSTER_OPTIONS: Final = (
    *("--conf", "spark.executor.memory=1g"),
    *("--conf", "spark.cores.max=2"),
    *("--conf", "spark.scheduler.minRegisteredResourcesRatio=1.0"),
)
_KIB_PER_MB: Final = 1024
_BYTES_PER_MB: Final = 1 << 20
_SAMPLED_EVERY_S: Final = 0.2


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of the clock, and of all cores together; the most memory that all processes had at a time."""

    wall_s: float
    cpu_s: float
    memory_mb: float


def measure() -> Iterator[Figure]:
    """Yields the oracle's figures. Main thread only: it starts Spark.

    Raises:
        RuntimeError: a generated run is not valid, so the figure would mean nothing.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-bench-") as name:
        directory = Path(name)
        runs = [directory / f"small-{number}" for number in range(SMALL_RUNS)]
        for run in runs:
            generate_run(run, events=SMALL_EVENTS, partitions=1)
        yield from _measure_session(directory, runs[:DEMO_RUNS])
        yield from _measure_demo(directory / "store")
        yield from _measure_command(runs, directory / "large")
        yield from _measure_large(directory / "very-large")


def _measure_session(directory: Path, demo: list[Path]) -> Iterator[Figure]:
    large = directory / "large"
    generate_run(large, events=EVENTS)
    lines = sum(content_of(path).lines for path in (large / "events").iterdir())
    starter = SparkSessionStarter(log_path=directory / "spark.log", rehearsal=rehearse)
    first, speeds = [], []
    try:
        session = starter.session()
        for _ in range(REPETITIONS):
            begin = time.perf_counter()
            reports = verify_runs(demo, spark=session)
            first.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            reports += verify_runs([large], spark=session)
            speeds.append(lines / (time.perf_counter() - begin))
            for report in reports:
                if report.verdict is not Verdict.VALID:
                    raise RuntimeError(f"the generated run is {report.verdict.value}: {report.unknown_reasons}")
        memory = sum(
            _peak_mb(process.pid) for process in (psutil.Process(), *psutil.Process().children(recursive=True))
        )
    finally:
        starter.stop()
    yield Figure(name="oracle_demo_verdict_s", unit="s", values=tuple(first))
    yield Figure(name="oracle_events_per_s", unit="events/s", values=tuple(speeds))
    yield Figure(name="oracle_peak_memory_mb", unit="MB", values=(memory,))


def _measure_demo(store: Path) -> Iterator[Figure]:
    eras = [word for era in DEMO_ERAS for word in ("--era", era)]
    costs = [cost_of("run", DEMO_SCENARIO, *eras, "--out", str(store)) for _ in range(REPETITIONS)]
    yield Figure(name="demo_s", unit="s", values=tuple(cost.wall_s for cost in costs))
    yield Figure(name="demo_cpu_s", unit="s", values=tuple(cost.cpu_s for cost in costs))


def _measure_command(runs: list[Path], large: Path) -> Iterator[Figure]:
    _verify(runs[:1])  # leaves the class archive that every other one finds
    one, ratios = [], []
    for _ in range(REPETITIONS):
        one.append(_verify(runs[:1]))
        ratios.append(_verify(runs).wall_s / one[-1].wall_s)
    yield Figure(name="oracle_verify_s", unit="s", values=tuple(cost.wall_s for cost in one))
    yield Figure(name="oracle_verify_cpu_s", unit="s", values=tuple(cost.cpu_s for cost in one))
    yield Figure(name="oracle_100_runs_ratio", unit="x", values=tuple(ratios))
    here = [cost_of("verify", "--judge", "here", str(runs[0])) for _ in range(REPETITIONS)]
    yield Figure(name="oracle_verify_here_s", unit="s", values=tuple(cost.wall_s for cost in here))
    yield Figure(name="oracle_verify_here_cpu_s", unit="s", values=tuple(cost.cpu_s for cost in here))
    costs = [_verify([large]) for _ in range(REPETITIONS)]
    yield from _costs("oracle_verify_1m", costs)


def _measure_large(path: Path) -> Iterator[Figure]:
    for events in LARGE_EVENTS:
        generate_run(path, events=events)
        costs = [_verify([path]) for _ in range(REPETITIONS)]
        shutil.rmtree(path)
        yield from _costs(f"oracle_verify_{events // 1_000_000}m", costs)


def measure_partitions() -> Iterator[Figure]:
    """Yields the cost of a verdict on many partitions, by Spark and in one process.

    Raises:
        RuntimeError: a verification failed.
    """
    with tempfile.TemporaryDirectory(prefix="laststand-bench-") as name:
        run = Path(name) / "many"
        generate_run(run, events=EVENTS, partitions=MANY_PARTITIONS)
        for judge, words in (("", ()), ("_here", ("--judge", "here"))):
            costs = [cost_of("verify", *words, str(run)) for _ in range(REPETITIONS)]
            yield from _costs(f"oracle_verify_2000_partitions{judge}", costs)


def measure_cluster() -> Iterator[Figure]:
    """Yields the cost of verdicts by a standalone Spark cluster of two workers with a core each.

    Raises:
        RuntimeError: a verification failed.
    """
    for events in LARGE_EVENTS:
        with tempfile.TemporaryDirectory(prefix="laststand-bench-") as name:
            directory = Path(name)
            generate_run(directory / "run", events=events)
            cluster = Cluster(directory, java_options="-XX:+UseSerialGC")
            try:
                for worker in ("first", "second"):
                    cluster.add_worker(worker, memory="1200m")
                command = ("verify", str(directory / "run"), "--master", cluster.master, *_CLUSTER_OPTIONS)
                costs = [cost_of(*command, beside=cluster.processes) for _ in range(REPETITIONS)]
            finally:
                cluster.stop()
        yield from _costs(f"oracle_cluster_{events // 1_000_000}m", costs)


def _costs(name: str, costs: list[Cost]) -> Iterator[Figure]:
    yield Figure(name=f"{name}_s", unit="s", values=tuple(cost.wall_s for cost in costs))
    yield Figure(name=f"{name}_cpu_s", unit="s", values=tuple(cost.cpu_s for cost in costs))
    yield Figure(name=f"{name}_memory_mb", unit="MB", values=tuple(cost.memory_mb for cost in costs))


def _verify(runs: list[Path]) -> Cost:
    return cost_of("verify", *map(str, runs))


def cost_of(*arguments: str, beside: Sequence[psutil.Process] = ()) -> Cost:
    """Returns the cost of a command.

    Args:
        arguments: of ``laststand``.
        beside: processes that work for it, and all below them.

    Raises:
        RuntimeError: it failed.
    """
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "laststand.cli", *arguments]
    idle = _cpu_times(beside)
    others, memory = dict(idle), 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        verification = psutil.Process(process.pid)
        while not _has_ended(process):
            memory = max(memory, sum(map(_memory_mb, (verification, *beside))))
            others.update(_cpu_times(beside))
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[2:5])} ... ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(
        wall_s=time.perf_counter() - begin,
        cpu_s=after.ru_utime
        + after.ru_stime
        - before.ru_utime
        - before.ru_stime
        + sum(others.values())
        - sum(idle.values()),
        memory_mb=memory,
    )


def _cpu_times(roots: Sequence[psutil.Process]) -> dict[int, float]:
    """Returns the processor time of processes and all below them so far, by their ids."""
    found: dict[int, float] = {}
    for root in roots:
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                found[process.pid] = times.user + times.system
    return found


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=_SAMPLED_EVERY_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _memory_mb(root: psutil.Process) -> float:
    """Returns the resident memory of a process and all below it; pages that forked processes share count for each."""
    resident = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                resident += process.memory_info().rss
    return resident / _BYTES_PER_MB


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / _KIB_PER_MB
    raise RuntimeError(f"process {pid} has no peak of memory")
