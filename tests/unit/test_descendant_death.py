"""The program in front of the command line of a user's application."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from laststand.emulator.descendant_death import with_descendants

DEADLINE_S = 10
FAMILY = "sleep 60 & echo $! > child; setsid sleep 60 & echo $! > stranger; (sleep 60 & echo $! > orphan); "


def test_the_command_runs_with_its_arguments_and_keeps_its_exit_code() -> None:
    answer = subprocess.run(
        with_descendants(["sh", "-c", 'echo "$0"; exit 5', "a b"]), capture_output=True, check=False
    )
    assert (answer.returncode, answer.stdout) == (5, b"a b\n")


def test_a_signal_that_ends_the_command_is_its_exit_code() -> None:
    answer = subprocess.run(with_descendants(["sh", "-c", "kill -9 $$"]), capture_output=True, check=False)
    assert answer.returncode == 128 + signal.SIGKILL


def test_a_command_that_does_not_exist_is_named() -> None:
    answer = subprocess.run(with_descendants(["/no/such/program"]), capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (127, "/no/such/program: No such file or directory\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_for_the_group_is_the_commands(number: signal.Signals, tmp_path: Path) -> None:
    command = ["sh", "-c", f"trap 'exit 7' {number.name[3:]}; touch {tmp_path}/there; sleep 60 & wait"]
    with subprocess.Popen(with_descendants(command), process_group=0) as guard:
        await_file(tmp_path / "there")
        os.killpg(guard.pid, number)
        assert guard.wait(DEADLINE_S) == 7


def test_nothing_outlives_the_command(tmp_path: Path) -> None:
    subprocess.run(with_descendants(["sh", "-c", FAMILY]), cwd=tmp_path, check=True, timeout=DEADLINE_S)
    assert living(tmp_path) == []


def test_nothing_outlives_the_parent(tmp_path: Path) -> None:
    guard = with_descendants(["sh", "-c", f"{FAMILY} touch there; wait"])
    program = f"import subprocess; subprocess.run({guard!r})"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", program], cwd=tmp_path) as parent:
        await_file(tmp_path / "there")
        assert len(living(tmp_path)) == 3
        parent.kill()
    deadline = time.monotonic() + DEADLINE_S
    while living(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def await_file(path: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def living(folder: Path) -> list[str]:
    """Returns the names of the processes of ``FAMILY`` that run."""
    pids = {name: (folder / name).read_text().strip() for name in ("child", "stranger", "orphan")}
    return [name for name, pid in pids.items() if Path("/proc", pid).exists()]
