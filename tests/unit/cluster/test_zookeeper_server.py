"""The program of a container that becomes a ZooKeeper server: what it is told, and what it writes down."""

import os
import sys
from pathlib import Path

import pytest

from laststand.emulator.cluster.containers import zookeeper_server
from laststand.emulator.cluster.zookeeper_program import ZooKeeperProgram


class ReplacedError(Exception):
    """This process would be another one now."""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    environment = {
        "JAVA_HOME": "/opt/java",
        "LASTSTAND_ERA": "kafka-3.9-zk",
        "LASTSTAND_DIRECTORY": str(tmp_path),
        "LASTSTAND_PORT": "9092",
        "LASTSTAND_BROKER_SESSION_TIMEOUT_MS": "2000",
    }

    def replace(program: str, arguments: tuple[str, ...]) -> None:
        raise ReplacedError(*arguments)

    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(os, "execv", replace)
    monkeypatch.setattr(sys, "argv", ["zookeeper_server"])
    monkeypatch.setattr(zookeeper_server, "find_zookeeper", lambda java: ZooKeeperProgram(java=java, class_path="jars"))
    return environment


def test_a_foreign_server_is_recognized_by_its_environment(environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ReplacedError) as replaced:
        zookeeper_server.main()
    node = tmp_path / "nodes/100"
    assert replaced.value.args[0] == "/opt/java/bin/java"
    assert replaced.value.args[-1] == str(node / "zoo.cfg")
    settings = dict(line.split("=") for line in (node / "zoo.cfg").read_text(encoding="utf-8").splitlines())
    expected = {"dataDir": str(node / "data"), "clientPort": "9092", "clientPortAddress": "0.0.0.0", "tickTime": "200"}
    assert expected.items() <= settings.items()
    assert (node / "data/version-2").is_dir()


def test_a_server_of_a_harness_has_a_file(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    environment.clear()
    environment["JAVA_HOME"] = "/opt/java"
    monkeypatch.setattr(sys, "argv", ["zookeeper_server", "/run/zoo.cfg"])
    with pytest.raises(ReplacedError) as replaced:
        zookeeper_server.main()
    assert replaced.value.args[-1] == "/run/zoo.cfg"


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("LASTSTAND_ERA", "kip-966", "LASTSTAND_ERA=kip-966 is not allowed; expected an era with ZooKeeper"),
        ("LASTSTAND_BROKER_SESSION_TIMEOUT_MS", "99", "a ZooKeeper server gives no session of 99 ms"),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    environment: dict[str, str], capsys: pytest.CaptureFixture[str], variable: str, value: str, complaint: str
) -> None:
    environment[variable] = value
    assert zookeeper_server.main() == 254
    [line] = capsys.readouterr().err.splitlines()
    assert complaint in line
