"""A standalone Spark cluster on loopback judges as this process does, wherever its executors have their files."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from laststand.emulator.verification.spark.java import find_java
from laststand.emulator.verification.verdict.forms import write_verdict
from laststand.emulator.verification.verify import verify_runs
from tests.verification.run_builder import healthy, last_replica_standing
from tests.verification.standalone_cluster import QUICK, SPARK_HOME, Cluster

pytestmark = pytest.mark.spark

_COMMAND_TIMEOUT_S: Final = 240
_SUBMITTED: Final = Path(__file__).parents[2] / "docs/examples/spark/verify.py"


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver's directory for temporary files, which the second worker does not see."""
    return tmp_path_factory.mktemp("hidden")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, hidden: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.add_worker("seeing")
        started.add_worker("blind", prefix=_without(hidden))
        yield started
    finally:
        started.stop()


def _without(directory: Path) -> tuple[str, ...]:
    """The start of a command that runs with another, empty directory in place of one."""
    unshare = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("this system lets nobody hide a directory from a process")
    return (*unshare, "sh", "-c", f'mount -t tmpfs none "{directory}" && exec "$@"', "sh")


def laststand(*arguments: str, temporary: Path, python: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(temporary), "PYSPARK_PYTHON": python}
    command = [sys.executable, "-m", "laststand.cli", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=_COMMAND_TIMEOUT_S
    )


SMALL: Final = ("--conf", "spark.executor.memory=500m")

ONE_WORKER: Final = (*SMALL, "--conf", "spark.cores.max=1")
"""An executor takes as much to start as a test's work; so there are two where the test is about that."""

BOTH_WORKERS: Final = (
    *SMALL,
    *("--conf", "spark.cores.max=2"),
    *("--conf", "spark.scheduler.minRegisteredResourcesRatio=1.0"),
    *("--conf", "spark.scheduler.maxRegisteredResourcesWaitingTime=60s"),
)
"""Nothing is dealt out before each worker has its executor."""


def base_python() -> str:
    """The Python that this environment was made from, which has none of its packages."""
    return str(Path(os.path.realpath(sys.executable)))


@pytest.mark.timeout(500)
def test_a_cluster_without_the_code_writes_the_verdicts_that_this_process_writes(
    cluster: Cluster, hidden: Path, tmp_path: Path
) -> None:
    runs = [healthy(tmp_path / str(number) / "1").finish() for number in range(4)]
    runs.append(last_replica_standing(tmp_path / "lost" / "1", era="kafka-3.9").finish())
    for run, report in zip(runs, verify_runs(runs, spark=None), strict=True):
        write_verdict(report, run)
    expected = [(run / "verdict.json").read_bytes() for run in runs]
    assert json.loads(expected[-1])["verdict"] == "violation"
    for run in runs:
        (run / "verdict.json").unlink()
    unseen = [healthy(hidden / str(number) / "1").finish() for number in range(6)]
    # Runs at URIs are copied to the work directory, which both workers see: the driver's own for temporary files, one
    # of them does not.
    away, work = tmp_path / "away", tmp_path / "work"
    healthy(away / "kept" / "1").finish()
    last_replica_standing(away / "lost" / "1", era="kafka-3.9").finish()
    uris = [f"viewfs://evidence/runs/{name}/1" for name in ("kept", "lost")]
    mount = f"spark.hadoop.fs.viewfs.mounttable.evidence.link./runs={away.as_uri()}"
    options = ("--master", cluster.master, *BOTH_WORKERS, "--conf", mount, "--work-dir", str(work))
    result = laststand("verify", *map(str, [*runs, *unseen]), *uris, *options, temporary=hidden, python=base_python())
    assert result.returncode == 1, result.stderr
    assert [(run / "verdict.json").read_bytes() for run in runs] == expected
    executors = [path.parent.parent.parent.name for path in cluster.directory.rglob("laststand-code.zip")]
    assert sorted(set(executors)) == ["blind", "seeing"]
    # What the second worker was to judge of these it could not find, and says so.
    doubts = [json.loads((run / "verdict.json").read_bytes())["doubts"] for run in unseen]
    assert {len(each) for each in doubts} == {0, 1}
    assert all("sees no file of it" in doubt["sentence"] for each in doubts for doubt in each)
    verdicts = [json.loads((away / name / "1/verdict.json").read_bytes()) for name in ("kept", "lost")]
    assert [(each["verdict"], each["run"]) for each in verdicts] == [("valid", uris[0]), ("violation", uris[1])]
    assert [path.name for path in work.iterdir()] == ["spark.log"]


def without_speed(told: str) -> str:
    """The first line has speed and memory."""
    told = re.sub(r"schedules \(.*?\)", "schedules", told)
    return re.sub(r", [0-9]+ MB,", "", told)


def kill_executor_at_work(worker: psutil.Process, work: Path, sweep: subprocess.Popen[str]) -> str:
    """Kills a worker's executor while it plays seeds; returns what it had said by then."""
    deadline = time.monotonic() + _COMMAND_TIMEOUT_S
    before = set(work.glob("app-*/*/stderr"))
    while time.monotonic() < deadline and sweep.poll() is None:
        # The stages before are for the probe, and for a wave that is over at once.
        for log in set(work.glob("app-*/*/stderr")) - before:
            if "in stage 2.0" in log.read_text():
                for process in worker.children(recursive=True):
                    if any("CoarseGrainedExecutorBackend" in word for word in process.cmdline()):
                        process.kill()
                        process.wait(timeout=30)
                        return log.read_text()
        time.sleep(0.02)
    raise AssertionError("no executor plays seeds")


@pytest.mark.timeout(500)
def test_the_seeds_of_an_executor_that_is_killed_are_played_again(cluster: Cluster, hidden: Path) -> None:
    # That a sweep on Spark finds what one in processes finds is asked in ``test_spark_sweep``.
    sweep = ("simulate", "--seeds", "1..60", "--profile", "elections", "--keep-going")
    expected = laststand(*sweep, temporary=hidden, python=sys.executable)
    command = [sys.executable, "-m", "laststand.cli", *sweep, "--master", cluster.master, *BOTH_WORKERS]
    environment = {**os.environ, "TMPDIR": str(hidden), "PYSPARK_PYTHON": base_python()}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        told = kill_executor_at_work(cluster.workers["seeing"], cluster.directory / "seeing", process)
        found, errors = process.communicate(timeout=_COMMAND_TIMEOUT_S)
    begun, done = (set(re.findall(rf"{verb} task \S+ in stage 2\.0", told)) for verb in ("Running", "Finished"))
    assert len(begun) > len(done), told
    assert (process.returncode, expected.returncode) == (0, 0), errors
    assert without_speed(found) == without_speed(expected.stdout)


@pytest.mark.timeout(500)
def test_a_script_that_is_submitted_writes_the_verdicts(cluster: Cluster, hidden: Path, tmp_path: Path) -> None:
    runs = [healthy(tmp_path / "kept" / "1").finish()]
    runs.append(last_replica_standing(tmp_path / "lost" / "1", era="kafka-3.9").finish())
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().executable.parent.parent),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": base_python(),
        "PYTHONPATH": str(_SUBMITTED.parents[3]),
        "TMPDIR": str(hidden),
        "JAVA_TOOL_OPTIONS": QUICK,
    }
    options = ("--master", cluster.master, "--driver-memory", "500m", *ONE_WORKER)
    command = [str(SPARK_HOME / "bin/spark-submit"), *options, str(_SUBMITTED), *map(str, runs)]
    result = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=_COMMAND_TIMEOUT_S
    )
    assert result.returncode == 1, result.stderr
    assert sorted(result.stdout.splitlines()) == [f"{runs[0]}: valid", f"{runs[1]}: violation"]
    verdicts = [json.loads((run / "verdict.json").read_bytes())["verdict"] for run in runs]
    assert verdicts == ["valid", "violation"]
    assert [(run / "junit.xml").exists() for run in runs] == [True, True]


@pytest.mark.timeout(500)
def test_a_cluster_fills_the_tables(cluster: Cluster, hidden: Path, tmp_path: Path) -> None:
    runs = [str(healthy(tmp_path / str(number) / "1").finish()) for number in range(2)]
    query = "SELECT scenario, kind, count(*) AS n FROM history GROUP BY ALL ORDER BY ALL"
    options = ("--master", cluster.master, *ONE_WORKER)
    found = laststand("sql", *runs, query, "--json", *options, temporary=hidden, python=base_python())
    assert found.returncode == 0, found.stderr
    counts = {"final_read": 1, "poll": 4, "send": 3}
    assert json.loads(found.stdout) == [
        {"scenario": scenario, "kind": kind, "n": n} for scenario in ("0", "1") for kind, n in counts.items()
    ]


@pytest.mark.timeout(500)
def test_a_master_that_does_not_answer_is_reported_in_a_line(hidden: Path, tmp_path: Path) -> None:
    run = str(healthy(tmp_path / "1").finish())
    for arguments in (("verify", run), ("export", run, str(tmp_path / "tables"))):
        result = laststand(*arguments, "--master", "spark://127.0.0.1:1", temporary=hidden, python=sys.executable)
        assert (result.returncode, len(result.stderr.splitlines())) == (254, 1), result.stderr
        assert "expected a Spark master that answers there" in result.stderr
    assert not (tmp_path / "tables").exists()
    assert list(hidden.glob("laststand-*")) == []


@pytest.mark.timeout(500)
def test_executors_that_cannot_verify_are_reported_in_a_line(cluster: Cluster, hidden: Path, tmp_path: Path) -> None:
    run = healthy(tmp_path / "1").finish()
    options = ("--master", cluster.master, *ONE_WORKER)
    libraries = ":".join(map(str, (SPARK_HOME / "python/lib").glob("*.zip")))
    empty = tmp_path / "python"
    empty.write_text(f'#!/bin/sh\nPYTHONPATH={libraries} exec {base_python()} "$@"\n')
    empty.chmod(0o755)
    result = laststand("verify", str(run), *options, temporary=hidden, python=str(empty))
    assert result.returncode == 2
    assert "the executors cannot import laststand.emulator.verification.judge: " in result.stderr
    assert "No module named" in result.stderr
    assert len(result.stderr.splitlines()) == 1
