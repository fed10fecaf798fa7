"""Limits of a client: it may idle, come in a crowd, send what nobody understands, and make a handler fail."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties, topic_properties
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.kafka_listener.answer_cache import AnswerCache
from laststand.emulator.kafka_listener.connection import KafkaConnection, RefusedError
from laststand.emulator.kafka_listener.fetch_sessions import FetchSessions
from laststand.emulator.kafka_listener.listener import KafkaListener
from laststand.emulator.kafka_listener.message_codec import Buffers
from laststand.emulator.kafka_listener.quota_usage import QuotaUsage
from laststand.emulator.kafka_listener.releases import served_versions
from laststand.emulator.kafka_listener.requests import Endpoint, Served
from laststand.emulator.rpc.interception import Interceptor
from tests.wire.bad_frames import bad_frame, valid_frames

LINK, BROKER = NodeId(1001), NodeId(1)
API_VERSIONS = bytes.fromhex("0000000b0012000000000001000163")
VALID = valid_frames()


def served() -> Served:
    """A broker without topics, whose core closes connections and whose controller never answers."""

    async def ask(*_: Any, **__: Any) -> Any:
        raise RefusedError("the core closes the connection")

    async def no_answer(*_: Any, **__: Any) -> None:
        return None

    async def close() -> None:
        pass

    def nothing(*_: Any, **__: Any) -> Any:
        return None

    properties = NodeProperties()
    fakes: Any = {
        "broker": SimpleNamespace(
            image=MetadataImage(),
            partitions=(),
            partition=nothing,
            topic_properties=lambda _: topic_properties(properties, {}),
        ),
        "core": SimpleNamespace(ask=ask, give=nothing),
        "controller": SimpleNamespace(ask=no_answer, close=close),
        "history": SimpleNamespace(
            close=nothing,
            forget=nothing,
            process_of=lambda connection: f"{connection.number}",
            invoke=lambda *_: {},
            complete=nothing,
            complete_unanswered=nothing,
            add_polls=nothing,
        ),
    }
    return Served(
        broker_id=BrokerId(BROKER),
        cluster_id="c",
        controllers={NodeId(100): Endpoint("127.0.0.1", 1)},
        log_dir="/logs",
        properties=properties,
        versions=served_versions(era_rules(DEFAULT_ERA)),
        note_order=nothing,
        endpoints={},
        fetch_sessions=FetchSessions(),
        produced=QuotaUsage("producer_byte_rate"),
        fetched=QuotaUsage("consumer_byte_rate"),
        **fakes,
    )


@asynccontextmanager
async def listening(**properties: int) -> AsyncIterator[int]:
    """Yields the port of a listener that serves."""
    listener = KafkaListener(
        Interceptor(BROKER, record=lambda _: None), NodeProperties(**cast(Any, properties)), record=lambda _: None
    )
    await listener.start("127.0.0.1", {LINK: 0})
    listener.open(served(), {LINK: {}})
    try:
        yield listener.ports[0]
    finally:
        await listener.close()


async def sent(port: int, data: bytes) -> bytes:
    """Returns what comes back for some bytes, after which the client sends nothing more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 5)
    except OSError:  # closed before it was asked
        return b""
    finally:
        writer.close()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 32), st.lists(st.binary(max_size=60), max_size=3))
def test_any_bytes_are_answered_or_close_the_connection(seed: int, noise: list[bytes]) -> None:
    chance = random.Random(seed)
    frames = [bad_frame(chance, VALID) for _ in range(10)] + noise

    async def send() -> None:
        async with listening() as port:
            for frame in frames:
                await sent(port, frame)
            assert await sent(port, API_VERSIONS)

    asyncio.run(send())


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(VALID))
def test_a_request_that_is_cut_anywhere_closes_the_connection(frame: bytes) -> None:
    async def send() -> None:
        whole = len(frame).to_bytes(4, "big") + frame
        async with listening() as port:
            for end in range(0, len(whole), 1 + len(whole) // 20):
                assert await sent(port, whole[:end]) == b""

    asyncio.run(send())


@pytest.mark.parametrize(
    "first",
    [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0"],
    ids=["TLS", "HTTP", "too large", "negative", "empty"],
)
async def test_a_size_that_no_request_has_closes_the_connection(first: bytes) -> None:
    async with listening() as port:
        assert await sent(port, first) == b""


async def test_the_largest_request_is_a_property() -> None:
    async with listening(socket_request_max_bytes=10) as port:
        assert await sent(port, API_VERSIONS) == b""
    async with listening(socket_request_max_bytes=11) as port:
        assert await sent(port, API_VERSIONS)


async def test_past_the_limit_the_newest_connection_is_closed() -> None:
    async with listening(max_connections=1) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(API_VERSIONS)
        await reader.readexactly(4)
        assert await sent(port, API_VERSIONS) == b""
        writer.close()


async def test_an_idle_connection_is_closed() -> None:
    made: list[KafkaConnection] = []

    async def serve(connection: KafkaConnection, frame: bytes) -> Buffers:
        return [b"x"]

    def connect() -> KafkaConnection:
        made.append(KafkaConnection(link=LINK, number=1, max_bytes=100, handle=serve, on_end=lambda _: None))
        return made[0]

    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"\0\0\0\1?")
    assert await reader.readexactly(5) == b"\0\0\0\1x"
    now_s = asyncio.get_running_loop().time()
    made[0].close_if_idle(now_s=now_s + 9, max_idle_s=10)
    writer.write(b"\0\0\0\1?")
    assert await reader.readexactly(5) == b"\0\0\0\1x"
    made[0].close_if_idle(now_s=now_s + 11, max_idle_s=10)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), 5)
    writer.close()
    server.close()


async def test_a_handler_that_fails_ends_its_connection_only() -> None:
    async def serve(connection: KafkaConnection, frame: bytes) -> Buffers:
        if frame == b"!":
            raise KeyError(frame)
        return [frame]

    def connect() -> KafkaConnection:
        return KafkaConnection(link=LINK, number=1, max_bytes=100, handle=serve, on_end=lambda _: None)

    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await sent(port, b"\0\0\0\1!") == b""
    assert await sent(port, b"\0\0\0\1?") == b"\0\0\0\1?"
    server.close()


def test_answers_are_kept_as_long_as_the_metadata_stays_as_it_is() -> None:
    cache, offset = AnswerCache(), cast(Any, 5)
    assert cache.get(offset, "a") is None
    cache.store(offset, "a", [b"1"])
    assert cache.get(offset, "a") == [b"1"]
    assert cache.get(offset, "b") is None
    cache.store(cast(Any, 4), "b", [b"2"])
    assert cache.get(offset, "b") is None
    assert cache.get(cast(Any, 6), "a") is None


def test_the_oldest_answer_makes_room() -> None:
    cache, offset = AnswerCache(), cast(Any, 1)
    for number in range(65):
        cache.get(offset, number)
        cache.store(offset, number, [b""])
    assert cache.get(offset, 0) is None
    assert cache.get(offset, 1) == [b""]
