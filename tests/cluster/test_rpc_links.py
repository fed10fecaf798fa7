"""Links that go silent, and slow links, under real gRPC connections.

The link is a forwarder in this process: it can stop carrying bytes without closing anything, as a cut network does, and
it can delay them.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from laststand.emulator.core import events, inputs, messages
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, CauseId, CorrelationId, MessageFate, NodeId, RequestFailure, Way
from laststand.emulator.node.batch_bytes import parse_fetched, parse_produced
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.channel import Keepalive, keepalive_for
from laststand.emulator.rpc.inbound import NodeServer, Responder
from laststand.emulator.rpc.interception import InterceptionOrder, Interceptor, Intervention, MessageKind
from laststand.emulator.rpc.outbound import Outbound, Outcome
from laststand.emulator.rpc.run_token import RunToken

pytestmark = pytest.mark.cluster

CALLER = NodeId(7)
PEER = NodeId(1)
CAUSE = CauseId("test")
TOKEN = RunToken.draw()
QUICK = Keepalive(interval_ms=200, timeout_ms=2000)


class Forwarder:
    """Carries bytes between whoever connects and one port, until told otherwise."""

    def __init__(self, target_port: int, *, delay_s: float) -> None:
        self.is_cut = False
        self._target_port = target_port
        self._delay_s = delay_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers += (writer, there[1])
        for source, sink in ((reader, there[1]), (there[0], writer)):
            task = asyncio.create_task(self._carry(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            while chunk := await source.read(1 << 16):
                if not self.is_cut:
                    loop.call_later(self._delay_s, sink.write, chunk)
        loop.call_later(self._delay_s, sink.close)


class Peer:
    """Answers metadata requests at once, and fetches never, as a leader without new records does."""

    def __init__(self) -> None:
        self.parked: asyncio.Queue[Responder] = asyncio.Queue()
        self.touched: asyncio.Queue[events.MessageIntercepted] = asyncio.Queue()
        self.interceptor = Interceptor(PEER, record=self.touched.put_nowait)

    def receive(
        self, request: messages.Request, cause_id: CauseId, _attachments: tuple[bytes, ...], responder: Responder
    ) -> None:
        if isinstance(request, messages.MetadataRequest):
            response = messages.MetadataResponse(brokers=(BrokerId(PEER),), controller_id=None, topics=())
            responder.answer(response, cause_id=cause_id, attachments=())
        else:
            self.parked.put_nowait(responder)


class Caller:
    """Sends requests through the link, and waits for their outcomes."""

    def __init__(self, outbound: Outbound, outcomes: "asyncio.Queue[Outcome]") -> None:
        self._outbound = outbound
        self._outcomes = outcomes
        self._count = 0

    async def call(self, request: messages.Request, *, timeout_ms: int = 10_000) -> Outcome:
        self._count += 1
        self._outbound.send(
            destination=PEER,
            correlation_id=CorrelationId(self._count),
            request=request,
            timeout_ms=timeout_ms,
            cause_id=CAUSE,
        )
        async with asyncio.timeout(20):
            outcome = await self._outcomes.get()
        assert outcome.correlation_id == self._count
        return outcome


@asynccontextmanager
async def linked(*, keepalive: Keepalive, delay_s: float = 0.0) -> AsyncIterator[tuple[Caller, Forwarder, Peer]]:
    peer = Peer()
    server = NodeServer(
        keepalive=keepalive,
        token=TOKEN,
        on_request=peer.receive,
        interceptor=peer.interceptor,
        on_order=lambda _: None,
        on_refusal=lambda _: None,
    )
    server.add_broker(parse_produced)
    forwarder = Forwarder(await server.start("127.0.0.1:0"), delay_s=delay_s)
    port = await forwarder.start()
    outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
    async with asyncio.TaskGroup() as tasks:
        outbound = Outbound(
            addresses=AddressBook({PEER: f"127.0.0.1:{port}"}),
            dialler=CALLER,
            keepalive=keepalive,
            token=TOKEN,
            tasks=tasks,
            parse_fetched=parse_fetched,
            deliver=lambda outcome, _attachments: outcomes.put_nowait(outcome),
        )
        yield Caller(outbound, outcomes), forwarder, peer
        await outbound.close()
        await forwarder.stop()
        await server.stop(grace_s=0)


async def test_a_cut_under_an_idle_stream_is_noticed_by_keepalive() -> None:
    async with linked(keepalive=QUICK) as (caller, forwarder, peer):
        fetch = asyncio.create_task(caller.call(messages.FetchRequest(partitions=())))
        await peer.parked.get()
        forwarder.is_cut = True
        outcome = await fetch

        assert isinstance(outcome, inputs.RequestFailed)
        assert outcome.failure is RequestFailure.DISCONNECTED  # by its own deadline it would be TIMED_OUT


async def test_without_a_cut_an_idle_stream_stays() -> None:
    async with linked(keepalive=QUICK) as (caller, _, peer):
        fetch = asyncio.create_task(caller.call(messages.FetchRequest(partitions=())))
        responder = await peer.parked.get()
        await asyncio.wait((fetch,), timeout=1.5)  # several pings' time
        assert not fetch.done()
        responder.answer(messages.FetchResponse(partitions=()), cause_id=CAUSE, attachments=())

        outcome = await fetch
        assert isinstance(outcome, inputs.ResponseReceived)
        assert outcome.response == messages.FetchResponse(partitions=(), error=ErrorCode.NONE)


async def test_a_peer_that_closes_on_acks_0_is_heard() -> None:
    async with linked(keepalive=QUICK) as (caller, _, peer):
        produce = asyncio.create_task(caller.call(messages.ProduceRequest(acks=0, timeout_ms=10_000, partitions=())))
        responder = await peer.parked.get()
        assert not produce.done()  # written, and nothing more is expected
        responder.disconnect()

        outcome = await produce
        assert isinstance(outcome, inputs.RequestFailed)
        assert outcome.failure is RequestFailure.DISCONNECTED


async def test_a_request_into_a_cut_times_out_and_the_heal_is_noticed() -> None:
    async with linked(keepalive=QUICK) as (caller, forwarder, _):
        assert isinstance(await caller.call(messages.MetadataRequest()), inputs.ResponseReceived)
        forwarder.is_cut = True
        assert isinstance(await caller.call(messages.MetadataRequest(), timeout_ms=300), inputs.RequestFailed)
        forwarder.is_cut = False

        outcomes: Sequence[Outcome] = []
        async with asyncio.timeout(30):
            while not (outcomes and isinstance(outcomes[-1], inputs.ResponseReceived)):
                outcomes = [*outcomes, await caller.call(messages.MetadataRequest(), timeout_ms=1000)]


async def test_a_stream_times_out_its_requests_one_by_one() -> None:
    async with linked(keepalive=keepalive_for(session_timeout_ms=9000)) as (caller, _, peer):
        assert isinstance(await caller.call(messages.MetadataRequest()), inputs.ResponseReceived)  # it is connected
        outcome = await caller.call(messages.FetchRequest(partitions=()), timeout_ms=1000)
        assert isinstance(outcome, inputs.RequestFailed)
        assert outcome.failure is RequestFailure.TIMED_OUT

        fetch = asyncio.create_task(caller.call(messages.FetchRequest(partitions=())))
        late, current = await peer.parked.get(), await peer.parked.get()
        for responder in (late, current):  # the first answer is late, and must not be taken for the second
            responder.answer(messages.FetchResponse(partitions=()), cause_id=CAUSE, attachments=())
        assert isinstance(await fetch, inputs.ResponseReceived)


async def test_a_link_of_300_ms_one_way_carries_unary_and_streams() -> None:
    async with linked(keepalive=keepalive_for(session_timeout_ms=9000), delay_s=0.3) as (caller, _, peer):
        assert isinstance(await caller.call(messages.MetadataRequest()), inputs.ResponseReceived)
        fetch = asyncio.create_task(caller.call(messages.FetchRequest(partitions=())))
        responder = await peer.parked.get()
        responder.answer(messages.FetchResponse(partitions=()), cause_id=CAUSE, attachments=())
        assert isinstance(await fetch, inputs.ResponseReceived)


async def test_an_unknown_peer_is_disconnected() -> None:
    async with asyncio.TaskGroup() as tasks:
        outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
        outbound = Outbound(
            addresses=AddressBook({}),
            dialler=CALLER,
            keepalive=QUICK,
            token=TOKEN,
            tasks=tasks,
            parse_fetched=parse_fetched,
            deliver=lambda outcome, _attachments: outcomes.put_nowait(outcome),
        )
        for request in (messages.MetadataRequest(), messages.FetchRequest(partitions=())):
            outcome = await Caller(outbound, outcomes).call(request)
            assert isinstance(outcome, inputs.RequestFailed)
            assert outcome.failure is RequestFailure.DISCONNECTED
        await outbound.close()


METADATA_REQUESTS = MessageKind(CALLER, "Metadata", Way.REQUEST)
METADATA_RESPONSES = MessageKind(CALLER, "Metadata", Way.RESPONSE)
FETCH_RESPONSES = MessageKind(CALLER, "Fetch", Way.RESPONSE)


def order(intervention: Intervention, kind: MessageKind, count: int | None = None) -> InterceptionOrder:
    return InterceptionOrder(intervention=intervention, kind=kind, count=count)


async def test_a_lost_response_fails_its_request_alone() -> None:
    async with linked(keepalive=QUICK) as (caller, _, peer):
        assert isinstance(await caller.call(messages.MetadataRequest()), inputs.ResponseReceived)  # it is connected
        peer.interceptor.obey(order(Intervention.LOSE_NEXT, METADATA_RESPONSES, 1))
        lost = await caller.call(messages.MetadataRequest(), timeout_ms=1000)
        assert isinstance(lost, inputs.RequestFailed)
        assert lost.failure is RequestFailure.TIMED_OUT
        assert isinstance(await caller.call(messages.MetadataRequest()), inputs.ResponseReceived)
        touched = peer.touched.get_nowait()
        assert (touched.channel, touched.fate) == (f"{CALLER}->{PEER} Metadata response", MessageFate.LOST)
        assert peer.touched.empty()


async def test_a_held_request_arrives_when_it_is_released() -> None:
    async with linked(keepalive=QUICK) as (caller, _, peer):
        peer.interceptor.obey(order(Intervention.HOLD, METADATA_REQUESTS))
        late = asyncio.create_task(caller.call(messages.MetadataRequest()))
        assert (await peer.touched.get()).fate is MessageFate.HELD
        assert not late.done()
        assert peer.interceptor.obey(order(Intervention.RELEASE, METADATA_REQUESTS)).messages == 1
        assert isinstance(await late, inputs.ResponseReceived)


async def test_a_held_response_of_a_stream_waits_and_the_stream_stays() -> None:
    async with linked(keepalive=QUICK) as (caller, _, peer):
        peer.interceptor.obey(order(Intervention.HOLD, FETCH_RESPONSES))
        fetch = asyncio.create_task(caller.call(messages.FetchRequest(partitions=())))
        responder = await peer.parked.get()
        responder.answer(messages.FetchResponse(partitions=()), cause_id=CAUSE, attachments=())
        assert peer.interceptor.obey(order(Intervention.RELEASE_NEWEST, FETCH_RESPONSES)).messages == 1
        assert isinstance(await fetch, inputs.ResponseReceived)
