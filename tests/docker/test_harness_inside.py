"""A harness in a container of the compose project: what it leaves when it is killed is found from outside."""

import json
import subprocess
import time

import docker
import pytest

from laststand.emulator.cluster.containers.labels import HARNESS, RUN
from tests.docker.commands import Commands
from tests.docker.composed import PROJECT, command_line, project

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

DEADLINE_S = 60.0
NAME = f"{PROJECT}-harness"
DEMO = "laststand run kip-966/last-replica-standing --driver docker --era kip-966"


def test_what_a_killed_harness_leaves_is_found_from_outside(commands: Commands, all_images: None) -> None:
    arguments = command_line("run", "--rm", "--name", NAME, "chaos", *DEMO.split(), "--no-verify")
    with (
        project("controller"),
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as playing,
    ):
        deadline = time.monotonic() + DEADLINE_S
        while len(left := leftovers(commands)) < 3:
            assert playing.poll() is None
            assert time.monotonic() < deadline
        assert not any(each["is_abandoned"] for each in left), "its harness lives, in another container"
        subprocess.run(["docker", "kill", NAME], check=True, capture_output=True)
        playing.communicate(timeout=DEADLINE_S)
        left = leftovers(commands)
        assert len(left) >= 3
        assert all(each["is_abandoned"] for each in left)
        commands.type("docker", "prune")
        assert leftovers(commands) == []


def leftovers(commands: Commands) -> list[dict[str, object]]:
    """Returns what ``docker ps`` lists of runs whose harness has a container of its own."""
    client = docker.from_env()
    try:
        networks = client.networks.list(filters={"label": HARNESS})
    finally:
        client.close()
    runs = {each.attrs["Labels"][RUN] for each in networks if each.attrs["Labels"][HARNESS]}
    return [each for each in json.loads(commands.type("docker", "ps", "--json")) if each["run"] in runs]
