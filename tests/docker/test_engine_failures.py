"""Failures of an engine: one line, exit code 254 or verdict ``unknown``, and nothing that cannot be found."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from laststand.emulator.cluster.containers.container_process import explain_kill
from laststand.emulator.cluster.containers.mounts import IMAGE_USER
from tests.docker.commands import FAST, ROOT, Commands
from tests.docker.composed import compose, project
from tests.docker.engine_relay import EngineRelay

pytestmark = pytest.mark.docker

DEADLINE_S = 60.0
LINE_LENGTH_MAX = 240
DEMO = ("run", "kip-966/last-replica-standing", "--era", "kip-966", "--driver", "docker", "--no-verify")


def check_one_line(told: str, reason: str) -> None:
    [line] = told.splitlines()
    assert reason in line
    assert len(line) < LINE_LENGTH_MAX


@pytest.mark.parametrize(
    "arguments", [DEMO, ("up", "--driver", "docker"), ("attach",), ("docker", "ps")], ids=["run", "up", "attach", "ps"]
)
def test_no_engine(arguments: tuple[str, ...], commands: Commands) -> None:
    for host in (f"unix://{commands.directory}/nobody.sock", "tcp://127.0.0.1:1"):
        commands.variables["DOCKER_HOST"] = host
        check_one_line(commands.type(*arguments, code=254), "nothing listens at its socket")
    assert not any((commands.directory / "store").glob("*/*"))


def test_no_permission(commands: Commands) -> None:
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, to have a socket that is somebody else's, and setpriv, not to be allowed to use it")
    relay = EngineRelay(commands.directory)
    try:
        os.chown(commands.directory / "engine.sock", IMAGE_USER, IMAGE_USER)
        (commands.directory / "engine.sock").chmod(0o600)
        told = subprocess.run(
            ["setpriv", "--bounding-set=-dac_override", sys.executable, "-m", "laststand.cli", *DEMO],
            capture_output=True,
            text=True,
            cwd=commands.directory,
            env={**os.environ, "PYTHONPATH": str(ROOT), "DOCKER_HOST": relay.host},
            check=False,
        )
    finally:
        relay.cut()
    assert told.returncode == 254
    check_one_line(told.stderr, "permission denied: this user may not use it; add the user to the group docker")


@pytest.mark.parametrize("variable", ["LASTSTAND_IMAGE", "TOXIPROXY_IMAGE"])
def test_an_image_that_is_missing(commands: Commands, variable: str) -> None:
    commands.variables[variable] = "laststand:of-nobody"
    told = commands.type(*DEMO, code=254)
    check_one_line(told, "image laststand:of-nobody was not found")
    assert "make docker-images" in told


def test_a_port_in_use(images: None) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 19092))
        taken.listen()
        with pytest.raises(AssertionError, match="19092"), project("--scale", "harness=0", "--scale", "client=0"):
            pass
    assert compose("--profile", "*", "ps", "--all", "--quiet").stdout == ""


@pytest.fixture
def dying_image(images: None) -> Iterator[str]:
    """An image whose containers end at once."""
    name = "laststand:dies"
    subprocess.run(
        ["docker", "build", "--quiet", "--tag", name, "-"],
        input=b'FROM laststand\nENTRYPOINT ["sh", "-c", "echo no disk is good enough >&2; exit 3"]\n',
        check=True,
        capture_output=True,
    )
    yield name
    subprocess.run(["docker", "image", "rm", "--force", name], check=True, capture_output=True)


@pytest.mark.spark
def test_a_run_whose_containers_end_at_their_start_is_unknown(commands: Commands, dying_image: str) -> None:
    commands.variables["LASTSTAND_IMAGE"] = dying_image
    told = commands.type(*DEMO[:-1], code=2)
    assert "did not reach its end" in told
    [verdict] = commands.directory.rglob("verdict.json")
    assert json.loads(verdict.read_text(encoding="utf-8"))["verdict"] == "unknown"
    assert commands.containers() + commands.networks() == []
    assert "no disk is good enough" in next(commands.directory.rglob("run.log")).read_text(encoding="utf-8")


def test_a_standing_cluster_whose_containers_end_at_their_start(commands: Commands, dying_image: str) -> None:
    commands.variables["LASTSTAND_IMAGE"] = dying_image
    told = commands.type("up", "--driver", "docker", code=2)
    assert "no cluster came up: " in told
    assert "ended before it was ready: no disk is good enough; see " in told
    assert commands.containers() + commands.networks() == []


@pytest.mark.timeout(180)
def test_a_container_that_runs_out_of_memory(commands: Commands) -> None:
    commands.type("up", "--driver", "docker", "--brokers", "1", *FAST)
    commands.type("topics", "create", "orders", "--config", "min.insync.replicas=1")
    [broker] = [name for name in commands.containers() if re.search("-0-[0-9a-f]+$", name)]
    limit = ("--memory", "36m", "--memory-swap", "36m")  # as much as it has; it needs more for what comes
    subprocess.run(["docker", "update", *limit, broker], check=True, capture_output=True)
    with commands.start("produce", "orders") as producer:
        try:
            assert producer.stdin is not None
            producer.stdin.write(3 * 3000 * ("x" * 1000 + "\n"))
            producer.stdin.close()
            deadline = time.monotonic() + DEADLINE_S
            while (problem := json.loads(commands.type("status", "--json"))["problem"]) is None:
                assert time.monotonic() < deadline
        finally:
            producer.kill()
    memory = explain_kill(137, is_reported=True, memory_limit=36 << 20)
    perhaps = explain_kill(137, is_reported=False, memory_limit=36 << 20)
    assert problem in (f"process 0: {memory}", f"process 0: {perhaps}")
    assert problem in commands.type("down", "--as-is", code=2)
    assert commands.containers() + commands.networks() == []


@pytest.mark.timeout(180)
def test_an_engine_that_goes_away_in_mid_run(commands: Commands) -> None:
    relay = EngineRelay(commands.directory)
    commands.variables["DOCKER_HOST"] = relay.host
    with commands.start(*DEMO) as running:
        try:
            deadline = time.monotonic() + DEADLINE_S
            while not any(path.stat().st_size for path in (commands.directory / "store").rglob("history.packed")):
                assert running.poll() is None
                assert time.monotonic() < deadline
            relay.cut()
            stdout, stderr = running.communicate(timeout=DEADLINE_S)
        finally:
            running.kill()
    assert running.returncode == 2, stdout + stderr
    assert "Traceback" not in stderr
    assert "the Docker engine went away" in stdout + stderr
    del commands.variables["DOCKER_HOST"]
    left = json.loads(commands.type("docker", "ps", "--json"))
    abandoned = {each["name"] for each in left if each["is_abandoned"]}
    assert {*commands.containers(), *commands.networks()} <= abandoned
    commands.type("docker", "prune")
    assert commands.containers() + commands.networks() == []
