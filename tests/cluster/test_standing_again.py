"""A standing cluster that is stopped, started, killed and started again, and all that its clients can do meanwhile."""

import json
import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psutil
import pytest
import yaml

from laststand.emulator.cluster.ports import ReservedPort
from tests.cluster.survivors import await_end, survivors
from tests.cluster.test_standing import DEADLINE_S, Terminal, lines, open_terminal

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A cluster named blue, with a topic, and a session that no busy machine misses."""
    with open_terminal(tmp_path_factory.mktemp("again")) as terminal:
        terminal.type("up", "--name", "blue", "--kafka")
        create = ("topics", "create", "orders", "--partitions", "2", "--replication-factor", "3", "--dir", "blue")
        terminal.type(*create, "--config", "min.insync.replicas=2")
        yield terminal


def blue(terminal: Terminal, *arguments: str, stdin: str = "", code: int = 0) -> str:
    return terminal.type(*arguments, "--dir", "blue", stdin=stdin, code=code)


def supervisor(terminal: Terminal) -> int:
    pid = json.loads(blue(terminal, "status", "--json"))["supervisor_pid"]
    assert isinstance(pid, int)
    return pid


def state(terminal: Terminal) -> str:
    clusters = json.loads(terminal.type("ps", "--all", "--json"))
    assert {cluster["name"] for cluster in clusters} == {"blue"}
    return ", ".join(cluster["state"] for cluster in clusters)


def await_state(terminal: Terminal, wanted: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while state(terminal) != wanted:
        assert time.monotonic() < deadline, f"not {wanted}, but {state(terminal)}"


def addresses(terminal: Terminal) -> list[str]:
    status = json.loads(blue(terminal, "status", "--json"))
    return [*(node["address"] for node in status["nodes"]), *status["bootstrap_servers"]["kafka"]]


@contextmanager
def kept_from_other_tests(addresses: list[str]) -> Iterator[None]:
    """Lets only whoever asks for these ports have them: another test could be given one while no process has it."""
    with ExitStack() as stack:
        for address in addresses:
            stack.enter_context(closing(ReservedPort(int(address.rpartition(":")[2])))).lend()
        yield


def test_everything_listens_on_loopback_and_the_socket_is_its_owners(terminal: Terminal) -> None:
    listeners: dict[str, set[str]] = {}
    for process in survivors(terminal.mark):
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                listeners.setdefault(process.name(), set()).add(connection.laddr.ip.removeprefix("::ffff:"))
    assert len(listeners) == 2, "nodes and toxiproxy-server"
    assert set().union(*listeners.values()) == {"127.0.0.1"}
    [path] = (terminal.directory / "store/standing/blue").glob("2*/supervisor.sock")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_group_goes_on_where_it_ended(terminal: Terminal, tmp_path: Path) -> None:
    source = tmp_path / "lines"
    source.write_text(lines(1, 50))
    told = ("--compression", "gzip", "--header", "from=file", "--timestamp-ms", "5", "--linger-ms", "10")
    blue(terminal, "produce", "orders", "--file", str(source), "--partition", "0", *told)
    read = ("consume", "orders", "--partition", "0", "--from-beginning", "--group", "g", "--max-messages", "20")
    assert blue(terminal, *read) == lines(1, 20)
    assert blue(terminal, *read) == lines(21, 40)
    offset = ("consume", "orders", "--partition", "0", "--offset", "49", "--max-messages", "1")
    shown = blue(terminal, *offset, "--print-timestamp", "--print-offset", "--print-headers")
    timestamp, position, headers, value = shown.rstrip("\n").split("\t")
    assert (timestamp, position, value) == ("CreateTime:5", "Offset:49", "line 50")
    assert headers.endswith(",from:file")
    assert "--offset goes with" in blue(terminal, "consume", "orders", "--offset", "1", code=254)


def test_topics_are_handled_as_kafkas_tools_do(terminal: Terminal) -> None:
    assert "exists already" in blue(terminal, "topics", "create", "--topic", "orders", "--if-not-exists")
    assert json.loads(blue(terminal, "topics", "create", "spare", "--json")) == {"topic": "spare", "created": True}
    assert blue(terminal, "topics", "describe", "--at-min-isr-partitions", "--topic", "orders") == ""
    assert "Topic: spare" in blue(terminal, "topics", "describe", "--at-min-isr-partitions")
    assert "Topic: orders" in (overridden := blue(terminal, "topics", "describe", "--topics-with-overrides"))
    assert "Topic: spare" not in overridden
    blue(terminal, "topics", "delete", "--topic", "spare")
    assert "no topic spare" in blue(terminal, "topics", "delete", "spare", "--if-exists")


def test_logs_show_what_a_node_did(terminal: Terminal) -> None:
    first = blue(terminal, "logs", "0", "--events").splitlines()[0]
    assert " 0-0 #0 NodeStarted role=broker " in first
    assert "the cluster serves" in blue(terminal, "logs")
    assert len(blue(terminal, "logs", "--tail", "2").splitlines()) == 2
    assert "no node 7; there are: 0, 1, 2, 100" in blue(terminal, "logs", "7", code=254)


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_cluster_goes_on_after_a_stop_and_after_its_supervisor_died(terminal: Terminal) -> None:
    before = addresses(terminal)
    [run] = (terminal.directory / "store/standing/blue").glob("2*")
    run_started = yaml.safe_load((run / "cluster.yaml").read_text())["started"]
    assert "--from excludes --brokers" in terminal.type("up", "--from", "blue", "--brokers", "3", code=254)
    assert "is up already" in terminal.type("start", "blue", code=254)
    blue(terminal, "produce", "orders", stdin=lines(51, 100))

    assert "laststand start" in terminal.type("stop", "blue")
    await_state(terminal, "stopped")
    with kept_from_other_tests(before):
        assert "was stopped" in blue(terminal, "status", code=254)
        terminal.type("start", "blue")
    assert addresses(terminal) == before
    assert [node["incarnation"] for node in json.loads(blue(terminal, "status", "--json"))["nodes"]] == [1, 1, 1, 1]
    blue(terminal, "produce", "orders", stdin=lines(101, 150))
    blue(terminal, "topics", "create", "last")

    os.kill(supervisor(terminal), signal.SIGKILL)
    await_state(terminal, "died")
    assert await_end(terminal.mark) == [], "a proxy that still ends has its port"
    with kept_from_other_tests(before):
        terminal.type("up", "--from", "blue")
    assert addresses(terminal) == before
    blue(terminal, "produce", "orders", stdin=lines(151, 200))

    os.kill(supervisor(terminal), signal.SIGTERM)
    await_state(terminal, "stopped")
    assert "an era with ZooKeeper" in terminal.type("start", "blue", "--era", "kafka-3.9-zk", code=254)
    assert "era=kafka-9 is not allowed" in terminal.type("start", "blue", "--era", "kafka-9", code=254)
    terminal.type("start", "--dir", "blue", "--era", "kip-966,recovering_gate=off")
    read = blue(terminal, "consume", "orders", "--from-beginning", "--max-messages", "200").splitlines()
    assert sorted(read) == sorted(lines(1, 200).splitlines())
    terminal.type("down", "blue")
    await_state(terminal, "down")
    assert "its record is closed" in terminal.type("start", "blue", code=254)
    assert await_end(terminal.mark) == []
    assert "VALID: blue" in (verdict := terminal.type("verify", "blue", "--judge", "here"))
    assert "acks=all: 200 records sent, 200 acked, 0 lost" in verdict
    told = json.loads((run / "verdict.json").read_text())
    assert told["started"] == run_started
    assert told["duration_s"] > 0
    statuses = {check["check_id"]: check["status"] for check in told["checks"]}
    assert statuses["M18"] == "not promised", "the last processes lack its rule"


def test_ports_are_those_that_were_asked_for(tmp_path: Path) -> None:
    free = ReservedPort()
    number = free.number
    free.close()
    with open_terminal(tmp_path) as terminal:
        terminal.type("up", "--brokers", "1", "--no-proxies", "--ports", str(number))
        nodes = json.loads(terminal.type("status", "--json"))["nodes"]
        assert [node["address"] for node in nodes if node["role"] == "broker"] == [f"127.0.0.1:{number}"]
        terminal.type("down")
