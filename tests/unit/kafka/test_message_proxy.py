"""Frames between a dialler and a node that the test plays: what is held, lost and sent twice, and in which order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from laststand.emulator.core import events
from laststand.emulator.core.types import MessageFate, NodeId, Way
from laststand.emulator.kafka.api_names import API_KEYS
from laststand.emulator.kafka.message_proxy import MessageProxy
from laststand.emulator.rpc.interception import InterceptionOrder, Interceptor, Intervention, MessageKind

BROKER, NODE = NodeId(0), NodeId(1)
PRODUCE, FETCH, ALTER_PARTITION = (API_KEYS[name] for name in ("Produce", "Fetch", "AlterPartition"))
API_VERSIONS = 18
REQUESTS: Final = MessageKind(BROKER, "AlterPartition", Way.REQUEST)
RESPONSES: Final = MessageKind(BROKER, "AlterPartition", Way.RESPONSE)
WITHIN_S: Final = 10.0


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


class Peer:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def ask(self, number: int, api_key: int = ALTER_PARTITION) -> None:
        header = api_key.to_bytes(2, "big") + bytes(2) + number.to_bytes(4, "big")
        self.writer.write(frame(header + b"request %d" % number))

    def answer(self, number: int) -> None:
        self.writer.write(frame(number.to_bytes(4, "big") + b"answer %d" % number))

    async def receive(self) -> str:
        """Returns the next frame's text, ``end`` when the connection has ended."""
        try:
            async with asyncio.timeout(WITHIN_S):
                size = int.from_bytes(await self.reader.readexactly(4), "big")
                content = await self.reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return "end"
        return content[content.index(b"request" if b"request" in content else b"answer") :].decode()


class Link:
    """A proxy, the node behind it, and what the interceptor told."""

    def __init__(self) -> None:
        self.touched: list[events.MessageIntercepted] = []
        self.interceptor = Interceptor(NODE, record=self._note)
        self._changed = asyncio.Event()
        self._accepted: asyncio.Queue[Peer] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []
        self.address = ""

    @asynccontextmanager
    async def open(self, *, is_to_controller: bool = False) -> AsyncIterator["Link"]:
        node = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        proxy = MessageProxy(
            source=BROKER,
            target=NODE,
            target_address=f"127.0.0.1:{node.sockets[0].getsockname()[1]}",
            is_to_controller=is_to_controller,
            interceptor=lambda: self.interceptor,
        )
        self.address = await proxy.open()
        try:
            yield self
        finally:
            await proxy.close()
            node.close()
            for writer in self._writers:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    def _note(self, event: events.MessageIntercepted) -> None:
        self.touched.append(event)
        self._changed.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._accepted.put_nowait(Peer(reader, writer))

    async def dial(self) -> Peer:
        host, _, port = self.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        self._writers.append(writer)
        return Peer(reader, writer)

    async def connect(self) -> tuple[Peer, Peer]:
        """Returns the two ends of a new connection: the dialler's and the node's."""
        dialler = await self.dial()
        async with asyncio.timeout(WITHIN_S):
            return dialler, await self._accepted.get()

    def order(self, intervention: Intervention, kind: MessageKind = REQUESTS, *, count: int | None = None) -> None:
        assert self.interceptor.obey(InterceptionOrder(intervention=intervention, kind=kind, count=count)).is_changed

    async def fates(self, number: int) -> list[MessageFate]:
        """Returns what was done to messages, once it was done to so many."""
        async with asyncio.timeout(WITHIN_S):
            while len(self.touched) < number:
                self._changed.clear()
                await self._changed.wait()
        return [each.fate for each in self.touched]


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    async with Link().open() as opened:
        yield opened


async def test_without_an_order_everything_passes(link: Link) -> None:
    dialler, node = await link.connect()
    dialler.ask(1)
    assert await node.receive() == "request 1"
    node.answer(1)
    assert await dialler.receive() == "answer 1"
    assert link.touched == []


async def test_a_held_request_waits_and_others_pass_but_their_answers_keep_their_order(link: Link) -> None:
    link.order(Intervention.HOLD)
    dialler, node = await link.connect()
    dialler.ask(1)
    dialler.ask(2, FETCH)
    assert await node.receive() == "request 2"
    node.answer(2)
    link.order(Intervention.RELEASE)
    assert await node.receive() == "request 1"
    node.answer(1)
    assert [await dialler.receive(), await dialler.receive()] == ["answer 1", "answer 2"]
    assert await link.fates(2) == [MessageFate.HELD, MessageFate.RELEASED]


async def test_a_held_request_arrives_though_its_sender_has_given_it_up(link: Link) -> None:
    link.order(Intervention.HOLD)
    dialler, node = await link.connect()
    dialler.ask(1)
    await link.fates(1)
    dialler.writer.close()
    link.order(Intervention.RELEASE)
    assert await node.receive() == "request 1"
    node.answer(1)
    assert await node.receive() == "end"


async def test_a_held_answer_holds_those_behind_it(link: Link) -> None:
    link.order(Intervention.HOLD, RESPONSES)
    dialler, node = await link.connect()
    dialler.ask(1)
    dialler.ask(2, FETCH)
    assert [await node.receive(), await node.receive()] == ["request 1", "request 2"]
    node.answer(1)
    node.answer(2)
    await link.fates(1)
    link.order(Intervention.RELEASE, RESPONSES)
    assert [await dialler.receive(), await dialler.receive()] == ["answer 1", "answer 2"]


@pytest.mark.parametrize(("kind", "arrived"), [(REQUESTS, ["request 2"]), (RESPONSES, ["request 1", "request 2"])])
async def test_after_a_lost_message_the_connection_is_silent(link: Link, kind: MessageKind, arrived: list[str]) -> None:
    link.order(Intervention.LOSE_NEXT, kind, count=1)
    dialler, node = await link.connect()
    dialler.ask(1)
    dialler.ask(2)
    assert [await node.receive() for _ in arrived] == arrived
    for each in arrived:
        node.answer(int(each[-1]))
    assert await link.fates(1) == [MessageFate.LOST]
    again, behind = await link.connect()
    again.ask(3)
    assert await behind.receive() == "request 3"
    behind.answer(3)
    assert await again.receive() == "answer 3"
    dialler.writer.write_eof()
    assert await dialler.receive() == "end"


async def test_a_duplicated_request_has_one_answer(link: Link) -> None:
    link.order(Intervention.DUPLICATE_NEXT, count=1)
    dialler, node = await link.connect()
    dialler.ask(1)
    dialler.ask(2)
    assert [await node.receive() for _ in range(3)] == ["request 1", "request 1", "request 2"]
    for number in (1, 1, 2):
        node.answer(number)
    assert [await dialler.receive(), await dialler.receive()] == ["answer 1", "answer 2"]


async def test_a_request_without_an_answer_is_not_waited_for(link: Link) -> None:
    dialler, node = await link.connect()
    dialler.ask(1, PRODUCE)
    dialler.ask(2, PRODUCE)
    assert [await node.receive(), await node.receive()] == ["request 1", "request 2"]
    node.answer(2)
    assert await dialler.receive() == "answer 2"


async def test_the_end_of_one_connection_is_the_end_of_the_other(link: Link) -> None:
    dialler, node = await link.connect()
    node.writer.close()
    assert await dialler.receive() == "end"
    dialler, node = await link.connect()
    dialler.writer.close()
    assert await node.receive() == "end"


async def test_without_a_listener_the_connecting_node_gets_an_error() -> None:
    async with Link().open() as link:
        pass
    proxy = MessageProxy(
        source=BROKER,
        target=NODE,
        target_address=link.address,
        is_to_controller=False,
        interceptor=lambda: link.interceptor,
    )
    link.address = await proxy.open()
    dialler = await link.dial()
    assert await dialler.receive() == "end"
    await proxy.close()
    dialler.writer.close()
    await dialler.writer.wait_closed()


@pytest.mark.parametrize(("is_to_controller", "api"), [(True, "Stream"), (False, "Fetch")])
async def test_what_is_fetched_from_the_controller_is_the_metadata_stream(is_to_controller: bool, api: str) -> None:  # noqa: FBT001 - a column of the table
    async with Link().open(is_to_controller=is_to_controller) as link:
        link.order(Intervention.LOSE_NEXT, MessageKind(BROKER, api, Way.REQUEST), count=1)
        dialler, _ = await link.connect()
        dialler.ask(1, API_VERSIONS)
        dialler.ask(2, FETCH)
        assert await link.fates(1) == [MessageFate.LOST]
        assert [(each.channel, each.target) for each in link.touched] == [(f"0->1 {api} request", NODE)]
