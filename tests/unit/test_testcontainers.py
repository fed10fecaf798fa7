"""``laststand.testcontainers``: what it asks for, and a cluster where there is an engine."""

import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class FakeContainer:
    """Keeps what was asked, and answers commands by what they begin with."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.asked: dict[str, Any] = {}
        self.commands: list[list[str]] = []
        self.answers: dict[tuple[str, ...], tuple[int, bytes]] = {}

    def with_command(self, command: list[str]) -> None:
        self.asked["command"] = command

    def with_kwargs(self, **options: object) -> None:
        self.asked |= options

    def waiting_for(self, strategy: object) -> None:
        self.asked["waiting_for"] = strategy

    def get_logs(self) -> tuple[bytes, bytes]:
        return b"cluster up\n  bootstrap.servers=127.0.0.1:1,127.0.0.1:2\n", b""

    def exec(self, command: list[str]) -> SimpleNamespace:
        self.commands.append(command)
        code, output = next(
            (said for start, said in self.answers.items() if command[: len(start)] == [*start]), (0, b"")
        )
        return SimpleNamespace(exit_code=code, output=output)


class FakeStrategy:
    def __init__(self, message: str) -> None:
        self.message = message

    def with_startup_timeout(self, seconds: int) -> "FakeStrategy":
        return self


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    modules: dict[str, dict[str, object]] = {
        "testcontainers": {},
        "testcontainers.core": {},
        "testcontainers.core.container": {"DockerContainer": FakeContainer},
        "testcontainers.core.wait_strategies": {"LogMessageWaitStrategy": FakeStrategy},
    }
    for name, attributes in modules.items():
        made = ModuleType(name)
        made.__dict__.update(attributes)
        monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.delitem(sys.modules, "laststand.testcontainers", raising=False)
    yield importlib.import_module("laststand.testcontainers")
    sys.modules.pop("laststand.testcontainers", None)


def test_a_cluster_is_asked_for_on_the_network_of_the_host(module: ModuleType) -> None:
    cluster = module.LaststandContainer(brokers=4, era="kafka-3.9", settings={"elr": "off"})
    up = "laststand up --name testcontainers --kafka --no-proxies --brokers 4 --era kafka-3.9 --set elr=off"
    assert cluster.image == "laststand"
    assert cluster.asked["command"] == ["sh", "-c", f"{up} && exec sleep infinity"]
    assert cluster.asked["network_mode"] == "host"
    assert cluster.asked["waiting_for"].message == "bootstrap.servers="
    assert cluster.bootstrap_servers() == "127.0.0.1:1,127.0.0.1:2"


def test_a_step_is_played_in_the_container(module: ModuleType) -> None:
    cluster = module.LaststandContainer()
    cluster.answers[("laststand", "chaos")] = (0, b"killed\n")
    assert cluster.chaos("kill: {node: 1}") == "killed\n"
    assert cluster.commands == [["laststand", "chaos", "step", "kill: {node: 1}", "--dir", "testcontainers"]]


def test_a_step_that_does_not_come_about_is_an_error(module: ModuleType) -> None:
    cluster = module.LaststandContainer()
    cluster.answers[("laststand", "chaos")] = (254, b"no node 9\n")
    with pytest.raises(module.LaststandError, match="no node 9"):
        cluster.chaos("kill: {node: 9}")


def test_the_verdict_of_a_violation_is_returned(module: ModuleType) -> None:
    cluster = module.LaststandContainer()
    cluster.answers[("laststand", "verify")] = (1, b"")
    cluster.answers[("cat",)] = (0, json.dumps({"verdict": "violation"}).encode())
    assert cluster.verdict() == {"verdict": "violation"}
    assert [command[:3] for command in cluster.commands] == [
        ["laststand", "down", "testcontainers"],
        ["laststand", "verify", "testcontainers"],
        ["cat", "store/standing/testcontainers/latest/verdict.json"],
    ]


@pytest.mark.docker
def test_a_cluster_in_a_container_serves_and_is_judged() -> None:
    if importlib.util.find_spec("testcontainers") is None:
        pytest.skip("no testcontainers: pip install testcontainers")
    docker = pytest.importorskip("docker")
    try:
        docker.from_env().images.get("laststand")
    except docker.errors.DockerException as error:
        pytest.skip(f"no engine, or no image laststand: {error}")
    from laststand.testcontainers import LaststandContainer

    with LaststandContainer() as cluster:
        assert "127.0.0.1:" in cluster.bootstrap_servers()
        cluster.laststand("topics", "create", "orders", "--replication-factor", "3", "--dir", "testcontainers")
        cluster.chaos("kill: {node: 1}")
        assert cluster.verdict()["verdict"] in ("valid", "unknown")  # nothing was acknowledged
