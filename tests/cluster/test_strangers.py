"""A running cluster as another local user meets it: no port takes an order, and nothing but metrics is read."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from laststand.chaos.process.client_link import ClientLink, ClientLostError
from laststand.emulator.client.control import AckedCount, ClientCounts, Ready, encode_line
from laststand.emulator.cluster.layout import token_file
from laststand.emulator.rpc.run_token import RunToken
from tests.cluster.survivors import survivors
from tests.cluster.test_standing import FAST, Terminal, open_terminal

pytestmark = pytest.mark.cluster

PROGRAM = Path(__file__).with_name("stranger.py")
NEVER = ("answered", "OK", "200", "201", "204", "was possible")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A cluster with proxies and a live view, and broker 2 down."""
    tmp_path.chmod(0o755)  # as a home directory often is
    with open_terminal(tmp_path) as terminal:
        terminal.type("up", "--view", *FAST)
        terminal.type("topics", "create", "orders", "--replication-factor", "3")
        terminal.type("produce", "orders", stdin="one\ntwo\n")
        terminal.type("chaos", "kill", "2")
        yield terminal


def listeners(mark: str) -> set[tuple[str, int]]:
    return {
        (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for process in survivors(mark)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def outcomes(targets: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], input=json.dumps(targets), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [(where, what, outcome) for where, what, outcome in json.loads(done.stdout)]


@pytest.mark.timeout(300)
def test_another_user_can_give_no_order_and_read_nothing_but_metrics(terminal: Terminal) -> None:
    before, run = listeners(terminal.mark), terminal.latest
    status = terminal.status()
    nodes = status["nodes"]
    assert isinstance(nodes, list)
    ports = {port for _, port in before}
    node_ports = {str(node["address"].rpartition(":")[2]) for node in nodes if node["node_id"] != 2}
    metrics_ports = {str(node["metrics_url"].split(":")[2].partition("/")[0]) for node in nodes}
    found = outcomes(
        {
            "ports": sorted(map(str, ports)),
            "paths": [str(run), str(token_file(run)), str(run / "events"), str(run / "supervisor.json")],
            "sockets": [str(run / "supervisor.sock")],
            "down": [str(node["address"].rpartition(":")[2]) for node in nodes if node["node_id"] == 2],
        }
    )
    granted = [each for each in found if each[2].startswith(NEVER) or each[2].endswith(NEVER)]
    assert {(where, what) for where, what, _ in granted} <= {(port, "GET /metrics") for port in metrics_ports}
    assert {outcome for where, what, outcome in found if where in node_ports and "call" in what} == {"UNAUTHENTICATED"}
    refused_by_toxiproxy = {where for where, what, outcome in found if (what, outcome) == ("POST /proxies", "401")}
    assert len(refused_by_toxiproxy) == 1

    assert listeners(terminal.mark) == before
    assert {ip for ip, _ in before} == {"127.0.0.1"}
    terminal.type("chaos", "start", "2")
    read = terminal.type("consume", "orders", "--from-beginning", "--max-messages", "2")
    assert read.splitlines() == ["one", "two"]


def test_the_token_is_in_no_command_line_log_or_file_that_stays(terminal: Terminal) -> None:
    run = terminal.latest
    token = token_file(run).read_text()
    assert oct(token_file(run).stat().st_mode)[-3:] == "600"
    assert oct(run.stat().st_mode)[-3:] == "700"
    for process in survivors(terminal.mark):
        assert token not in " ".join(process.cmdline())
        assert token not in " ".join(process.environ().values())
    terminal.type("chaos", "start", "2")
    terminal.type("status")
    terminal.type("down")
    assert not token_file(run).exists()
    assert [path for path in run.rglob("*") if path.is_file() and token.encode() in path.read_bytes()] == []


async def test_no_other_process_is_taken_for_the_client_process() -> None:
    token = RunToken.draw()
    link = ClientLink(on_counts=lambda: None)
    port = await link.listen(token)
    counts = ClientCounts(
        acked=(AckedCount(acks=-1, topic="orders", partition=0, records=9),), failed=0, unknown=0, consumed=0
    )
    for first in (b"", b"0" * 64 + b"\n", bytes(1 << 16)):
        reader, stranger = await asyncio.open_connection("127.0.0.1", port)
        stranger.write(first + encode_line(Ready()) + encode_line(counts))
        stranger.write_eof()
        assert await asyncio.wait_for(reader.read(), 30) == b""
        stranger.close()
    assert link.counts.acked == ()
    with pytest.raises(ClientLostError):
        link.start_work({})
    reader, own = await asyncio.open_connection("127.0.0.1", port)
    own.write(token.line + encode_line(counts))
    own.write_eof()
    await reader.read()
    assert link.counts == counts
    await link.close()
    own.close()
