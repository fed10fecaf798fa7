"""A standing cluster around a ZooKeeper server, by the commands that a user types."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from laststand.chaos.standing.state import Ended, read_state
from laststand.emulator.core.zookeeper.inter_broker_protocol import PROPERTY
from laststand.emulator.storage.line_file import stream_lines
from laststand.emulator.zookeeper.transaction_log import TransactionLogReader
from tests.cluster.survivors import await_end
from tests.cluster.test_standing import FAST, Terminal, lines, open_terminal

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with open_terminal(tmp_path) as terminal:
        yield terminal


def held(terminal: Terminal) -> tuple[int | None, int]:
    """Returns the controller and its epoch."""
    held = terminal.status()["zookeeper"]
    assert isinstance(held, dict)
    return held["controller"], held["controller_epoch"]


def protocols_of(terminal: Terminal, broker: int) -> list[str]:
    """Returns the protocol version that each process of a broker has spoken."""
    paths = sorted((terminal.latest / "events").glob(f"{broker}-*.packed"))
    return [json.loads(next(stream_lines(path)))["properties"][PROPERTY] for path in paths]


@pytest.mark.spark
def test_everything_that_is_done_to_it_is_judged(terminal: Terminal) -> None:
    shell = terminal.type
    # The balance that a controller makes five seconds after its election may come before what is asked for.
    settings = (*FAST, "--set", "auto.leader.rebalance.enable=false")
    assert "3 brokers and a ZooKeeper server serve" in shell("up", "--era", "kafka-3.9-zk", *settings)
    shell("topics", "create", "orders", "--replica-assignment", "0:1:2,1:2:0", "--config", "min.insync.replicas=2")
    shell("topics", "create", "placed", "--partitions", "2", "--replication-factor", "2")
    shell("produce", "orders", stdin=lines(1, 100))
    controller, controller_epoch = held(terminal)
    assert f"controller: broker {controller}, controller epoch {controller_epoch}" in shell("status")
    assert "/controller  version 0, mzxid" in (tree := shell("inspect", "/"))
    assert f'"brokerid":{controller},' in tree
    [state] = json.loads(shell("inspect", "/brokers/topics/orders/partitions/0/state", "--json"))
    assert json.loads(state["data"])["isr"] == [0, 1, 2]

    # Another controller takes over, and the cluster goes on where its server died.
    assert f"of broker {controller} is over" in shell("chaos", "expire-session", str(controller))
    shell("chaos", "step", "until: {partition: orders-0, isr: [0, 1, 2]}")
    shell("chaos", "step", "until: {partition: orders-1, isr: [0, 1, 2]}")
    assert held(terminal)[1] == controller_epoch + 1
    assert "was killed" in shell("chaos", "kill", "zookeeper")
    assert "incarnation 1 listens" in shell("chaos", "start", "zookeeper")
    shell("produce", "orders", stdin=lines(101, 110))
    slow_disk = "slow_disk: {node: zookeeper, delay: 10 ms}"
    assert "the machine's disk" in shell("chaos", "step", slow_disk, code=254)
    assert "links silent" in shell("chaos", "partition", "2", "zookeeper")
    shell("chaos", "heal")
    # On a busy machine broker 2 loses its session while it is cut off, and comes back.
    shell("chaos", "step", "until: {partition: orders-1, isr: [0, 1, 2]}")

    shell("chaos", "kill", "1")
    # Else the node of its former session is still there, and it ends.
    shell("chaos", "step", "until: {node: 1, registered: false}")
    shell("chaos", "step", "until: {partition: orders-1, leader: 2}")
    shell("chaos", "start", "1")
    shell("chaos", "step", "until: {partition: orders-1, isr: [0, 1, 2]}")
    elected = shell("elect-leaders", "--election-type", "preferred", "--topic", "orders", "--partition", "1")
    assert elected == "orders-1: leader elected\n"
    assert [row.split()[:4] for row in shell("inspect", "orders-1").splitlines()[2:]] == [
        ["1", "leader,isr", "running", "broker"],
        ["2", "isr", "running", "broker"],
        ["0", "isr", "running", "broker"],
    ]
    move = ("reassign", "--topic", "orders", "--partition", "0", "--replicas", "2,1")
    shell(*move)
    shell("chaos", "step", "until: {partition: orders-0, isr: [1, 2]}")
    assert "Reassignment of partition orders-0 is completed." in shell(*move, "--verify")
    shell("topics", "alter", "placed", "--partitions", "3", "--config", "min.insync.replicas=1")
    assert "PartitionCount: 3" in (described := shell("topics", "describe", "placed"))
    assert "Configs: min.insync.replicas=1" in described
    assert "UNSUPPORTED_VERSION" in shell("features", "describe", code=254)
    shell("topics", "delete", "placed")

    shell("down")
    assert await_end(terminal.mark) == []
    assert '"partitions":{"0":[2,1],' in shell("inspect", "/brokers/topics/orders"), (
        "its log tells of it when it is down"
    )
    assert "VALID: standing" in (verdict := shell("verify", str(terminal.latest), "--judge", "here"))
    assert "acks=all: 110 records sent, 110 acked, 0 lost" in verdict


@pytest.mark.spark
def test_it_goes_on_after_a_stop_and_after_its_supervisor_died(terminal: Terminal) -> None:
    shell = terminal.type
    shell("up", "--era", "kafka-2.6-zk", "--set", "inter.broker.protocol.version=2.5", *FAST)
    shell("topics", "create", "orders", "--replica-assignment", "0:1:2")
    shell("produce", "orders", stdin=lines(1, 10))
    # A broker whose protocol is raised keeps it, whatever starts it again.
    for start in ("{node: 1, inter.broker.protocol.version: 2.6}", "{node: 1}"):
        shell("chaos", "step", "stop: {node: 1}")
        shell("chaos", "step", f"start: {start}")
    _, controller_epoch = held(terminal)
    shell("stop")
    shell("start")
    assert held(terminal)[1] > controller_epoch
    shell("produce", "orders", stdin=lines(11, 20))
    pid = terminal.status()["supervisor_pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    assert await_end(terminal.mark) == [], "the server and the brokers die with it"
    shell("start")
    assert shell("consume", "orders", "--from-beginning", "--max-messages", "20") == lines(1, 20)
    assert protocols_of(terminal, 1) == ["2.5-IV0", *["2.6-IV0"] * 4]
    assert set(protocols_of(terminal, 2)) == {"2.5-IV0"}
    shell("down")
    state = read_state(terminal.latest)
    assert state is not None
    assert (state.ended, state.problem) == (Ended.DOWN, None)
    told = [
        json.loads(line).get("metadata_offset", 0)
        for path in sorted((terminal.latest / "events").glob("100-*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    log = TransactionLogReader(terminal.latest / "nodes" / "100" / "data")
    logged = {transaction.zxid for transaction in log.read_new()}
    assert set(told) - {0} == logged, "what the supervisor that died had not read is on record, too"
    verdict = shell("verify", str(terminal.latest), "--judge", "here")
    assert "acks=all: 20 records sent, 20 acked, 0 lost" in verdict


def test_what_cannot_be_is_refused_in_one_line(terminal: Terminal) -> None:
    shell = terminal.type
    shell("up", "--brokers", "1", *FAST)
    refused = shell("chaos", "expire-session", "0", code=254)
    assert "there is no ZooKeeper in this era" in refused
    assert len(refused.splitlines()) == 1
    assert "has no ZooKeeper" in shell("inspect", "/", code=254)
    shell("down")
