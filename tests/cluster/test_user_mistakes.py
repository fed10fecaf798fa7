"""Mistakes of a user on a standing cluster: one line and exit code 254, never a bug's 255; nothing is done."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from laststand.cli.main import cli, main
from laststand.cli.program.exit_codes import ExitCode
from tests.cluster.forked_laststand import laststand_program

pytestmark = pytest.mark.cluster

ROOT: Final = Path(__file__).parents[2]

REFUSED: Final = {
    "topics create orders": "TOPIC_ALREADY_EXISTS",
    "topics create a/b": "INVALID_TOPIC_EXCEPTION",
    "topics create wide --replication-factor 3": "INVALID_REPLICATION_FACTOR",
    "topics create wide --replica-assignment 0:9": "INVALID_REPLICA_ASSIGNMENT",
    "topics alter orders --partitions 1": "INVALID_PARTITIONS",
    "topics alter nope --partitions 4": "no topic 'nope'",
    "topics delete nope": "no topic 'nope'",
    "topics describe nope": "UNKNOWN_TOPIC_OR_PARTITION",
    "produce nope": "no topic 'nope'",
    "produce ordrs": "did you mean 'orders'",
    "inspect ordrs-0": "did you mean 'orders-0'",
    "elect-leaders --election-type preferred --topic ordrs --partition 0 --dry-run": "did you mean 'orders-0'",
    "logs contoller": "did you mean 'controller'",
    "produce orders --partition 7": "no partition 7",
    "consume nope": "no topic 'nope'",
    "inspect nope-0": "no partition nope-0",
    "configs describe --entity-type topics --entity-name nope": "no topic 'nope'",
    "configs alter --entity-type brokers --entity-name 9 --add-config min.insync.replicas=1": "broker 9",
    "features downgrade --feature nope=1": "feature 'nope'",
    "reassign --topic orders --partition 0 --replicas 0,9": "INVALID_REPLICA_ASSIGNMENT",
    "reassign --topic nope --partition 0 --replicas 0,1": "UNKNOWN_TOPIC_OR_PARTITION",
    "elect-leaders --election-type preferred --topic nope --partition 0": "UNKNOWN_TOPIC_OR_PARTITION",
    "elect-leaders --election-type designated --topic orders --partition 0 --leader 9": "INVALID_REQUEST",
    "chaos kill 9": "no node 9",
    "chaos kill leader(nope-0)": "no such partition",
}
"""Words of the refusal, by command."""


class Shell:
    """Types commands about one cluster, in this process: the way of the error is that of the program."""

    def __init__(self, store: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._store = store
        self._monkeypatch = monkeypatch
        self._capfd = capfd

    def type(self, command: str) -> tuple[int, str]:
        self._monkeypatch.setattr(sys, "argv", ["laststand", *command.split(), "--dir", str(self._store)])
        code = main()
        captured = self._capfd.readouterr()
        return code, captured.out + captured.err


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("mistakes") / "store"
    up = [laststand_program(), "up", "--brokers", "2", "--no-proxies", "--out", str(place)]
    subprocess.run(up, check=True, cwd=ROOT)
    created = CliRunner().invoke(cli, ["topics", "create", "orders", "--dir", str(place)], standalone_mode=False)
    assert created.exception is None
    yield place
    subprocess.run([laststand_program(), "down", "--as-is", str(place)], check=False, cwd=ROOT)


@pytest.fixture
def shell(store: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield Shell(store, monkeypatch, capfd)
        monkeypatch.undo()


@pytest.mark.parametrize(("command", "complaint"), REFUSED.items())
def test_a_mistake_is_refused_in_a_line(command: str, complaint: str, shell: Shell) -> None:
    code, told = shell.type(command)
    assert code == ExitCode.USAGE, told
    assert complaint in told
    assert "Traceback" not in told


def test_every_line_before_a_bad_one_is_sent_and_counted(store: Path) -> None:
    lines = [f"key-{number}:value" for number in range(2500)]
    result = subprocess.run(
        [laststand_program(), "produce", "orders", "--key-separator", ":", "--dir", str(store)],
        input="\n".join([*lines, "no separator", *lines]),
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert result.returncode == ExitCode.VIOLATION, result.stderr
    assert "2500 records acknowledged" in result.stderr
    assert "line 2501 has no key separator ':': 'no separator'; every line before it was sent" in result.stderr


def test_a_controller_that_is_down_is_reported(shell: Shell) -> None:
    assert shell.type("chaos kill controller")[0] == 0
    code, told = shell.type("topics list")
    assert code == ExitCode.USAGE, told
    assert "laststand status says which nodes run" in told
    assert shell.type("chaos start controller")[0] == 0


def test_a_store_in_which_nobody_may_write_is_reported(tmp_path: Path) -> None:
    (tmp_path / "standing").write_text("a file where the clusters' directory would be")
    (tmp_path / ".laststand-store").touch()
    for place in (tmp_path, Path("/proc/laststand")):
        result = subprocess.run(
            [laststand_program(), "up", "--no-proxies", "--out", str(place)],
            check=False,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert result.returncode == ExitCode.USAGE, result.stderr
        assert "Traceback" not in result.stderr
        assert "--out" in result.stderr
