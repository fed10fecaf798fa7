"""Containers whose harness is gone: by its lock, or by its process where the run directory was deleted."""

import os
import subprocess
from pathlib import Path

import pytest

from laststand.emulator.cluster.containers.labels import LOCK, PROCESS, HarnessLock, is_abandoned, process_name


def test_a_lock_that_is_held_or_not_decides(tmp_path: Path) -> None:
    ours = {LOCK: str(tmp_path / ".harness.lock"), PROCESS: "1/2/3"}
    lock = HarnessLock(tmp_path)
    assert not is_abandoned(ours)
    lock.release()
    assert is_abandoned(ours)


def test_without_a_run_directory_the_process_decides(tmp_path: Path) -> None:
    lock = str(tmp_path / "deleted" / ".harness.lock")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as harness:
        name = process_name(harness.pid)
        assert name is not None
        assert not is_abandoned({LOCK: lock, PROCESS: name})
        harness.kill()
        os.waitid(os.P_PID, harness.pid, os.WEXITED | os.WNOWAIT)
        assert is_abandoned({LOCK: lock, PROCESS: name}), "it has ended, and nobody asked how"
    assert is_abandoned({LOCK: lock, PROCESS: name})
    own = process_name(os.getpid())
    assert own is not None
    assert is_abandoned({LOCK: lock, PROCESS: f"{own}0"}), "another process has its id now"


@pytest.mark.parametrize("process", ["", "1/1/1"], ids=["not told", "in another namespace"])
def test_of_a_process_that_cannot_be_seen_nothing_is_said(tmp_path: Path, process: str) -> None:
    assert not is_abandoned({LOCK: str(tmp_path / "elsewhere" / ".harness.lock"), PROCESS: process})
