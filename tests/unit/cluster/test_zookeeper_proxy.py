"""ZooKeeper's frames between a broker and a server that the test plays: what waits for what, and what passes."""

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Final

import pytest

from laststand.emulator.cluster.zookeeper_proxy import ZooKeeperProxy
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId, Way
from laststand.emulator.rpc.frame_proxy import read_frame, write_frame
from laststand.emulator.rpc.interception import InterceptionOrder, Interceptor, Intervention, MessageKind

BROKER, SERVER = NodeId(2), NodeId(100)
WITHIN_S: Final = 10.0
EXISTS, SET_DATA, MULTI, PING = 3, 5, 14, 11
PING_XID, WATCH_XID = -2, -1


class Peer:
    """One end of a connection; frames are known by their xids."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def greet(self, *, session_id: int = 0) -> None:
        write_frame(self.writer, struct.pack(">iqiq", 0, 0, 1000, session_id))

    def ask(self, xid: int, operation: int) -> None:
        write_frame(self.writer, struct.pack(">ii", xid, operation))

    def answer(self, *xids: int) -> None:
        for xid in xids:
            write_frame(self.writer, struct.pack(">iqi", xid, 7, 0))

    async def receive(self, number: int) -> list[int]:
        """Returns the first numbers of so many frames."""
        async with asyncio.timeout(WITHIN_S):
            frames = [await read_frame(self.reader) for _ in range(number)]
        return [int.from_bytes(frame[:4], "big", signed=True) for frame in frames]

    async def ends(self) -> bool:
        """Returns whether nothing comes any more but the end of the connection."""
        async with asyncio.timeout(WITHIN_S):
            return not await self.reader.read()


class Link:
    """A proxy, the server behind it, and what was touched."""

    def __init__(self) -> None:
        self.touched: list[str] = []
        self.interceptor = Interceptor(SERVER, record=self._note)
        self._accepted: asyncio.Queue[Peer] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self._proxy = ZooKeeperProxy(
            source=BROKER, target_address=f"127.0.0.1:{port}", interceptor=lambda: self.interceptor
        )
        self._address = await self._proxy.open()

    async def close(self) -> None:
        await self._proxy.close()
        self._server.close()
        for writer in self._writers:
            writer.close()

    def _note(self, event: events.MessageIntercepted) -> None:
        self.touched.append(f"{event.channel} {event.fate.value}")

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._accepted.put_nowait(Peer(reader, writer))

    async def dial(self, *, session_id: int) -> tuple[Peer, Peer]:
        """Returns broker and server of a connection on which the broker has asked for a session."""
        host, _, port = self._address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        self._writers.append(writer)
        broker = Peer(reader, writer)
        broker.greet(session_id=session_id)
        async with asyncio.timeout(WITHIN_S):
            server = await self._accepted.get()
        assert await server.receive(1) == [0]
        server.answer(0)
        return broker, server

    async def connect(self) -> tuple[Peer, Peer]:
        """Returns broker and server of a connection whose session is open."""
        broker, server = await self.dial(session_id=0)
        assert await broker.receive(1) == [0]
        return broker, server

    def order(self, intervention: Intervention, api: str, way: Way, *, count: int | None = None) -> None:
        kind = MessageKind(BROKER, api, way)
        assert self.interceptor.obey(InterceptionOrder(intervention=intervention, kind=kind, count=count)).is_changed


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    opened = Link()
    await opened.open()
    yield opened
    await opened.close()


async def test_without_an_order_everything_passes(link: Link) -> None:
    broker, server = await link.connect()
    broker.ask(1, EXISTS)
    broker.ask(PING_XID, PING)
    assert await server.receive(2) == [1, PING_XID]
    server.answer(WATCH_XID, 1, PING_XID)
    assert await broker.receive(3) == [WATCH_XID, 1, PING_XID]
    assert link.touched == []


async def test_what_comes_after_a_held_request_waits_but_for_pings(link: Link) -> None:
    link.order(Intervention.HOLD, "SetData", Way.REQUEST)
    broker, server = await link.connect()
    broker.ask(1, SET_DATA)
    broker.ask(2, EXISTS)
    broker.ask(PING_XID, PING)
    assert await server.receive(1) == [PING_XID]
    link.order(Intervention.RELEASE, "SetData", Way.REQUEST)
    assert await server.receive(2) == [1, 2]
    assert link.touched == ["2->100 SetData request held", "2->100 SetData request released"]


async def test_what_comes_after_a_held_answer_waits_and_so_do_events_of_watches(link: Link) -> None:
    link.order(Intervention.HOLD, "Multi", Way.RESPONSE)
    broker, server = await link.connect()
    broker.ask(1, MULTI)
    broker.ask(2, EXISTS)
    assert await server.receive(2) == [1, 2]
    server.answer(1, WATCH_XID, 2, PING_XID)
    assert await broker.receive(1) == [PING_XID]
    link.order(Intervention.RELEASE, "Multi", Way.RESPONSE)
    assert await broker.receive(3) == [1, WATCH_XID, 2]


async def test_after_a_lost_answer_the_broker_gets_nothing_and_the_server_everything(link: Link) -> None:
    link.order(Intervention.LOSE_NEXT, "SetData", Way.RESPONSE, count=1)
    broker, server = await link.connect()
    broker.ask(1, EXISTS)
    broker.ask(2, SET_DATA)
    broker.ask(3, SET_DATA)
    assert await server.receive(3) == [1, 2, 3]
    server.answer(1, 2, 3, PING_XID)
    assert await broker.receive(1) == [1]
    broker.writer.write_eof()
    assert await broker.ends()
    assert link.touched == ["2->100 SetData response lost"]
    again, behind = await link.connect()
    again.ask(4, SET_DATA)
    assert await behind.receive(1) == [4]
    behind.answer(4)
    assert await again.receive(1) == [4]


async def test_after_a_lost_request_the_server_gets_nothing(link: Link) -> None:
    link.order(Intervention.LOSE_NEXT, "Execute", Way.REQUEST, count=1)
    broker, server = await link.connect()
    broker.ask(1, MULTI)
    broker.ask(2, MULTI)
    broker.ask(PING_XID, PING)
    broker.writer.write_eof()
    assert await server.ends()
    assert link.touched == ["2->100 Execute request lost"]


async def test_a_held_request_arrives_though_its_sender_has_given_it_up(link: Link) -> None:
    link.order(Intervention.HOLD, "Execute", Way.REQUEST)
    broker, server = await link.connect()
    broker.ask(1, SET_DATA)
    broker.ask(PING_XID, PING)
    assert await server.receive(1) == [PING_XID]
    broker.writer.close()
    link.order(Intervention.RELEASE, "Execute", Way.REQUEST)
    assert await server.receive(1) == [1]
    server.answer(1)
    assert await server.ends()


@pytest.mark.parametrize(("session_id", "api"), [(0, "OpenSession"), (5, "Connect")])
async def test_a_session_is_opened_or_gone_on_with(link: Link, session_id: int, api: str) -> None:
    link.order(Intervention.LOSE_NEXT, api, Way.RESPONSE, count=1)
    broker, server = await link.dial(session_id=session_id)
    server.writer.write_eof()
    assert await broker.ends()
    assert link.touched == [f"2->100 {api} response lost"]
