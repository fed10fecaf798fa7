"""Frames of one connection: their order, their size, and the ends that a client may put to it."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from laststand.emulator.core.types import NodeId
from laststand.emulator.kafka_listener.connection import KafkaConnection, RefusedError
from laststand.emulator.kafka_listener.message_codec import Buffers

MAX_BYTES = 1000
LINK = NodeId(1001)


@asynccontextmanager
async def client(
    handle: Callable[[KafkaConnection, bytes], object] | None,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async def serve(connection: KafkaConnection, frame: bytes) -> Buffers | None:
        assert handle is not None
        answer = handle(connection, frame)
        return await answer if asyncio.iscoroutine(answer) else answer  # type: ignore[return-value]

    ended = asyncio.Event()

    def connection() -> KafkaConnection:
        serves = None if handle is None else serve
        return KafkaConnection(link=LINK, number=1, max_bytes=MAX_BYTES, handle=serves, on_end=lambda _: ended.set())

    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.wait_for(ended.wait(), 5)
        server.close()


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


async def test_answers_have_the_order_of_requests_and_none_is_handled_before_its_predecessor_is_answered() -> None:
    begun, first = asyncio.Event(), asyncio.Event()
    handled: list[bytes] = []

    async def handle(_: KafkaConnection, content: bytes) -> Buffers:
        handled.append(content)
        begun.set()
        if content == b"one":
            await first.wait()
        return [content, memoryview(b"!")]

    async with client(handle) as (reader, writer):
        writer.write(frame(b"one") + frame(b"two"))
        await begun.wait()
        assert handled == [b"one"]
        first.set()
        assert [await answer_of(reader), await answer_of(reader)] == [b"one!", b"two!"]


async def test_a_request_without_an_answer_holds_nothing_up() -> None:
    async with client(lambda _, content: None if content == b"0" else [content]) as (reader, writer):
        writer.write(frame(b"0") + frame(b"1"))
        assert await answer_of(reader) == b"1"


@pytest.mark.parametrize(
    "head",
    [b"\0\0\0\0", b"\xff\xff\xff\xff", (MAX_BYTES + 1).to_bytes(4, "big"), b"GET / HTTP/1.1", b"\x16\x03\x01\x02\0"],
)
async def test_a_size_that_no_request_has_closes_the_connection(head: bytes) -> None:
    async with client(lambda _, content: [content]) as (reader, writer):
        writer.write(head)
        assert await reader.read() == b""


async def test_a_refused_request_closes_the_connection_after_the_answers_before_it() -> None:
    def handle(_: KafkaConnection, content: bytes) -> Buffers:
        if content == b"bad":
            raise RefusedError("a test")
        return [content]

    async with client(handle) as (reader, writer):
        writer.write(frame(b"good") + frame(b"bad") + frame(b"late"))
        assert await answer_of(reader) == b"good"
        assert await reader.read() == b""


async def test_a_client_that_sends_no_more_gets_the_answers_to_what_it_sent() -> None:
    async with client(lambda _, content: [content]) as (reader, writer):
        writer.write(frame(b"last"))
        writer.write_eof()
        assert await answer_of(reader) == b"last"
        assert await reader.read() == b""


async def test_no_client_is_served_before_the_broker_is_unfenced() -> None:
    async with client(None) as (reader, _):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""


async def test_it_is_known_whether_an_answer_was_handed_over() -> None:
    told: list[bool] = []

    def handle(connection: KafkaConnection, content: bytes) -> Buffers:
        connection.when_written(told.append)
        return [content]

    async with client(handle) as (reader, writer):
        writer.write(frame(b"x"))
        await answer_of(reader)
        assert told == [True]


async def test_an_answer_that_was_never_given_was_not_handed_over() -> None:
    told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    begun = asyncio.Event()

    async def handle(connection: KafkaConnection, _: bytes) -> Buffers:
        connection.when_written(told.set_result)
        begun.set()
        await asyncio.Event().wait()
        return []

    async with client(handle) as (_, writer):
        writer.write(frame(b"x"))
        await begun.wait()
        # Closed at once, with a reset: a client that merely sends no more is answered.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        assert await asyncio.wait_for(told, 5) is False


async def test_a_connection_that_is_not_made_yet_does_not_idle_and_is_turned_away_where_the_broker_closes() -> None:
    async def serve(connection: KafkaConnection, frame: bytes) -> Buffers:
        return [frame]

    connection = KafkaConnection(link=LINK, number=1, max_bytes=MAX_BYTES, handle=serve, on_end=lambda _: None)
    connection.close_if_idle(now_s=1e9, max_idle_s=1)
    connection.close()
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, ours)
    theirs.setblocking(False)  # noqa: FBT003 - as it is called
    with theirs, contextlib.suppress(ConnectionResetError):
        assert await asyncio.get_running_loop().sock_recv(theirs, 1) == b""
