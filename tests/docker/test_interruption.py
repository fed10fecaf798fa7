"""A harness that is interrupted leaves no container; what one leaves that is killed, the next command removes."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.cluster.signals import default_signals
from tests.docker.commands import FAST, Commands

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

DEADLINE_S = 60.0
RUN = ("run", "kip-966/last-replica-standing", "--era", "kip-966", "--driver", "docker", "--no-verify")
UP = ("up", "--driver", "docker", *FAST)


def interrupt(commands: Commands, *arguments: str, at: int) -> None:
    """Presses Ctrl-C once there are so many containers, of the five; 0: once there is a network."""
    with default_signals(), commands.start(*arguments) as command:
        deadline = time.monotonic() + DEADLINE_S
        while not commands.networks() or len(commands.containers()) < at:
            assert command.poll() is None
            assert time.monotonic() < deadline
        command.send_signal(signal.SIGINT)
        _, stderr = command.communicate(timeout=DEADLINE_S)
    assert command.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert commands.containers() + commands.networks() == []


@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_ctrl_c_leaves_nothing_of_a_run(commands: Commands, at: int) -> None:
    interrupt(commands, *RUN, at=at)


@pytest.mark.parametrize("at", [0, 3])
def test_ctrl_c_leaves_nothing_of_a_cluster_that_comes_up(commands: Commands, at: int) -> None:
    interrupt(commands, *UP, at=at)
    assert "the cluster in" in commands.type("status", code=254)


def kill_supervisor(commands: Commands) -> Path:
    """Returns the directory of the cluster that has none any more."""
    status = json.loads(commands.type("status", "--json"))
    os.kill(status["supervisor_pid"], signal.SIGKILL)
    while Path(f"/proc/{status['supervisor_pid']}").exists():
        time.sleep(0.01)
    assert len(commands.containers()) == 3
    return Path(status["directory"])


def test_down_removes_what_a_killed_supervisor_left(commands: Commands) -> None:
    commands.type(*UP, "--brokers", "1")
    directory = kill_supervisor(commands)
    assert f"remove them with: laststand down {directory}" in commands.type("status", code=254)
    assert "its supervisor was killed, and 4 containers and networks that it left were removed" in commands.type(
        "down", code=2
    )
    assert commands.containers() + commands.networks() == []
    assert "is gone" in commands.type("down", code=254)


def test_start_goes_on_after_a_killed_supervisor_at_the_first_try(commands: Commands) -> None:
    commands.type(*UP, "--brokers", "1")
    commands.type("topics", "create", "orders", "--config", "min.insync.replicas=1")
    commands.type("produce", "orders", stdin="one\ntwo\n")
    kill_supervisor(commands)
    commands.type("start")
    assert len(commands.containers()) == 3
    commands.type("produce", "orders", stdin="three\n")
    read = commands.type("consume", "orders", "--from-beginning", "--max-messages", "3")
    assert read.splitlines()[:3] == ["one", "two", "three"]
    commands.type("down")
    assert commands.containers() + commands.networks() == []
