"""A process that was stopped and does not go on: whoever waits for it hears of it."""

import functools
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from laststand.emulator.verification.spark import gateway
from laststand.emulator.verification.spark.gateway import SparkGateway
from laststand.emulator.verification.spark.stopped_processes import stopped_below, watch_for_stopped

_WAITS = [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"]
_STARTS_ONE = f"import subprocess, sys; subprocess.run({_WAITS!r})"


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(_WAITS, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        started.kill()


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


def test_a_stopped_process_is_found(process: "subprocess.Popen[bytes]") -> None:
    assert stopped_below(process.pid) is None
    stop(process.pid)
    assert stopped_below(process.pid) == process.pid
    assert stopped_below(os.getpid()) == process.pid


def test_one_that_it_started_is_found() -> None:
    command = [sys.executable, "-c", _STARTS_ONE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        [child] = map(int, Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split())
        os.kill(child, signal.SIGSTOP)
        while stopped_below(parent.pid) is None:
            os.sched_yield()
        assert stopped_below(parent.pid) == child
        os.killpg(parent.pid, signal.SIGKILL)


def test_it_is_reported_once_several_looks_have_found_it(process: "subprocess.Popen[bytes]") -> None:
    told: queue.Queue[int] = queue.Queue()
    is_over = threading.Event()
    watch_for_stopped(process.pid, is_over=is_over, on_stopped=told.put, look_interval_s=0.001)
    stop(process.pid)
    assert told.get(timeout=60) == process.pid
    is_over.set()


def test_a_stopped_jvm_is_ended_and_its_end_explained(
    process: "subprocess.Popen[bytes]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = functools.partial(watch_for_stopped, look_interval_s=0.001)
    monkeypatch.setattr(gateway, "watch_for_stopped", quick)
    jvm = SparkGateway(process=process, directory=tmp_path / "jvm", log_path=tmp_path / "log")
    assert jvm.end_in_words(3) == "ended with 3"
    stop(process.pid)
    assert jvm.exit_code(within_s=60) == -signal.SIGKILL
    assert "had been stopped (SIGSTOP) and did not go on for" in jvm.end_in_words(-9)
