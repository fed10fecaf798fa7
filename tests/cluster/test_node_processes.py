"""Node processes from first event to last, and a controller that is killed while it decides."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from laststand.emulator.cluster.child import EndCause, ProcessEnd
from laststand.emulator.cluster.layout import ClusterLayout, event_file_name
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import admin_messages, inputs, messages, records
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    CorrelationId,
    MetadataOffset,
    NodeId,
    Offset,
    TopicId,
    TopicPartition,
)
from laststand.emulator.node.batch_bytes import parse_fetched, parse_produced
from laststand.emulator.node.metadata_journal import MetadataJournal
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.channel import keepalive_for, open_channel
from laststand.emulator.rpc.metadata_stream import read_metadata
from laststand.emulator.rpc.outbound import Outbound, Outcome
from laststand.emulator.rpc.run_token import RunToken
from laststand.emulator.storage.line_file import read_lines
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.record_codec import RecordContent, build_batch

pytestmark = pytest.mark.cluster

CONTROLLER = NodeId(100)
BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))
CAUSE = CauseId("test")
KEEPALIVE = keepalive_for(session_timeout_ms=60_000)
"""A process that does not get to run for some seconds is not given up."""


def topic_id(name: str) -> TopicId:
    return TopicId(name.ljust(22, "A"))


def create(name: str, *, replicas: tuple[BrokerId, ...]) -> admin_messages.CreateTopicsRequest:
    return admin_messages.CreateTopicsRequest(
        topics=(admin_messages.CreatableTopic(name=name, topic_id=topic_id(name), assignments=(replicas,)),)
    )


class Client:
    """Sends requests past all proxies."""

    def __init__(self, addresses: dict[int, str], token: RunToken, tasks: asyncio.TaskGroup) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[CorrelationId, asyncio.Future[Outcome]] = {}
        self.outbound = Outbound(
            addresses=AddressBook({NodeId(node): address for node, address in addresses.items()}),
            dialler=None,
            keepalive=KEEPALIVE,
            token=token,
            tasks=tasks,
            parse_fetched=parse_fetched,
            deliver=self._deliver,
        )

    async def call(self, node: NodeId, request: messages.Request, *attachments: bytes) -> Outcome:
        correlation_id = CorrelationId(next(self._numbers))
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = answer
        self.outbound.send(
            destination=node,
            correlation_id=correlation_id,
            request=request,
            timeout_ms=5000,
            cause_id=CAUSE,
            attachments=attachments,
        )
        return await answer

    def _deliver(self, outcome: Outcome, _attachments: tuple[bytes, ...]) -> None:
        answer = self._waiting.pop(outcome.correlation_id)
        if not answer.done():
            answer.set_result(outcome)


class Watch:
    """Everything that the controller streamed, over all its incarnations."""

    def __init__(self, address: str, token: RunToken) -> None:
        self.batches: list[records.MetadataBatch] = []
        self.image = MetadataImage()
        self._address = address
        self._token = token
        self._has_news = asyncio.Event()

    async def run(self) -> None:
        channel = open_channel(self._address, KEEPALIVE, token=self._token, peer=CONTROLLER)
        try:
            while True:
                await read_metadata(channel, from_offset=self.image.next_offset, cause_id=CAUSE, deliver=self._receive)
                await asyncio.sleep(0.02)
        finally:
            await channel.close()

    def _receive(
        self, incoming: inputs.MetadataStreamOpened | inputs.MetadataReceived | inputs.MetadataStreamLost
    ) -> None:
        if isinstance(incoming, inputs.MetadataReceived):
            self.batches += incoming.batches
            for batch in incoming.batches:
                for index, record in enumerate(batch.records):
                    self.image.replay(record, offset=MetadataOffset(batch.base_offset + index))
            self._has_news.set()

    async def until_offset(self, end_offset: MetadataOffset) -> None:
        await self.until(lambda image: image.next_offset >= end_offset)

    async def until(self, condition: Callable[[MetadataImage], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition(self.image):
                self._has_news.clear()
                await self._has_news.wait()


@asynccontextmanager
async def running(
    directory: Path,
    *brokers: BrokerId,
    unexpected: list[ProcessEnd],
    properties: tuple[tuple[str, str], ...] = (("min.insync.replicas", "2"),),
) -> AsyncIterator[tuple[ProcessCluster, Client, Watch]]:
    layout = ClusterLayout(
        run="test",
        directory=directory,
        controller_ids=(CONTROLLER,),
        broker_ids=brokers,
        switches=Switches(),
        properties=properties,
        toxiproxy=None,
    )
    cluster = ProcessCluster(
        layout,
        on_start=lambda _node, _incarnation, _rules: None,
        on_unexpected_end=lambda _name, end: unexpected.append(end),
    )
    async with cluster, asyncio.TaskGroup() as tasks:
        await cluster.start()
        addresses = cluster.direct_addresses()
        client = Client(addresses, cluster.token, tasks)
        watch = Watch(addresses[CONTROLLER], cluster.token)
        watching = tasks.create_task(watch.run())
        yield cluster, client, watch
        watching.cancel()
        await client.outbound.close()


def read_events(path: Path) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in read_lines(path).splitlines()]


async def produce(client: Client, value: bytes) -> Offset | None:
    """Sends one record with acks=all until it is acknowledged, and returns its offset."""
    batch = build_batch([RecordContent(value=value, timestamp_ms=0)])
    partition = messages.ProducePartition(topic="orders", partition=0, batch=parse_produced(batch))
    while True:
        outcome = await client.call(
            BROKERS[0], messages.ProduceRequest(acks=-1, timeout_ms=5000, partitions=(partition,)), batch
        )
        assert isinstance(outcome, inputs.ResponseReceived)
        assert isinstance(outcome.response, messages.ProduceResponse)
        (result,) = outcome.response.partitions
        if result.error is ErrorCode.NONE:
            return result.base_offset


async def test_a_cluster_boots_replicates_and_ends_in_order(tmp_path: Path) -> None:
    unexpected: list[ProcessEnd] = []
    async with running(tmp_path, *BROKERS, unexpected=unexpected) as (cluster, client, watch):
        await watch.until(lambda image: len([b for b in image.brokers.values() if b.is_active]) == len(BROKERS))
        created = await client.call(CONTROLLER, create("orders", replicas=BROKERS))
        assert isinstance(created, inputs.ResponseReceived)
        offsets = [await produce(client, b"%d" % number) for number in range(20)]
        for node in (*BROKERS, CONTROLLER):
            end = await cluster.stop_node(node)
            assert end is not None
            assert (end.cause, end.exit_code) == (EndCause.STOPPED, 0)

    assert offsets == list(range(20))
    assert unexpected == []
    logs = {
        (tmp_path / "nodes" / str(broker) / "data" / "orders-0" / f"{0:020}.log").read_bytes() for broker in BROKERS
    }
    assert len(logs) == 1
    for node in (*BROKERS, CONTROLLER):
        events = read_events(tmp_path / "events" / event_file_name(NodeId(node), 0))
        assert events[0]["type"] == "NodeStarted"
        assert [event["type"] for event in events[-2:]] == ["NodeStopped", "FileSealed"]
        assert [event["sequence"] for event in events] == list(range(len(events)))
        assert {(event["run"], event["node"], event["incarnation"]) for event in events} == {("test", node, 0)}


async def test_a_controller_asks_brokers_what_they_hold_and_elects_one(tmp_path: Path) -> None:
    properties = {
        "min.insync.replicas": "2",
        "unclean.recovery.manager.enabled": "true",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
    orders, replicas = TopicPartition("orders", 0), BROKERS[:2]
    unexpected: list[ProcessEnd] = []
    async with running(tmp_path, *replicas, unexpected=unexpected, properties=tuple(properties.items())) as (
        cluster,
        client,
        watch,
    ):
        await watch.until(lambda image: len([b for b in image.brokers.values() if b.is_active]) == len(replicas))
        await client.call(CONTROLLER, create("orders", replicas=replicas))
        assert await produce(client, b"held by both") == 0
        for broker in replicas:
            await cluster.kill_node(broker)
        await watch.until(lambda image: image.partitions[orders].leader is None)
        for broker in replicas:
            await cluster.start_node(broker)
        await watch.until(lambda image: image.partitions[orders].leader is not None)
        for node in (*replicas, CONTROLLER):
            await cluster.stop_node(node)

    assert unexpected == []
    events = read_events(tmp_path / "events" / f"{CONTROLLER}-0.jsonl")
    [elected] = [event for event in events if event["type"] == "UncleanLeaderElected"]
    assert (elected["method"], elected["strategy"], elected["leader"]) == ("longest_log", "Balanced", 0)
    answers = elected["answers"]
    assert isinstance(answers, list)
    assert [(told["broker_id"], told["log_end_offset"]) for told in answers] == [(0, 1), (1, 1)]
    assert [event["type"] for event in events].count("DrawReceived") == 1, "the process drew when it began"


class Creator:
    """Creates topics without end, and knows which the controller acknowledged."""

    def __init__(self, client: Client) -> None:
        self.acknowledged: set[str] = set()
        self._client = client
        self._numbers = itertools.count()
        self._has_news = asyncio.Event()

    async def run(self) -> None:
        for number in self._numbers:
            name = f"topic{number}"
            outcome = await self._client.call(CONTROLLER, create(name, replicas=BROKERS[:1]))
            if isinstance(outcome, inputs.ResponseReceived):
                assert isinstance(outcome.response, admin_messages.CreateTopicsResponse)
                assert outcome.response.topics[0].error is ErrorCode.NONE
                self.acknowledged.add(name)
                self._has_news.set()
            else:
                await asyncio.sleep(0.01)

    async def until_more(self, count: int) -> None:
        goal = len(self.acknowledged) + count
        async with asyncio.timeout(30):
            while len(self.acknowledged) < goal:
                self._has_news.clear()
                await self._has_news.wait()


async def test_a_killed_controller_keeps_the_changes_that_it_announced(tmp_path: Path) -> None:
    unexpected: list[ProcessEnd] = []
    async with running(tmp_path, BROKERS[0], unexpected=unexpected) as (cluster, client, watch):
        await watch.until(lambda image: any(broker.is_active for broker in image.brokers.values()))
        creator = Creator(client)
        creating = [asyncio.create_task(creator.run()) for _ in range(4)]
        for incarnation in range(1, 4):
            await creator.until_more(25)
            await cluster.kill_node(CONTROLLER)
            streamed, told = list(watch.batches), set(creator.acknowledged)

            assert await cluster.start_node(CONTROLLER) == incarnation
            successor = Watch(cluster.direct_addresses()[CONTROLLER], cluster.token)
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(successor.run())
                await successor.until_offset(streamed[-1].end_offset)
                reading.cancel()
            assert successor.batches[: len(streamed)] == streamed
            assert told <= set(successor.image.topics)
        for task in creating:
            task.cancel()
        await asyncio.gather(*creating, return_exceptions=True)
        await cluster.stop_node(BROKERS[0])
        await cluster.stop_node(CONTROLLER)

    node = tmp_path / "nodes" / str(CONTROLLER)
    journal = MetadataJournal(OsFileSystem(ledger_folder=str(node / "ledger")), str(node / "data"))
    controller = Controller(NodeProperties(), Switches(), "any", CONTROLLER)
    for batch in journal.batches:
        controller.replay(batch)
    journal.close()
    assert unexpected == []
    assert list(journal.batches[: len(watch.batches)]) == watch.batches
    assert creator.acknowledged <= set(controller.image.topics)
    files = [file.read_text() for file in (tmp_path / "events").glob(f"{CONTROLLER}-*.jsonl")]
    lines = [line for text in files for line in text.split("\n")[:-1]]  # the last may be torn
    created = [json.loads(line)["topic"] for line in lines if '"TopicCreated"' in line]
    assert sorted(created) == sorted(controller.image.topics), "each committed topic is told of once"
