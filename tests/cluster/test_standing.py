"""A standing cluster from its first command to its verdict, by the commands that a user types."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from laststand.chaos.scenario import conditions
from laststand.chaos.scenario.scenario_file import load_scenario
from laststand.emulator.plan.actions import (
    AlterConfig,
    CreateTopic,
    Cut,
    DeleteRecords,
    ElectLeaders,
    HealAll,
    Kill,
    Reassign,
    SlowDisk,
    Start,
)
from tests.cluster.forked_laststand import laststand_program
from tests.cluster.signals import default_signals
from tests.cluster.survivors import MARK, await_end, children_of, leave_nothing, survivors
from tests.unit.cli.one_process import Laststand, one_process

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
FAST = (
    *("--set", "broker.session.timeout.ms=2000"),
    *("--set", "broker.heartbeat.interval.ms=250"),
    *("--set", "replica.lag.time.max.ms=1500"),
)
DEADLINE_S = 120.0


QUESTIONS: Final = frozenset(
    (
        *("chaos", "clients", "configs", "delete-records", "down", "elect-leaders", "features"),
        *("inspect", "logs", "ps", "reassign", "status", "topics"),
    )
)
"""Verbs that ask a standing cluster for something and end. To start Python takes longer than that."""


class Terminal:
    """A place where commands are typed: a directory, and a mark that a cluster and its clients inherit.

    Args:
        directory: the current one.
        ask: carries out ``QUESTIONS``, in one process without the mark.
    """

    def __init__(self, directory: Path, ask: Laststand) -> None:
        self.directory = directory
        self.mark = uuid.uuid4().hex
        self._ask = ask

    def start(self, *arguments: str, program: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Starts a command: by ``program``, or as a fork."""
        with default_signals():
            return subprocess.Popen(
                [*(program or (laststand_program(),)), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=self.directory,
                env={**environment(self.directory), MARK: self.mark},
            )

    def type(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        """Returns what a command printed; it must exit with ``code``."""
        done = self._ask(*arguments) if arguments[0] in QUESTIONS else self._carry_out(arguments, stdin)
        assert done.returncode == code, f"{arguments}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + (done.stderr if code else "")

    def _carry_out(self, arguments: tuple[str, ...], stdin: str) -> "subprocess.CompletedProcess[str]":
        with self.start(*arguments) as command:
            try:
                stdout, stderr = command.communicate(stdin, timeout=DEADLINE_S)
            except subprocess.TimeoutExpired:
                command.kill()
                raise
        return subprocess.CompletedProcess(arguments, command.returncode, stdout, stderr)

    def status(self) -> dict[str, object]:
        document: dict[str, object] = json.loads(self.type("status", "--json"))
        return document

    def await_no_client(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.status()["clients"]:
            assert time.monotonic() < deadline

    @property
    def latest(self) -> Path:
        return (self.directory / "store" / "standing" / "latest").resolve()


def environment(directory: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(directory / "state")}


@contextmanager
def open_terminal(directory: Path) -> Iterator[Terminal]:
    """Whatever a failed test leaves running is ended."""
    with one_process(directory, environment=environment(directory)) as ask:
        terminal = Terminal(directory, ask)
        try:
            yield terminal
        finally:
            leave_nothing(terminal.mark)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with open_terminal(tmp_path) as terminal:
        yield terminal


def lines(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last + 1))


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_everything_that_is_done_to_a_standing_cluster_is_judged(terminal: Terminal) -> None:
    shell = terminal.type
    assert "3 brokers and a controller serve" in shell("up", *FAST)
    assert "a cluster is up in" in shell("up", code=254)
    shell("topics", "create", "orders", "--replica-assignment", "0:1:2,1:2:0", "--config", "min.insync.replicas=2")
    shell("produce", "orders", stdin=lines(1, 100))
    shell("produce", "orders", "--key-separator", ":", "--acks", "1", stdin="a:first\na:second\nb:third\n")

    assert "was killed" in shell("chaos", "kill", "leader(orders-0)")
    assert "no-op: node 0 is down already" in shell("chaos", "kill", "0", code=1)
    assert "no-op: " in shell("chaos", "slow-disk", "2", "--delay", "0 ms", code=1), "what changes nothing is no fault"
    shell("chaos", "slow-disk", "2", "--delay", "1 ms")
    status = shell("status")
    assert "fault: kill on node 0 for " in status
    assert "fault: slow_disk on node 2 for " in status
    assert "2 faults in force" in status
    shell("chaos", "slow-disk", "2", "--delay", "0 ms")
    shell("chaos", "step", "until: {partition: orders-0, leader: 1, isr: [1, 2]}")
    assert "orders-0: leader 1" in (side_by_side := shell("inspect", "orders-0"))
    assert [row.split()[:4] for row in side_by_side.splitlines()[2:]] == [
        ["0", "-", "down", "files"],
        ["1", "leader,isr", "running", "broker"],
        ["2", "isr", "running", "broker"],
    ]
    metrics = json.loads(shell("status", "--json"))["metrics"]
    assert metrics["100"]["kafka_brokers"] == 2
    assert metrics["1"]["kafka_server_replicamanager_underreplicatedpartitions"] >= 1
    assert "0" not in metrics
    assert "links silent" in shell("chaos", "partition", "2", "controller")
    shell("chaos", "heal")
    shell("chaos", "start", "0")
    shell("chaos", "step", "until: {partition: all, isr: [0, 1, 2]}")

    read = shell("consume", "orders", "--from-beginning", "--max-messages", "103").splitlines()
    assert sorted(read) == sorted([*lines(1, 100).splitlines(), "first", "second", "third"])
    [prospect] = json.loads(shell("elect-leaders", "--dry-run", "--topic", "orders", "--partition", "0", "--json"))
    assert [each["records_lost"] for each in prospect["candidates"]] == [0, 0, 0]
    elected = shell("elect-leaders", "--election-type", "preferred", "--topic", "orders", "--partition", "0")
    assert elected == "orders-0: leader elected\n"
    move = ("reassign", "--topic", "orders", "--partition", "0", "--replicas", "2,1")
    assert "Successfully started partition reassignments for orders-0" in shell(*move)
    shell("chaos", "step", "until: {partition: orders-0, isr: [1, 2]}")
    assert "Reassignment of partition orders-0 is completed." in shell(*move, "--verify")
    shell("topics", "alter", "orders", "--config", "min.insync.replicas=1")
    described = shell("topics", "describe", "orders").splitlines()
    assert "Configs: min.insync.replicas=1" in described[0]
    assert described[1] == "\tTopic: orders\tPartition: 0\tLeader: 2\tReplicas: 2,1\tIsr: 1,2\tElr: \tLastKnownElr: "

    with terminal.start("produce", "orders") as killed:
        assert killed.stdin is not None
        killed.stdin.write(lines(101, 110))
        killed.stdin.flush()
        shell("consume", "orders", "--from-beginning", "--max-messages", "113")
        killed.kill()
    terminal.await_no_client()

    deleted = shell("delete-records", "--topic", "orders", "--partition", "0", "--offset", "1")
    assert deleted.splitlines()[1:] == ["partition: orders-0\tlow_watermark: 1"]
    assert "the cluster is up; end it with: laststand down" in shell("verify", str(terminal.latest), code=254)
    assert f"laststand verify {terminal.latest}" in shell("down")
    assert await_end(terminal.mark) == []
    assert "was taken down" in shell("status", code=254)
    assert "VALID: standing" in (verdict := shell("verify", "--judge", "here", str(terminal.latest)))
    assert "acks=all: 110 records sent, 110 acked, 0 lost" in verdict
    assert f"report: {terminal.latest.resolve() / 'report.html'}" in verdict
    assert (terminal.latest / "report.html").is_file()
    actions = [step.action for step in load_scenario(terminal.latest / "plan.yaml").steps]
    assert [type(action) for action in actions if not isinstance(action, conditions.Until)] == [
        *(CreateTopic, Kill, SlowDisk, SlowDisk, SlowDisk, Cut, HealAll, Start, ElectLeaders, Reassign, AlterConfig),
        DeleteRecords,
    ], "what was done can be played again"


def test_killing_the_supervisor_ends_everything(terminal: Terminal) -> None:
    terminal.type("up", "--brokers", "2", *FAST)
    terminal.type("topics", "create", "orders")
    terminal.type("chaos", "pause", "1")
    with terminal.start("consume", "orders") as consumer:
        deadline = time.monotonic() + DEADLINE_S
        while not (status := terminal.status())["clients"]:
            assert time.monotonic() < deadline
        assert len(survivors(terminal.mark)) == 7  # supervisor, its fork server, toxiproxy, three nodes, consumer
        pid = status["supervisor_pid"]
        assert isinstance(pid, int)
        os.kill(pid, signal.SIGKILL)
        assert consumer.wait(DEADLINE_S) == 255
    assert await_end(terminal.mark) == []
    assert "supervisor.sock is a leftover" in terminal.type("status", code=254)
    # What is left of a dead supervisor is in nobody's way.
    terminal.type("up", "--brokers", "1", "--no-proxies")
    assert "--no-proxies" in terminal.type("chaos", "isolate", "0", code=254)
    terminal.type("topics", "create", "orders")
    asked = terminal.type("chaos", "step", "transact: {partitions: [orders-0], records: 1}", code=254)
    assert "a standing cluster has no workload" in asked
    terminal.type("down", "--as-is")
    assert await_end(terminal.mark) == []


def test_interrupting_up_leaves_nothing(terminal: Terminal) -> None:
    with terminal.start("up", program=(sys.executable, "-m", "laststand.cli")) as up:
        deadline = time.monotonic() + DEADLINE_S
        # From here on the supervisor has its first child, which imports before it forks a node.
        while not any(map(children_of, children_of(up.pid))):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        up.send_signal(signal.SIGINT)
        assert up.wait(DEADLINE_S) == 130
    assert await_end(terminal.mark) == []
