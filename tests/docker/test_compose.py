"""The compose file as it is published: up to healthy, a record read back, faults, attaching, and an orderly end."""

import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from tests.docker.conftest import ROOT

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


@pytest.fixture(scope="module")
def project(images: None) -> Iterator[None]:
    if compose("version").returncode:
        pytest.skip("no docker compose of version 2")
    try:
        started = compose("up", "--wait")
        assert started.returncode == 0, started.stderr + compose("logs", "--tail", "20").stdout
        yield
    finally:
        compose("down", "--volumes", "--timeout", "5")


@pytest.mark.timeout(600)
def test_a_composed_cluster_serves_breaks_heals_and_ends(project: None) -> None:
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
