"""``laststand verify --watch`` judges runs as they end, and ends with its owner."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.verification.run_builder import healthy, last_replica_standing

pytestmark = pytest.mark.spark

_TIMEOUT_S: Final = 90
_OWNER: Final = """\
import subprocess, sys
print(subprocess.Popen(sys.argv[1:], stdout=open("told", "wb")).pid, flush=True)
sys.stdin.read()
"""


def await_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_over(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.timeout(240)
def test_runs_are_judged_as_they_end_until_the_owner_is_gone(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    command = [sys.executable, "-m", "laststand.cli", "verify", "--watch", str(store), "--json"]
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert owner.stdout is not None
    assert owner.stdin is not None
    pid = int(owner.stdout.readline())
    try:
        runs = [
            healthy(store / "kip-966/1").finish(),
            last_replica_standing(store / "lost/1", era="kafka-3.9").finish(),
        ]
        for run in runs:
            await_until((run / "junit.xml").exists)
        verdicts = [json.loads((run / "verdict.json").read_bytes())["verdict"] for run in runs]
        assert verdicts == ["valid", "violation"]
    finally:
        owner.stdin.close()
        owner.wait(timeout=30)
        owner.stdout.close()
    await_until(lambda: is_over(pid))
    told = [json.loads(line)["run"] for line in (tmp_path / "told").read_text().splitlines()]
    assert sorted(told) == sorted(map(str, runs))
