"""One connection of a client through a tap: frames pass, and what the client asks and is answered is written down.

Only these are read; all others pass as they are:

- Produce and Fetch, for the history;
- Metadata, FindCoordinator and DescribeCluster, whose answers name addresses of brokers, as answers of these two may;
- ApiVersions, whose answer offers no newer version of these than can be read here.

A client that asks for a fetch session is answered as where a broker has no room for one: it names all its partitions
again with each fetch.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Acks, BrokerId, LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from laststand.emulator.kafka_listener.api_versions import API_VERSIONS
from laststand.emulator.kafka_listener.client_history import ClientHistory, Polled, Sent
from laststand.emulator.kafka_listener.message_codec import Writer, read_client_id, request_codec, response_codec
from laststand.emulator.kafka_listener.messages import Api, Message, all_apis, api_named
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.rpc.frame_proxy import drain, read_frame, write_frame
from laststand.emulator.storage.fields import FieldError, FieldReader
from laststand.emulator.storage.record_batch import describe_batches

_log: Final = logging.getLogger(__name__)

_PRODUCE: Final = api_named("Produce").key
_FETCH: Final = api_named("Fetch").key
_METADATA: Final = api_named("Metadata").key
_COORDINATOR: Final = api_named("FindCoordinator").key
_CLUSTER: Final = api_named("DescribeCluster").key
_READ: Final = frozenset({_PRODUCE, _FETCH, _METADATA, _COORDINATOR, _CLUSTER})

_HEADER_BYTES: Final = 8
_CORRELATION: Final = slice(4, 8)
_BROKERS: Final = 1
"""Endpoint type of brokers in DescribeCluster."""

_SESSIONS_SINCE: Final = 7
_NO_REPLICA_ID_SINCE: Final = 15
_SESSION_EPOCH_AT: Final = 17
"""Byte of a fetch's session epoch after its header, where there is no replica id before."""

_FIRST_EPOCH: Final = 0
_NO_SESSION: Final = (-1).to_bytes(4, "big", signed=True)
_CONSUMER: Final = -1
_KNOWN_ERRORS: Final = frozenset(int(error) for error in ErrorCode)


class TappedCluster(Protocol):
    """The cluster that a tap is of."""

    async def place_of(self, broker_id: BrokerId, address: str) -> tuple[str, int]:
        """Returns where clients reach a broker that an answer names."""
        ...

    def learn_topic(self, name: str, topic_id: TopicId) -> None:
        """Notes the id of a topic, by an answer."""
        ...

    async def topic_of(self, name: str | None, topic_id: TopicId | None) -> tuple[str, TopicId | None]:
        """Returns name and id of a topic of which a request has one."""
        ...


class TappedBroker:
    """A broker of a tapped cluster.

    Args:
        broker_id: of it.
        history: of its clients.
        cluster: that it is a member of.

    Attributes:
        partitions: that its clients have written to or read from.
    """

    def __init__(self, broker_id: BrokerId, history: ClientHistory, *, cluster: TappedCluster) -> None:
        self.broker_id = broker_id
        self.history = history
        self.cluster = cluster
        self.partitions: set[TopicPartition] = set()


class _Exchange(NamedTuple):
    """A request that is not answered yet.

    Attributes:
        api: of it; ``None`` where the answer passes as it is.
        version: of it.
        correlation: its correlation id.
        sent: of a produce request.
        asked: of a consumer's fetch.
    """

    api: Api | None
    version: int
    correlation: bytes
    sent: dict[TopicPartition, Sent]
    asked: dict[tuple[str | None, int], messages.FetchPartition]


class TappedConnection:
    """A connection of a client, and the one to the broker that belongs to it.

    Args:
        broker: that it is to.
        number: of it, unique for the broker.
        client: where answers go.
        node: where requests go.

    Attributes:
        client_id: of the newest request.
        link: the client as an end of links.
        number: as given.
    """

    def __init__(
        self, broker: TappedBroker, *, number: int, client: asyncio.StreamWriter, node: asyncio.StreamWriter
    ) -> None:
        self.client_id = ""
        self.link = CLIENT
        self.number = number
        self._broker = broker
        self._client = client
        self._node = node
        self._unanswered: deque[_Exchange] = deque()

    async def run(self, dialler: asyncio.StreamReader, node: asyncio.StreamReader) -> None:
        """Forwards until either end closes its connection."""
        ways = [asyncio.create_task(self._forward_requests(dialler)), asyncio.create_task(self._forward_answers(node))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for exchange in self._unanswered:
                self._broker.history.complete(self, exchange.sent, {}, is_written=False)
            self._broker.history.forget(self)

    async def _forward_requests(self, client: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await read_frame(client)
                write_frame(self._node, await self._read_request(frame))
                await drain(self._node)

    async def _forward_answers(self, node: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await read_frame(node)
                exchange = self._unanswered[0] if self._unanswered else None
                if exchange is None or frame[:4] != exchange.correlation:
                    raise ConnectionAbortedError("an answer to nothing")
                if exchange.api is None:
                    write_frame(self._client, frame)
                else:
                    await self._pass_answer(exchange, exchange.api, frame)
                self._unanswered.popleft()
                await drain(self._client)

    # --- Requests -------------------------------------------------------------------------------------------------

    async def _read_request(self, frame: bytes) -> bytes:
        """Notes what is asked; returns the frame to be sent."""
        if len(frame) < _HEADER_BYTES:
            raise ConnectionAbortedError("a request without a header")
        key, version = int.from_bytes(frame[:2], "big", signed=True), int.from_bytes(frame[2:4], "big", signed=True)
        api = all_apis().get(key) if key in _READ or key == API_VERSIONS else None
        if api is None or version not in api.versions:
            self._await_answer(None, version, frame)
            return frame
        try:
            reader = FieldReader(frame)
            reader.position = _HEADER_BYTES
            self.client_id = read_client_id(reader, is_flexible=version in api.flexible)
            body_at = reader.position
            body = request_codec(key, version).read(reader) if key in (_PRODUCE, _FETCH) else {}
        except FieldError as error:
            _log.warning("client=%s api=%s version=%d reason=%s", self.client_id, api.name, version, error)
            raise ConnectionAbortedError(str(error)) from None
        if key == _PRODUCE:
            await self._note_sent(api, version, frame, body)
        elif key == _FETCH:
            asked = {place: entry async for place, entry in self._asked(body)} if body["replicaId"] == _CONSUMER else {}
            self._await_answer(api, version, frame, asked=asked)
            return _without_session(frame, body, body_at, version)
        else:
            self._await_answer(api, version, frame)
        return frame

    def _await_answer(
        self,
        api: Api | None,
        version: int,
        frame: bytes,
        *,
        sent: dict[TopicPartition, Sent] | None = None,
        asked: dict[tuple[str | None, int], messages.FetchPartition] | None = None,
    ) -> None:
        self._unanswered.append(_Exchange(api, version, frame[_CORRELATION], sent or {}, asked or {}))

    async def _note_sent(self, api: Api, version: int, frame: bytes, body: Message) -> None:
        batches: list[tuple[TopicPartition, TopicId | None, BatchDescriptor]] = []
        for topic in body["topicData"]:
            name, topic_id = await self._broker.cluster.topic_of(*_named(topic, topic["name"]))
            for each in topic["partitionData"]:
                batches += [
                    (TopicPartition(name, each["index"]), topic_id, batch)
                    for batch in describe_batches(each["records"] or b"")
                ]
        self._broker.partitions.update(partition for partition, *_ in batches)
        acks = Acks(body["acks"])
        sent = self._broker.history.invoke(self, batches, acks)
        if acks is Acks.NONE:
            self._broker.history.complete_unanswered(self, sent.values())
        else:
            self._await_answer(api, version, frame, sent=sent)

    async def _asked(self, body: Message) -> AsyncIterator[tuple[tuple[str | None, int], messages.FetchPartition]]:
        for topic in body["topics"]:
            name, topic_id = await self._broker.cluster.topic_of(*_named(topic, topic["topic"]))
            for each in topic["partitions"]:
                epoch = each["currentLeaderEpoch"]
                yield (
                    (topic_id if topic["topicId"] else name, each["partition"]),
                    messages.FetchPartition(
                        topic=name,
                        topic_id=topic_id,
                        partition=each["partition"],
                        fetch_offset=Offset(each["fetchOffset"]),
                        current_leader_epoch=LeaderEpoch(epoch) if epoch >= 0 else None,
                    ),
                )

    # --- Answers --------------------------------------------------------------------------------------------------

    async def _pass_answer(self, exchange: _Exchange, api: Api, frame: bytes) -> None:
        version = exchange.version
        is_flexible = version in api.flexible and api.key != API_VERSIONS
        reader = FieldReader(frame)
        reader.position = 4
        try:
            if is_flexible:
                reader.tagged()
            if api.key == API_VERSIONS and frame[4:6] != b"\0\0":  # written as version 0
                write_frame(self._client, frame)
                return
            answer = response_codec(api.key, version).read(reader)
        except FieldError as error:
            _log.warning("client=%s answer of api=%s reason=%s", self.client_id, api.name, error)
            raise ConnectionAbortedError(str(error)) from None
        is_changed = await self._readdressed(api.key, answer)
        if exchange.asked:
            self._note_polls(exchange, answer)
        if is_changed:
            writer = Writer()
            response_codec(api.key, version).write(answer, writer)
            frame = b"".join((exchange.correlation, b"\0" if is_flexible else b"", *writer.buffers()))
        write_frame(self._client, frame)
        if exchange.sent:
            self._note_outcomes(exchange, answer)

    async def _readdressed(self, key: int, answer: Message) -> bool:
        """Replaces what an answer says that a client must not see; returns whether there was anything."""
        if key == API_VERSIONS:
            for each in answer["apiKeys"]:
                if each["apiKey"] in _READ:
                    each["maxVersion"] = min(each["maxVersion"], all_apis()[each["apiKey"]].versions.last)
            return True
        if key == _METADATA:
            for topic in answer["topics"]:
                if topic["name"] and topic["topicId"]:
                    self._broker.cluster.learn_topic(topic["name"], topic["topicId"])
        places = list(_places(key, answer))
        for place, broker_id in places:
            address = f"{place['host']}:{place['port']}"
            place["host"], place["port"] = await self._broker.cluster.place_of(BrokerId(NodeId(broker_id)), address)
        return bool(places)

    def _note_outcomes(self, exchange: _Exchange, answer: Message) -> None:
        by_index = {
            (topic["topicId"] or topic["name"], each["index"]): each
            for topic in answer["responses"]
            for each in topic["partitionResponses"]
        }
        outcomes = {}
        for partition, sent in exchange.sent.items():
            places = ((name, partition.partition) for name in (sent.topic_id, partition.topic))
            found = next((by_index[place] for place in places if place in by_index), None)
            if found is not None:
                outcomes[partition] = messages.ProducePartitionResponse(
                    topic=partition.topic,
                    partition=partition.partition,
                    error=_error(found["errorCode"]),
                    base_offset=_offset(found["baseOffset"]),
                )
        is_written = not self._client.is_closing()
        self._broker.history.complete(self, exchange.sent, outcomes, is_written=is_written)

    def _note_polls(self, exchange: _Exchange, answer: Message) -> None:
        polls = []
        for topic in answer["responses"]:
            for each in topic["partitions"]:
                asked = exchange.asked.get((topic["topicId"] or topic["topic"], each["partitionIndex"]))
                error, records = _error(each["errorCode"]), each["records"] or b""
                if asked is None or (error is ErrorCode.NONE and not records):
                    continue
                self._broker.partitions.add(asked.topic_partition)
                outcome = messages.FetchPartitionResponse(
                    topic=asked.topic,
                    partition=asked.partition,
                    error=error,
                    high_watermark=_offset(each["highWatermark"]),
                    log_start_offset=_offset(each["logStartOffset"]),
                )
                polls.append(Polled(asked, outcome, records))
        self._broker.history.add_polls(self, polls)


def _named(topic: Message, name: str) -> tuple[str | None, TopicId | None]:
    """Returns the name or the id by which a request names a topic."""
    return (None, TopicId(topic["topicId"])) if topic["topicId"] else (name, None)


def _places(key: int, answer: Message) -> Iterator[tuple[Message, int]]:
    """Yields the parts of an answer that name the address of a broker, with the broker's id."""
    entries: Sequence[Message]
    if key == _COORDINATOR:
        entries, field = (*answer["coordinators"], answer) if answer["coordinators"] else (answer,), "nodeId"
    elif key == _METADATA:
        entries, field = answer["brokers"], "nodeId"
    elif key == _CLUSTER:
        entries, field = answer["brokers"] if answer["endpointType"] == _BROKERS else (), "brokerId"
    else:
        entries, field = answer["nodeEndpoints"] or (), "nodeId"
    for each in entries:
        if each.get("host"):
            yield each, each[field]


def _without_session(frame: bytes, body: Message, body_at: int, version: int) -> bytes:
    """Returns a fetch that asks for no session, where it asked for a new one."""
    if version < _SESSIONS_SINCE or body["sessionEpoch"] != _FIRST_EPOCH:
        return frame
    at = body_at + _SESSION_EPOCH_AT + (4 if version < _NO_REPLICA_ID_SINCE else 0)
    return b"".join((frame[:at], _NO_SESSION, frame[at + 4 :]))


def _error(number: int) -> ErrorCode:
    return ErrorCode(number) if number in _KNOWN_ERRORS else ErrorCode.UNKNOWN_SERVER_ERROR


def _offset(number: int) -> Offset | None:
    return Offset(number) if number >= 0 else None
