"""Reactions of a node's gRPC server to bugs in its own process, to nonsense, and to callers that vanish."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest

from laststand.emulator.core import events, messages
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import CauseId, NodeId, Way
from laststand.emulator.node.batch_bytes import parse_produced
from laststand.emulator.rpc import inbound
from laststand.emulator.rpc.channel import Channel, keepalive_for, open_channel, server_options
from laststand.emulator.rpc.inbound import NodeServer, OnRequest, Responder
from laststand.emulator.rpc.interception import InterceptionOrder, Interceptor, Intervention, MessageKind
from laststand.emulator.rpc.limits import MESSAGE_BYTES_MAX
from laststand.emulator.rpc.run_token import RunToken

pytestmark = pytest.mark.cluster

TOKEN = RunToken.draw()
KEEPALIVE = keepalive_for(session_timeout_ms=2000)
FETCH_STREAM = "/laststand.Broker/Fetch"
METADATA = "/laststand.Broker/Metadata"
INTERCEPTION = "/laststand.Interception/Intercept"
NONSENSE = b"\xff\xff\xff"
EMPTY_FETCH = b"\x0a\x00"


class Bugs:
    """Exceptions that reached the event loop's handler, which ends a node's process."""

    def __init__(self) -> None:
        self.found: list[object] = []
        self.happened = asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(self._note)

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        self.found.append(context.get("exception"))
        self.happened.set()


@asynccontextmanager
async def serving(
    on_request: OnRequest,
    *,
    shown: RunToken = TOKEN,
    dialler: NodeId | None = None,
    refused: Callable[[events.AuthenticationFailed], None] = lambda _: None,
    interceptor: Interceptor | None = None,
) -> AsyncIterator[Channel]:
    server = NodeServer(
        keepalive=KEEPALIVE,
        on_request=on_request,
        interceptor=interceptor or Interceptor(NodeId(0), record=lambda _: None),
        token=TOKEN,
        on_order=lambda _: None,
        on_refusal=refused,
    )
    server.add_broker(parse_produced)
    port = await server.start("127.0.0.1:0")
    channel = open_channel(f"127.0.0.1:{port}", KEEPALIVE, token=shown, peer=NodeId(0), dialler=dialler)
    try:
        yield channel
    finally:
        await channel.close()
        await server.stop(grace_s=0.1)


async def code_of(call: Awaitable[bytes]) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value.code()


def stumble(
    _request: messages.Request, _cause_id: CauseId, _attachments: tuple[bytes, ...], _responder: Responder
) -> None:
    raise AssertionError("a bug")


async def test_a_bug_in_a_stream_reaches_the_handler_that_ends_the_process() -> None:
    bugs = Bugs()
    async with serving(stumble) as channel, asyncio.timeout(30):
        call = channel.stream(FETCH_STREAM)()
        await call.write(EMPTY_FETCH)
        await bugs.happened.wait()
        assert await call.code() is grpc.StatusCode.UNKNOWN
    assert "a bug" in repr(bugs.found)


async def test_a_bug_in_a_unary_call_reaches_the_handler_that_ends_the_process() -> None:
    bugs = Bugs()
    async with serving(stumble) as channel, asyncio.timeout(30):
        code = await code_of(channel.unary(METADATA)(b"", None))
        await bugs.happened.wait()
        assert code is grpc.StatusCode.UNKNOWN
    assert "a bug" in repr(bugs.found)


async def test_nonsense_is_refused_and_is_no_bug() -> None:
    bugs = Bugs()
    async with serving(stumble) as channel, asyncio.timeout(30):
        stream = channel.stream(FETCH_STREAM)()
        await stream.write(NONSENSE)
        assert await stream.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await code_of(channel.unary(METADATA)(NONSENSE, None)) is grpc.StatusCode.INVALID_ARGUMENT
    assert bugs.found == []


async def test_a_caller_that_vanishes_is_no_bug() -> None:
    bugs = Bugs()
    arrived: list[Responder] = []
    has_arrived = asyncio.Event()

    def keep(
        _request: messages.Request, _cause_id: CauseId, _attachments: tuple[bytes, ...], responder: Responder
    ) -> None:
        arrived.append(responder)
        has_arrived.set()

    async with serving(keep) as channel, asyncio.timeout(30):
        stream = channel.stream(FETCH_STREAM)()
        await stream.write(EMPTY_FETCH)
        await has_arrived.wait()
        stream.cancel()
    assert bugs.found == []


async def test_a_request_that_is_held_longer_than_its_call_arrives_with_its_sender() -> None:
    held = asyncio.Event()
    interceptor = Interceptor(NodeId(0), record=lambda _: held.set())
    kind = MessageKind(NodeId(1), "Metadata", Way.REQUEST)
    interceptor.obey(InterceptionOrder(intervention=Intervention.HOLD, kind=kind))
    senders: list[Requester | None] = []

    def note(
        _request: messages.Request, _cause_id: CauseId, _attachments: tuple[bytes, ...], responder: Responder
    ) -> None:
        senders.append(responder.requester)

    async with serving(note, dialler=NodeId(1), interceptor=interceptor) as channel, asyncio.timeout(30):
        call = asyncio.ensure_future(channel.unary(METADATA)(b"", None))
        await held.wait()
        call.cancel()
    interceptor.obey(InterceptionOrder(intervention=Intervention.RELEASE, kind=kind))
    assert [sender and sender.principal for sender in senders] == ["User:broker-1"]


async def test_without_the_token_every_call_is_refused_before_anything_is_read() -> None:
    refused: list[events.AuthenticationFailed] = []
    async with serving(stumble, shown=RunToken.draw(), refused=refused.append) as channel, asyncio.timeout(30):
        for path in (METADATA, INTERCEPTION, "/no.such.Service/Method"):
            assert await code_of(channel.unary(path)(NONSENSE, None)) is grpc.StatusCode.UNAUTHENTICATED
        assert await channel.stream(FETCH_STREAM)().code() is grpc.StatusCode.UNAUTHENTICATED
    assert [(each.mechanism, each.address.rpartition(":")[0]) for each in refused] == [("token", "127.0.0.1")] * 4


async def test_an_order_about_messages_is_one_of_the_harness() -> None:
    async with serving(stumble, dialler=NodeId(1)) as channel, asyncio.timeout(30):
        assert await code_of(channel.unary(INTERCEPTION)(b"{}", None)) is grpc.StatusCode.PERMISSION_DENIED
    async with serving(stumble) as channel, asyncio.timeout(30):
        assert await code_of(channel.unary(INTERCEPTION)(b"{}", None)) is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_message_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    options = dict(server_options(KEEPALIVE))
    assert options["grpc.max_receive_message_length"] == MESSAGE_BYTES_MAX == 100 << 20
    shorter = [*({**options, "grpc.max_receive_message_length": 1 << 10}).items()]
    monkeypatch.setattr(inbound, "server_options", lambda _keepalive: shorter)
    async with serving(stumble) as channel, asyncio.timeout(30):
        assert await code_of(channel.unary(METADATA)(bytes(1 << 11), None)) is grpc.StatusCode.RESOURCE_EXHAUSTED
