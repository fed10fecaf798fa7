"""Mishaps that end or hinder the command line from outside: none looks like a verdict, and what was written is kept."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.cluster.forked_laststand import laststand_program
from tests.cluster.survivors import DEADLINE_S, MARK, await_end, survivors

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]

SLOW_S: Final = 240.0
"""For what needs Spark on a machine that is busy with something else."""

ROOT: Final = Path(__file__).parents[2]

SCENARIO: Final = """\
name: test/short
cluster: {brokers: 1}
topics: [{name: orders, replicas: [[0]]}]
workload: {producers: [{acks: all, rate: 200}]}
steps: [{until: {acked: 50, acks: all}}]
"""


OWN: Final = (sys.executable, "-m", "laststand.cli")


def start(
    *arguments: str, program: Sequence[str] = OWN, mark: str = "none", stderr: int = subprocess.PIPE
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*program, *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), MARK: mark},
    )


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "short.yaml"
    path.write_text(SCENARIO)
    return str(path)


@pytest.fixture
def played(scenario: str, tmp_path: Path) -> Path:
    options = ("--driver", "simulator", "--no-verify", "--out", str(tmp_path / "store"))
    with start("run", scenario, *options, program=(laststand_program(),)) as process:
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    return (tmp_path / "store/test/short/latest").resolve()


def test_a_run_with_a_closed_output_is_judged_and_ends_like_sigpipe(scenario: str, tmp_path: Path) -> None:
    arguments = ("run", scenario, "--driver", "simulator", "--judge", "here", "--out", str(tmp_path / "store"))
    with start(*arguments, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(SLOW_S) == 128 + signal.SIGPIPE
    assert (tmp_path / "store/test/short/latest/verdict.json").is_file()


def test_processes_of_a_run_whose_stderr_is_closed_have_logs(scenario: str, tmp_path: Path) -> None:
    program = f"exec {sys.executable} -m laststand.cli run {scenario} --judge here --out {tmp_path / 'store'} 2>&-"
    done = subprocess.run(["sh", "-c", program], stdout=subprocess.PIPE, text=True, timeout=SLOW_S, check=False)
    run = tmp_path / "store/test/short/latest"
    assert done.returncode == 0, (run / "run.log").read_text()
    (line,) = (run / "client.log").read_text().splitlines()
    assert line.endswith("clients producers=1 consumers=0")


def test_no_verb_takes_a_closed_pipe_for_a_verdict() -> None:
    with start("simulate", "--seed", "3") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(DEADLINE_S) == 128 + signal.SIGPIPE
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_run_that_is_not_judged_is_played_or_has_a_problem(played: Path, scenario: str, tmp_path: Path) -> None:
    assert not (played / "verdict.json").exists()
    broken = Path(scenario)
    broken.write_text(SCENARIO.replace("{acked: 50, acks: all}", "{acked: 50, acks: 1, within: 1 s}"))
    options = ("--driver", "simulator", "--no-verify", "--out", str(tmp_path / "broken"))
    with start("run", scenario, *options, program=(laststand_program(),)) as process:
        told, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert "did not reach its end: step 1" in told


def kill_jvm(mark: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        for process in survivors(mark):
            try:
                if process.name() == "java" and "-cp" in process.cmdline():  # not the question for its version
                    process.kill()
                    return
            except psutil.Error:
                continue
    pytest.fail("there is no JVM")


def test_a_jvm_that_is_killed_leaves_the_verdict_unknown(played: Path) -> None:
    mark = uuid.uuid4().hex
    with start("verify", str(played), mark=mark) as process:
        kill_jvm(mark)
        out, err = process.communicate(timeout=SLOW_S)
    assert process.returncode == 2, err
    assert "Traceback" not in err
    assert f"not judged: {played}" in err
    assert "Spark" in err.splitlines()[-1]
    assert out == ""
    assert await_end(mark) == []


@contextmanager
def little_room(place: Path, kilobytes: int) -> Iterator[Path]:
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("needs to mount a small file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("driver", ["simulator", "process"])
def test_a_full_disk_during_a_run_leaves_the_verdict_unknown(driver: str, scenario: str, tmp_path: Path) -> None:
    with little_room(tmp_path / "small", 60) as room:
        with start("run", scenario, "--driver", driver, "--judge", "here", "--out", str(room / "store")) as process:
            _, err = process.communicate(timeout=SLOW_S)
        assert process.returncode == 2, err
        assert "Traceback" not in err
        assert "not judged: " in err
        assert (room / "store/test/short/latest/scenario.yaml").read_text() == SCENARIO
        assert not (room / "store/test/short/latest/verdict.json").exists()


def test_a_full_disk_during_a_verification_leaves_the_verdict_unknown(played: Path) -> None:
    # Files of every process that is started here may be so large and no larger. A compiled module would be cut short,
    # too, and stay so for everybody.
    limited = f"ulimit -f 1; exec {sys.executable} -m laststand.cli verify {played}"
    result = subprocess.run(
        ["sh", "-c", limited],
        capture_output=True,
        text=True,
        check=False,
        timeout=SLOW_S,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert f"not judged: {played}" in result.stderr
    assert not (played / "verdict.json").exists()
