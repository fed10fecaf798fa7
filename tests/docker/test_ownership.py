"""Containers and their owners: two clusters at once, and what a harness that was killed leaves."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.docker.commands import FAST, Commands

pytestmark = pytest.mark.docker


@pytest.mark.timeout(300)
def test_two_clusters_do_not_meet_and_one_outlives_the_others_harness(commands: Commands) -> None:
    shell = commands.type
    for name in ("red", "blue"):
        shell("up", "--driver", "docker", "--brokers", "2", "--name", name, *FAST)
        shell("topics", "create", "orders", "--replication-factor", "2", "--dir", name)
        shell("produce", "orders", "--dir", name, stdin=f"of {name}\n")
    for name in ("red", "blue"):
        assert shell("consume", "orders", "--from-beginning", "--max-messages", "1", "--dir", name).startswith(
            f"of {name}\n"
        )
    assert len(commands.containers()) == 2 * 4  # a controller, two brokers, and the proxies

    red = json.loads(shell("status", "red", "--json"))
    os.kill(red["supervisor_pid"], signal.SIGKILL)
    left = json.loads(shell("docker", "ps", "--json"))
    run = Path(red["directory"]).name
    of_red = [each for each in left if each["run"] == run]
    assert len(of_red) == 4 + 1  # and the network
    assert all(each["is_abandoned"] for each in of_red)
    shutil.rmtree(red["directory"])  # and so is what no run directory belongs to any more
    shell("docker", "prune")
    assert len(commands.containers()) == 4
    assert len(commands.networks()) == 1
    shell("produce", "orders", "--dir", "blue", stdin="still there\n")
    shell("down", "blue")
    assert commands.containers() + commands.networks() == []
