"""The compose file as it is published: up to healthy, a record read back, faults, attaching, and an orderly end."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.docker.commands import ROOT, Commands

pytestmark = pytest.mark.docker

FILE: Final = ROOT / "docker/compose.yaml"
PROJECT: Final = "laststand-test"
_TIMEOUT_S: Final = 180


def compose(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = ("docker", "compose", "--project-name", PROJECT, "--file", str(FILE), *arguments)
    return subprocess.run(command, capture_output=True, text=True, input=stdin, timeout=_TIMEOUT_S, check=False)


def in_client(*arguments: str, stdin: str = "") -> str:
    done = compose("exec", "-T", "client", "laststand", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@contextmanager
def project(*options: str) -> Iterator[None]:
    if compose("version").returncode:
        pytest.skip("no docker compose of version 2")
    compose("--profile", "*", "down", "--volumes", "--timeout", "5")  # what a killed run of these tests left
    try:
        started = compose("up", "--wait", *options)
        assert started.returncode == 0, started.stderr + compose("logs", "--tail", "20").stdout
        yield
    finally:
        compose("--profile", "*", "down", "--volumes", "--timeout", "5")


@pytest.mark.timeout(300)
def test_a_composed_cluster_serves_breaks_heals_and_ends(images: None) -> None:
    with project():
        in_client("topics", "create", "orders", "--replication-factor", "3")
        in_client("produce", "orders", stdin="one\ntwo\n")
        read = in_client("consume", "orders", "--from-beginning", "--max-messages", "2")
        assert read.splitlines()[:2] == ["one", "two"]
        assert "was killed" in in_client("chaos", "kill", "1")
        assert "listens" in in_client("chaos", "start", "1")
        assert "unsynced bytes" in in_client("chaos", "power-loss", "2", "--keep", "none")
        assert "incarnation 1 listens" in in_client("chaos", "start", "2")
        assert "links silent" in in_client("chaos", "partition", "0", "1")
        assert "of them answer" in in_client("chaos", "heal")
        assert "no answer at its address" in in_client("chaos", "disconnect", "1")
        assert "it answers at its address" in in_client("chaos", "connect", "1")
        again = compose("exec", "-T", "client", "laststand", "attach", "--out", "/tmp/other")
        assert "to which nobody was attached yet" in again.stderr
        assert "the cluster is down\n" in in_client("down")


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_project_that_somebody_else_started_is_attached_to_broken_and_judged(commands: Commands) -> None:
    shell = commands.type
    with project("--scale", "client=0"):
        assert "3 brokers and a controller serve" in shell("attach", "--compose-project", PROJECT)
        shell("topics", "create", "orders", "--replica-assignment", "0:1:2")
        shell("produce", "orders", stdin="one\ntwo\n")
        assert "was killed" in shell("chaos", "kill", "0")
        shell("chaos", "step", "until: {partition: orders-0, leader: 1, isr: [1, 2]}")
        assert "orders-0: leader 1" in shell("inspect", "orders-0")
        assert "down (kill)" in shell("status")
        shell("down")
        shell("verify", "store/standing/latest")


@pytest.fixture
def analysis_image(images: None) -> None:
    looked = subprocess.run(["docker", "image", "inspect", "laststand-analysis"], capture_output=True, check=False)
    if looked.returncode:
        pytest.skip("no image laststand-analysis: docker/build.sh --analysis")


@pytest.mark.timeout(300)
def test_a_spark_cluster_judges_the_volumes(analysis_image: None) -> None:
    with project():
        in_client("topics", "create", "orders", "--replication-factor", "3")
        in_client("produce", "orders", stdin="one\ntwo\n")
        in_client("chaos", "power-loss", "2", "--keep", "none")
        in_client("down")
        started = compose("--profile", "spark", "up", "--wait", "spark-master", "spark-worker")
        assert started.returncode == 0, started.stderr + compose("logs", "spark-master", "spark-worker").stdout
        command = "laststand verify --master spark://spark-master:7077 store/standing/latest"
        judged = compose("run", "--rm", "chaos", *command.split())
        assert judged.returncode == 0, judged.stdout + judged.stderr
        assert "VALID: standing" in judged.stdout
        assert "2 acked, 0 lost" in judged.stdout
