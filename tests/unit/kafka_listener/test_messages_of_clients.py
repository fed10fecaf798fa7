"""Faults of single messages on a client's connection: held, lost, delayed and duplicated by the name of their API."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laststand.emulator.core import events, messages
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.core.types import MessageFate, NodeId, Way
from laststand.emulator.kafka_listener.gateway import Answered
from laststand.emulator.kafka_listener.listener import KafkaListener, ListenerEvent
from laststand.emulator.kafka_listener.messages import all_apis, api_named
from laststand.emulator.kafka_listener.releases import served_versions
from laststand.emulator.kafka_listener.requests import Served
from laststand.emulator.plan.names import Names
from laststand.emulator.rpc.interception import InterceptionOrder, Interceptor, Intervention, MessageKind

APP, SPARK, BROKER = NodeId(1001), NodeId(1002), NodeId(0)
API = "InitProducerId"
BOTH_WAYS = pytest.mark.parametrize("way", list(Way))


class Broker:
    """A listener with two clients, whose broker hands out producer ids; ``handled`` counts them."""

    def __init__(self) -> None:
        self.handled = 0
        self.noted: list[events.MessageIntercepted] = []
        self.interceptor = Interceptor(BROKER, record=self.note)
        self.ports: dict[NodeId, int] = {}
        self.clients: list[Client] = []
        self.connections: list[ListenerEvent] = []
        self.changed = asyncio.Event()
        self.bug: Exception | None = None

    async def ask(self, _: messages.Request) -> Answered:
        self.handled += 1
        self.changed.set()
        if self.bug is not None:
            raise self.bug
        response = messages.InitProducerIdResponse(
            error=ErrorCode.NONE, producer_id=cast(Any, self.handled), producer_epoch=cast(Any, 0)
        )
        return Answered(response, ())

    def order(self, intervention: Intervention, way: Way, **how: int) -> None:
        self.interceptor.obey(InterceptionOrder(intervention=intervention, kind=MessageKind(APP, API, way), **how))

    @property
    def fates(self) -> list[MessageFate]:
        return [event.fate for event in self.noted]

    async def until_handled(self, count: int) -> None:
        await self._until(lambda: self.handled >= count)

    async def until_noted(self, count: int) -> None:
        await self._until(lambda: len(self.noted) >= count)

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not is_reached():
                self.changed.clear()
                await self.changed.wait()

    async def until_connections_noted(self, count: int) -> None:
        await self._until(lambda: len(self.connections) >= count)

    def note_connection(self, event: ListenerEvent) -> None:
        self.connections.append(event)
        self.changed.set()

    def note(self, event: events.MessageIntercepted) -> None:
        self.noted.append(event)
        self.changed.set()


@asynccontextmanager
async def serving() -> AsyncIterator[Broker]:
    broker = Broker()
    listener = KafkaListener(broker.interceptor, NodeProperties(), record=broker.note_connection)
    await listener.start("127.0.0.1", {APP: 0, SPARK: 0})
    unused = cast(Any, None)

    async def close() -> None:
        pass

    fakes: Any = {
        "broker": SimpleNamespace(image=MetadataImage()),
        "core": SimpleNamespace(ask=broker.ask),
        "controller": SimpleNamespace(close=close),
        "history": SimpleNamespace(
            close=lambda: None,
            forget=lambda _: None,
            process_of=lambda connection: f"{connection.link} {connection.number}",
        ),
    }
    served = Served(
        broker_id=unused,
        cluster_id="",
        controllers={NodeId(100): unused},
        note_order=unused,
        log_dir="",
        properties=unused,
        versions=served_versions(era_rules(DEFAULT_ERA)),
        endpoints={},
        fetch_sessions=unused,
        produced=unused,
        fetched=unused,
        **fakes,
    )
    listener.open(served, {APP: {}, SPARK: {}})
    broker.ports = dict(zip((APP, SPARK), listener.ports, strict=True))
    try:
        yield broker
    finally:
        for client in broker.clients:
            client.writer.close()
        await listener.close()


class Client:
    """A connection of a client to a broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def of(cls, broker: Broker, link: NodeId = APP) -> "Client":
        client = cls(*await asyncio.open_connection("127.0.0.1", broker.ports[link]))
        broker.clients.append(client)
        return client

    def send(self) -> None:
        head = struct.pack(">hhihx", api_named(API).key, 2, 7, -1)
        frame = head + struct.pack(">Bix", 0, 0)
        self.writer.write(len(frame).to_bytes(4, "big") + frame)

    async def answer(self) -> bytes:
        async with asyncio.timeout(5):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)

    async def ask(self) -> bytes:
        self.send()
        return await self.answer()


@BOTH_WAYS
async def test_a_held_message_arrives_when_it_is_released(way: Way) -> None:
    async with serving() as broker:
        client = await Client.of(broker)
        broker.order(Intervention.HOLD, way)
        client.send()
        await broker.until_noted(1)
        assert broker.handled == (way is Way.RESPONSE)
        broker.order(Intervention.RELEASE, way)
        await client.answer()
        assert (broker.handled, broker.fates) == (1, [MessageFate.HELD, MessageFate.RELEASED])


@BOTH_WAYS
async def test_a_lost_message_closes_the_connection_and_a_lost_request_is_not_carried_out(way: Way) -> None:
    async with serving() as broker:
        client = await Client.of(broker)
        broker.order(Intervention.LOSE_NEXT, way, count=1)
        client.send()
        assert await asyncio.wait_for(client.reader.read(), 5) == b""
        assert (broker.handled, broker.fates) == (int(way is Way.RESPONSE), [MessageFate.LOST])
        await (await Client.of(broker)).ask()


async def test_a_request_that_arrives_twice_is_carried_out_twice_and_answered_once() -> None:
    async with serving() as broker:
        client = await Client.of(broker)
        broker.order(Intervention.DUPLICATE_NEXT, Way.REQUEST, count=1)
        first = await client.ask()
        await broker.until_handled(2)
        second = await client.ask()
        assert first != second
        assert (broker.handled, broker.fates) == (3, [MessageFate.DUPLICATED])


async def test_a_held_request_is_carried_out_though_its_client_has_gone() -> None:
    async with serving() as broker:
        client = await Client.of(broker)
        broker.order(Intervention.HOLD, Way.REQUEST)
        client.send()
        await broker.until_noted(1)
        client.writer.transport.abort()
        broker.order(Intervention.RELEASE, Way.REQUEST)
        await broker.until_handled(1)


async def test_messages_of_other_clients_and_of_other_apis_pass() -> None:
    async with serving() as broker:
        broker.order(Intervention.HOLD, Way.REQUEST)
        await (await Client.of(broker, SPARK)).ask()
        assert (broker.handled, broker.fates) == (1, [])


async def test_a_connection_is_on_record_from_its_first_request_to_its_end() -> None:
    async with serving() as broker:
        client = await Client.of(broker)
        await client.ask()
        await client.ask()
        (connected,) = broker.connections
        assert isinstance(connected, events.ClientConnected)
        assert (connected.process, connected.address.partition(":")[0]) == ("1001 1", "127.0.0.1")
        client.writer.close()
        await broker.until_connections_noted(2)
    assert [type(event) for event in broker.connections] == [events.ClientConnected, events.ClientDisconnected]


async def test_a_bug_in_a_request_costs_its_client_the_connection_and_is_on_record() -> None:
    async with serving() as broker:
        broker.bug = ZeroDivisionError("of all things")
        client = await Client.of(broker)
        client.send()
        assert await asyncio.wait_for(client.reader.read(), 5) == b""
        failed = next(event for event in broker.connections if isinstance(event, events.OperationFailed))
        assert failed.operation == f"{API}Request of a Kafka client"
        assert failed.error == "ZeroDivisionError('of all things')"
        broker.bug = None
        await (await Client.of(broker)).ask()


def test_steps_may_name_every_message_of_a_client() -> None:
    assert {api.name for api in all_apis().values()} <= set(Names.apis)
