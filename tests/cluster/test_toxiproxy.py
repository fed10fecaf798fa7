"""Links through a real toxiproxy-server: what each state lets through, and what counts as a change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import psutil
import pytest

from laststand.emulator.cluster.child import EndCause
from laststand.emulator.cluster.ports import LOOPBACK, ReservedPort
from laststand.emulator.cluster.probe import ProbeOutcome, probe
from laststand.emulator.cluster.supervisor import Supervisor
from laststand.emulator.cluster.toxiproxy import PROCESS_NAME, Link, Toxiproxy, ToxiproxyError, both_ways
from laststand.emulator.cluster.toxiproxy_build import find_toxiproxy
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.rpc.run_token import RunToken

pytestmark = pytest.mark.cluster

THERE = Link(NodeId(0), NodeId(1))
BACK = Link(NodeId(1), NodeId(0))
DEADLINE_S = 20.0
SILENCE_S = 0.15
LATENCY_MS = 100


class Echo:
    """A server that greets each connection, as HTTP/2 servers do, remembers what arrives and sends it back."""

    def __init__(self) -> None:
        self.received = asyncio.Queue[bytes]()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Echo":
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"!")
        try:
            while received := await reader.read(1024):
                self.received.put_nowait(received)
                writer.write(received)
        except ConnectionError:
            pass
        self.received.put_nowait(b"")
        writer.close()


class Caller:
    """A connection through a link, greeted already."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, text: bytes) -> None:
        self._writer.write(text)

    async def next_bytes(self) -> bytes:
        """The next bytes, or nothing if the connection was closed or reset."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self._reader.read(1024)
            except ConnectionError:
                return b""

    async def is_silent(self) -> bool:
        try:
            async with asyncio.timeout(SILENCE_S):
                await self._reader.read(1024)
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def caller(proxies: Toxiproxy, link: Link) -> AsyncIterator[Caller]:
    reader, writer = await asyncio.open_connection(*proxies.address(link).rsplit(":"))
    connection = Caller(reader, writer)
    assert await connection.next_bytes() == b"!"
    yield connection
    connection.close()


async def arrived(echo: Echo) -> bytes:
    async with asyncio.timeout(DEADLINE_S):
        return await echo.received.get()


async def start(supervisor: Supervisor, log_path: Path, *, program: Path | None = None) -> Toxiproxy:
    token_file = log_path.with_name("token")
    RunToken.read_or_draw(token_file)
    return await Toxiproxy.start(
        supervisor=supervisor, program=program or find_toxiproxy(), log_path=log_path, token_file=token_file
    )


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    async with Supervisor() as owner:
        yield owner


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    async with Echo() as server:
        yield server


@pytest.fixture
async def proxies(supervisor: Supervisor, echo: Echo, tmp_path: Path) -> AsyncIterator[Toxiproxy]:
    server = await start(supervisor, tmp_path / "toxiproxy.log")
    await server.create({THERE: echo.address, BACK: echo.address})
    yield server
    await server.stop()


async def test_an_open_link_passes_bytes_both_ways(proxies: Toxiproxy, echo: Echo) -> None:
    async with caller(proxies, THERE) as connection:
        connection.send(b"one")
        assert await arrived(echo) == b"one"
        assert await connection.next_bytes() == b"one"
    assert proxies.broken == ()
    assert await proxies.probe(THERE, timeout_s=DEADLINE_S) is ProbeOutcome.PASSES


async def test_a_cut_silences_connections_old_and_new_and_leaves_the_way_back(proxies: Toxiproxy, echo: Echo) -> None:
    async with caller(proxies, THERE) as connection:
        assert await proxies.cut([THERE]) == (THERE,)
        connection.send(b"lost")
        assert await connection.is_silent()
        assert echo.received.empty()
    assert await proxies.probe(THERE, timeout_s=SILENCE_S) is ProbeOutcome.SILENT
    assert await proxies.probe(BACK, timeout_s=DEADLINE_S) is ProbeOutcome.PASSES
    assert proxies.broken == (THERE,)
    assert proxies.is_blocked(THERE)


async def test_a_cut_lets_a_close_through(proxies: Toxiproxy, echo: Echo) -> None:
    async with caller(proxies, THERE) as connection:
        await proxies.cut([THERE])
        connection.close()
        assert await arrived(echo) == b""


async def test_lost_responses_still_let_requests_arrive(proxies: Toxiproxy, echo: Echo) -> None:
    async with caller(proxies, THERE) as connection:
        assert await proxies.lose_responses([THERE]) == (THERE,)
        connection.send(b"executed")
        assert await arrived(echo) == b"executed"
        assert await connection.is_silent()
    assert await proxies.probe(THERE, timeout_s=SILENCE_S) is ProbeOutcome.SILENT


async def test_a_cut_adds_to_lost_responses(proxies: Toxiproxy, echo: Echo) -> None:
    await proxies.lose_responses([THERE])
    assert await proxies.cut([THERE]) == (THERE,)
    assert await proxies.probe(THERE, timeout_s=SILENCE_S) is ProbeOutcome.SILENT
    assert echo.received.empty()


@pytest.mark.parametrize("fault", ["cut", "lose_responses"])
async def test_restoring_closes_what_was_silenced_and_passes_again(proxies: Toxiproxy, fault: str) -> None:
    async with caller(proxies, THERE) as connection:
        await (proxies.cut([THERE]) if fault == "cut" else proxies.lose_responses([THERE]))
        assert await proxies.restore([THERE, BACK]) == (THERE,)
        assert await connection.next_bytes() == b""
    assert proxies.broken == ()
    assert await proxies.probe(THERE, timeout_s=DEADLINE_S) is ProbeOutcome.PASSES


async def test_what_changes_nothing_is_reported_as_no_change(proxies: Toxiproxy) -> None:
    assert await proxies.restore([THERE, BACK]) == ()
    await proxies.cut([THERE])
    assert await proxies.cut([THERE]) == ()
    assert await proxies.lose_responses([THERE]) == ()
    assert len(proxies.toxics(THERE)) == 2
    await proxies.lose_responses([BACK])
    assert await proxies.lose_responses([BACK]) == ()


async def test_a_fault_behind_our_back_is_unmasked_by_the_probe(proxies: Toxiproxy, echo: Echo) -> None:
    # The proxy is bypassed: a cut is in force, and bytes pass nevertheless.
    await proxies.cut([THERE])
    assert await probe(echo.address, timeout_s=DEADLINE_S) is ProbeOutcome.PASSES


async def test_a_target_that_does_not_listen_is_neither_open_nor_silent(proxies: Toxiproxy) -> None:
    nobody = ReservedPort()
    link = Link(NodeId(0), NodeId(7))
    await proxies.create({link: nobody.address})
    assert await probe(nobody.address, timeout_s=DEADLINE_S) is ProbeOutcome.CLOSED
    assert await proxies.probe(link, timeout_s=DEADLINE_S) is ProbeOutcome.CLOSED
    nobody.close()


async def test_a_probe_through_a_link_is_answered_by_grpc(proxies: Toxiproxy) -> None:
    port = ReservedPort()
    port.lend()
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_insecure_port(port.address)
    await server.start()
    link = Link(CLIENT, NodeId(1))
    await proxies.create({link: port.address})
    assert await proxies.probe(link, timeout_s=DEADLINE_S) is ProbeOutcome.PASSES
    await proxies.cut([link])
    assert await proxies.probe(link, timeout_s=SILENCE_S) is ProbeOutcome.SILENT
    await proxies.restore([link])
    assert await proxies.probe(link, timeout_s=DEADLINE_S) is ProbeOutcome.PASSES
    await server.stop(0)
    port.close()


async def test_links_are_found_by_either_end_and_exist_once(proxies: Toxiproxy, echo: Echo) -> None:
    third = Link(CLIENT, NodeId(0))
    await proxies.create({third: echo.address})
    assert proxies.links == (THERE, BACK, third)
    assert proxies.links_of(NodeId(1)) == (THERE, BACK)
    assert proxies.links_of(CLIENT) == (third,)
    with pytest.raises(ToxiproxyError, match="client->0 exists"):
        await proxies.create({third: echo.address})


async def test_hundreds_of_links_are_one_request(proxies: Toxiproxy, echo: Echo) -> None:
    many = {Link(NodeId(a), NodeId(b)): echo.address for a in range(2, 18) for b in range(2, 18) if a != b}
    await proxies.create(many)
    assert len({proxies.address(link) for link in many}) == 240
    last = Link(NodeId(17), NodeId(16))
    assert await proxies.probe(last, timeout_s=DEADLINE_S) is ProbeOutcome.PASSES


async def test_two_servers_in_one_process_are_apart(
    proxies: Toxiproxy, echo: Echo, supervisor: Supervisor, tmp_path: Path
) -> None:
    async with Supervisor() as second:
        others = await start(second, tmp_path / "second.log")
        await others.create({THERE: echo.address})
        assert await others.cut([THERE]) == (THERE,)
        assert await proxies.probe(THERE, timeout_s=DEADLINE_S) is ProbeOutcome.PASSES
        assert await others.probe(THERE, timeout_s=SILENCE_S) is ProbeOutcome.SILENT
        await others.stop()
    assert [end.cause for end in second.ends] == [EndCause.STOPPED]


async def test_a_delayed_link_takes_its_time_both_ways(proxies: Toxiproxy, echo: Echo) -> None:
    await proxies.apply([THERE], both_ways("latency", latency=LATENCY_MS))
    loop = asyncio.get_running_loop()
    async with caller(proxies, THERE) as connection:
        sent = loop.time()
        connection.send(b"slow")
        assert await arrived(echo) == b"slow"
        there = loop.time()
        assert await connection.next_bytes() == b"slow"
        back = loop.time()
    # The echo may be on its way back for some time before this task hears that the bytes arrived.
    assert there - sent >= LATENCY_MS / 1000 * 0.9
    assert back - sent >= 2 * LATENCY_MS / 1000 * 0.9


async def test_a_toxic_takes_the_place_of_one_of_its_kind(proxies: Toxiproxy) -> None:
    slow, slower = both_ways("latency", latency=1), both_ways("latency", latency=LATENCY_MS)
    assert await proxies.apply([THERE], slow) == (THERE,)
    assert await proxies.apply([THERE], slow) == ()
    assert await proxies.apply([THERE], slower) == (THERE,)
    assert proxies.toxics(THERE) == slower
    assert await proxies.remove([THERE, BACK], slower) == (THERE,)
    assert proxies.broken == ()


async def test_the_server_listens_on_loopback_only(proxies: Toxiproxy, supervisor: Supervisor) -> None:
    process = psutil.Process(supervisor.children[PROCESS_NAME].pid)
    listening = {c.laddr.ip for c in process.net_connections(kind="inet") if c.status == psutil.CONN_LISTEN}
    assert listening == {LOOPBACK}


async def test_a_server_that_is_gone_is_an_error_and_an_unexpected_end(
    proxies: Toxiproxy, supervisor: Supervisor
) -> None:
    child = supervisor.children[PROCESS_NAME]
    psutil.Process(child.pid).kill()
    async with asyncio.timeout(DEADLINE_S):
        assert (await child.wait()).cause is EndCause.UNEXPECTED
    with pytest.raises(ToxiproxyError, match="POST /proxies/0->1/toxics"):
        await proxies.cut([THERE])


async def test_proxy_settings_of_the_environment_are_not_for_us(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server = await start(supervisor, tmp_path / "log")
    await server.stop()


async def test_a_program_that_ends_at_once_is_an_error(supervisor: Supervisor, tmp_path: Path) -> None:
    with pytest.raises(ToxiproxyError, match="start"):
        await start(supervisor, tmp_path / "log", program=Path("/bin/false"))
    assert [end.cause for end in supervisor.ends] == [EndCause.UNEXPECTED]
