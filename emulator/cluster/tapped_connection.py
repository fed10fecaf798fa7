"""One connection of a client through a tap: it forwards frames, and records the client's requests and their responses.

It reads only the following APIs; frames of all others pass unchanged:

- Produce, Fetch, OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete and DeleteGroups, for the history;
- Metadata, FindCoordinator and DescribeCluster, whose responses have addresses of brokers, as responses to Produce and
  Fetch may;
- ApiVersions, whose response offers only those versions of these APIs that the tap can read.

A request of these in a version that cannot be read closes the connection, so that none passes unread.

A client that asks for a fetch session is answered as by a broker without room for one: it names all its partitions
again with each fetch.
"""

import asyncio
import logging
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from laststand.emulator.core import messages
from laststand.emulator.core.address import host_and_port
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import ConfigError, ErrorCode
from laststand.emulator.core.types import Acks, BrokerId, LeaderEpoch, NodeId, Offset, TopicId, TopicPartition
from laststand.emulator.kafka_listener.api_versions import API_VERSIONS
from laststand.emulator.kafka_listener.client_history import ClientHistory, Polled, Sent
from laststand.emulator.kafka_listener.group_positions import (
    POSITION_APIS,
    kind_of,
    known_error,
    known_offset,
    named,
    positions,
)
from laststand.emulator.kafka_listener.key_file import KeyFile
from laststand.emulator.kafka_listener.message_codec import Writer, read_client_id, request_codec, response_codec
from laststand.emulator.kafka_listener.messages import Api, Message, all_apis, api_named
from laststand.emulator.plan.nodes import CLIENT
from laststand.emulator.rpc.frame_end import FrameEnd
from laststand.emulator.storage.fields import FieldError, FieldReader
from laststand.emulator.storage.record_batch import describe_batches

_log: Final = logging.getLogger(__name__)

_PRODUCE: Final = api_named("Produce").key
_FETCH: Final = api_named("Fetch").key
_METADATA: Final = api_named("Metadata").key
_COORDINATOR: Final = api_named("FindCoordinator").key
_CLUSTER: Final = api_named("DescribeCluster").key
_READ: Final = frozenset({_PRODUCE, _FETCH, _METADATA, _COORDINATOR, _CLUSTER, *POSITION_APIS})

_API_AND_VERSION: Final = struct.Struct(">hh")
_SIZE_BYTES: Final = 4
_CORRELATION: Final = slice(8, 12)
_HEADER_END: Final = 12
_CORRELATION_OF_ANSWER: Final = slice(4, 8)
_ANSWER_HEADER_END: Final = 8
"""Places in a frame, which begins with its size."""

_BROKERS: Final = 1
"""Endpoint type of brokers in DescribeCluster."""

_SESSIONS_SINCE: Final = 7
_NO_REPLICA_ID_SINCE: Final = 15
_SESSION_EPOCH_AT: Final = 17
"""Byte of a fetch's session epoch after its header, where there is no replica id before."""

_FIRST_EPOCH: Final = 0
_NO_SESSION: Final = (-1).to_bytes(4, "big", signed=True)
_CONSUMER: Final = -1
_KNOWN_ACKS: Final = frozenset(int(acks) for acks in Acks)
_FLUSHES_AFTER_S: Final = 0.1


class TappedCluster(Protocol):
    """The cluster that a tap is of."""

    async def place_of(self, broker_id: BrokerId, address: str) -> tuple[str, int]:
        """Returns the address at which clients reach a broker that a response names.

        Raises:
            ConfigError: there is no room for its proxy.
        """
        ...

    async def learn_topics(self, topics: Iterable[tuple[str, TopicId | None]]) -> None:
        """Notes the topic names and ids in a response; asks the cluster for missing ids, and for configurations."""
        ...

    def is_judged(self, topic: str) -> bool:
        """Returns whether brokers store the topic's batches as they were sent."""
        ...

    def topic_of(self, name: str | None, topic_id: TopicId | None) -> tuple[str, TopicId | None]:
        """Returns name and id of a topic, given one of them by a request."""
        ...

    def fail(self, problem: str) -> None:
        """Ends the tap, as the requests of clients can no longer be recorded."""
        ...


class TappedBroker:
    """A broker of a tapped cluster.

    Args:
        broker_id: the broker's id.
        address: the broker's address.
        history_file: of its clients.
        key_file: file for the keys of acknowledged records; ``None`` if they are not recorded.
        cluster: the broker's cluster.

    Attributes:
        history: of its clients.
        partitions: that its clients have written to or read from.
    """

    def __init__(
        self, broker_id: BrokerId, address: str, *, history_file: Path, key_file: Path | None, cluster: TappedCluster
    ) -> None:
        self.broker_id = broker_id
        self.address = address
        self.history = ClientHistory(
            history_file,
            broker_id=broker_id,
            incarnation=0,
            keys=None if key_file is None else KeyFile(key_file),
            on_lines=self._flush_soon,
        )
        self.cluster = cluster
        self.partitions: set[TopicPartition] = set()
        self._history_file = history_file
        self._is_whole = True
        self._flushing: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Seals the history, unless a part of it could not be written."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flush()
        if self._is_whole:
            self.history.close()

    def _flush_soon(self) -> None:
        """Has lines written, which is never urgent: a tap that is killed leaves a run without a verdict."""
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_FLUSHES_AFTER_S, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        try:
            self.history.flush()
        except OSError as error:
            self._is_whole = False
            problem = f"{error.filename or self._history_file}: {error.strerror}"
            _log.error("%s", problem)
            self.cluster.fail(problem)


class _Exchange(NamedTuple):
    """A request that is not answered yet.

    Attributes:
        api: the request's API; ``None`` if the response passes unchanged.
        version: the request's version.
        correlation: the request's correlation id.
        sent: of a produce request.
        asked: of a consumer's fetch.
        body: of a request about positions of groups.
        begun_ns: when the request came.
    """

    api: Api | None
    version: int
    correlation: bytes
    sent: dict[TopicPartition, Sent]
    asked: dict[tuple[str | None, int], messages.FetchPartition]
    body: Message | None
    begun_ns: int


class TappedConnection:
    """A connection of a client, and the tap's connection to the broker for it.

    Args:
        broker: the broker that the client connects to.
        number: unique among the broker's connections.
        on_end: called with the connection when it has ended.

    Attributes:
        client: the end of the client, as a protocol of asyncio.
        client_id: of the newest request.
        link: the client as an end of links.
        number: the given number.
    """

    def __init__(self, broker: TappedBroker, *, number: int, on_end: Callable[["TappedConnection"], None]) -> None:
        self.client = FrameEnd(on_frame=self._pass_request, on_lost=self.close)
        self.client_id = ""
        self.link = CLIENT
        self.number = number
        self._node = FrameEnd(on_frame=self._pass_answer, on_lost=self.close)
        self.client.other, self._node.other = self._node, self.client
        self._broker = broker
        self._on_end = on_end
        self._is_over = False
        self._unanswered: deque[_Exchange] = deque()
        self._work: asyncio.Task[None] | None = None
        """Whatever cannot be done at once; there is one at a time."""

    def dial(self) -> None:
        """Connects to the broker; reading from the client begins only then."""
        self._work = asyncio.get_running_loop().create_task(self._dial())

    async def _dial(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: self._node, *host_and_port(self._broker.address))
        except OSError:  # nobody listens there: the client's connection ends
            self.close()
            return
        self._node.release()
        self.client.release()

    def close(self) -> None:
        """Ends both connections once all written bytes have been sent."""
        if self._is_over:
            return
        self._is_over = True
        if self._work is not None:
            self._work.cancel()
        for end in (self.client, self._node):
            end.close()
        for exchange in self._unanswered:
            self._broker.history.complete(self, exchange.sent, {}, is_written=False)
            if exchange.api is not None and exchange.body is not None:
                self._note_positions(exchange, exchange.api, exchange.body, None)
        self._broker.history.forget(self)
        self._on_end(self)

    # --- Requests -------------------------------------------------------------------------------------------------

    def _pass_request(self, frame: bytes | bytearray) -> None:
        try:
            self._node.write(self._read_request(frame))
        except FieldError as error:
            _log.warning("client=%s reason=%s", self.client_id, error)
            self.close()

    def _read_request(self, frame: bytes | bytearray) -> bytes | bytearray:
        """Notes a request; returns the frame to be sent.

        Raises:
            FieldError: it is no valid request, or the tap cannot read this version of its API.
        """
        if len(frame) < _HEADER_END:
            raise FieldError("a request without a header")
        key, version = _API_AND_VERSION.unpack_from(frame, _SIZE_BYTES)
        api = all_apis().get(key) if key in _READ or key == API_VERSIONS else None
        if api is None or (key == API_VERSIONS and version not in api.versions):  # which a broker answers as version 0
            self._await_answer(None, version, frame)
            return frame
        reader = FieldReader(memoryview(frame))
        reader.position = _HEADER_END
        self.client_id = read_client_id(reader, is_flexible=version in api.flexible)
        if version not in api.versions:
            readable = f"{api.versions.first} to {api.versions.last}"
            raise FieldError(f"{api.name} in version {version}, and a tap reads versions {readable}")
        body_at = reader.position
        if key == _PRODUCE:
            self._note_sent(api, version, frame, request_codec(key, version).read(reader))
        elif key == _FETCH:
            body = request_codec(key, version).read(reader)
            self._await_answer(api, version, frame, asked=dict(self._asked(body)))
            return _without_session(frame, body, body_at, version)
        elif key in POSITION_APIS:
            self._await_answer(api, version, frame, body=request_codec(key, version).read(reader))
        else:
            self._await_answer(api, version, frame)
        return frame

    def _await_answer(
        self,
        api: Api | None,
        version: int,
        frame: bytes | bytearray,
        *,
        sent: dict[TopicPartition, Sent] | None = None,
        asked: dict[tuple[str | None, int], messages.FetchPartition] | None = None,
        body: Message | None = None,
    ) -> None:
        self._unanswered.append(
            _Exchange(
                api=api,
                version=version,
                correlation=bytes(frame[_CORRELATION]),
                sent=sent or {},
                asked=asked or {},
                body=body,
                begun_ns=0 if body is None else time.monotonic_ns(),
            )
        )

    def _note_sent(self, api: Api, version: int, frame: bytes | bytearray, body: Message) -> None:
        if body["acks"] not in _KNOWN_ACKS:  # a broker refuses it
            self._await_answer(None, version, frame)
            return
        batches: list[tuple[TopicPartition, TopicId | None, BatchDescriptor]] = []
        records: dict[TopicPartition, bytes] = {}
        for topic in body["topicData"]:
            name, topic_id = self._broker.cluster.topic_of(*named(topic, topic["name"]))
            for each in topic["partitionData"] if self._broker.cluster.is_judged(name) else ():
                partition = TopicPartition(name, each["index"])
                records[partition] = each["records"] or b""
                batches += [(partition, topic_id, batch) for batch in describe_batches(records[partition])]
        self._broker.partitions.update(partition for partition, *_ in batches)
        acks = Acks(body["acks"])
        sent = self._broker.history.invoke(self, batches, acks, records=records)
        if acks is Acks.NONE:
            self._broker.history.complete_unanswered(self, sent.values())
        else:
            self._await_answer(api, version, frame, sent=sent)

    def _asked(self, body: Message) -> Iterator[tuple[tuple[str | None, int], messages.FetchPartition]]:
        """Yields a consumer's fetched partitions, with topics as the request names them; none of a replica's fetch."""
        if body["replicaId"] != _CONSUMER:
            return
        for topic in body["topics"]:
            name, topic_id = self._broker.cluster.topic_of(*named(topic, topic["topic"]))
            for each in topic["partitions"] if self._broker.cluster.is_judged(name) else ():
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

    def _pass_answer(self, frame: bytes | bytearray) -> None:
        exchange = self._unanswered[0] if self._unanswered else None
        if exchange is None or frame[_CORRELATION_OF_ANSWER] != exchange.correlation:
            _log.warning("client=%s reason=an answer to nothing", self.client_id)
            self.close()
        elif exchange.api is None:
            self._answer(exchange, frame)
        else:
            try:
                self._read_answer(exchange, exchange.api, frame)
            except FieldError as error:
                _log.warning("client=%s answer of api=%s reason=%s", self.client_id, exchange.api.name, error)
                self.close()

    def _answer(self, exchange: _Exchange, frame: bytes | bytearray, answer: Message | None = None) -> None:
        """Writes a response to the client's socket, and notes its outcomes."""
        self.client.write(frame)
        self._unanswered.popleft()
        if exchange.sent and answer is not None:
            outcomes = _outcomes(exchange.sent, answer)
            self._broker.history.complete(self, exchange.sent, outcomes, is_written=self.client.is_open)

    def _read_answer(self, exchange: _Exchange, api: Api, frame: bytes | bytearray) -> None:
        version = exchange.version
        reader = FieldReader(memoryview(frame))
        reader.position = _ANSWER_HEADER_END
        if _has_flexible_header(api, version):
            reader.tagged()
        if api.key == API_VERSIONS and frame[_ANSWER_HEADER_END : _ANSWER_HEADER_END + 2] != b"\0\0":
            self._answer(exchange, frame)  # an error is written as version 0
            return
        answer = response_codec(api.key, version).read(reader)
        if exchange.asked:
            self._note_polls(exchange, answer)
        if exchange.body is not None:
            self._note_positions(exchange, api, exchange.body, answer)
        if api.key == API_VERSIONS:
            for each in answer["apiKeys"]:
                if each["apiKey"] in _READ:
                    readable = all_apis()[each["apiKey"]].versions
                    each["minVersion"] = max(each["minVersion"], readable.first)
                    each["maxVersion"] = min(each["maxVersion"], readable.last)
            self._answer(exchange, _written(exchange, api, answer))
        elif api.key == _METADATA or any(_places(api.key, answer)):
            self._node.hold()
            answering = self._answer_readdressed(exchange, api, answer)
            self._work = asyncio.get_running_loop().create_task(answering)
        else:
            self._answer(exchange, frame, answer)

    async def _answer_readdressed(self, exchange: _Exchange, api: Api, answer: Message) -> None:
        """Answers with the addresses of proxies in place of brokers'."""
        cluster = self._broker.cluster
        try:
            if api.key == _METADATA:
                named = [topic for topic in answer["topics"] if topic["name"] and not topic["errorCode"]]
                await cluster.learn_topics((topic["name"], topic["topicId"]) for topic in named)
            for place, broker_id in _places(api.key, answer):
                address = f"{place['host']}:{place['port']}"
                place["host"], place["port"] = await cluster.place_of(BrokerId(NodeId(broker_id)), address)
        except ConfigError as error:
            _log.error("%s", error)
            self.close()
            return
        except BaseException:  # a bug, which the task reports: the client must not wait for an answer
            self.close()
            raise
        self._answer(exchange, _written(exchange, api, answer), answer)
        self._node.release()

    def _note_positions(self, exchange: _Exchange, api: Api, body: Message, answer: Message | None) -> None:
        """Notes a coordinator's answer about positions; for a commit also that no answer came."""
        found = positions(api.key, body, answer, self._broker.cluster.topic_of)
        self._broker.history.add_positions(self, kind_of(api.key), found, begun_ns=exchange.begun_ns)

    def _note_polls(self, exchange: _Exchange, answer: Message) -> None:
        polls = []
        for topic in answer["responses"]:
            for each in topic["partitions"]:
                asked = exchange.asked.get((topic["topicId"] or topic["topic"], each["partitionIndex"]))
                error, records = known_error(each["errorCode"]), each["records"] or b""
                if asked is None or (error is ErrorCode.NONE and not records):
                    continue
                self._broker.partitions.add(asked.topic_partition)
                outcome = messages.FetchPartitionResponse(
                    topic=asked.topic,
                    partition=asked.partition,
                    error=error,
                    high_watermark=known_offset(each["highWatermark"]),
                    log_start_offset=known_offset(each["logStartOffset"]),
                )
                polls.append(Polled(asked, outcome, records))
        self._broker.history.add_polls(self, polls)


def _outcomes(
    sent: Mapping[TopicPartition, Sent], answer: Message
) -> dict[TopicPartition, messages.ProducePartitionResponse]:
    by_index = {
        (topic["topicId"] or topic["name"], each["index"]): each
        for topic in answer["responses"]
        for each in topic["partitionResponses"]
    }
    outcomes = {}
    for partition, batch in sent.items():
        places = ((name, partition.partition) for name in (batch.topic_id, partition.topic))
        found = next((by_index[place] for place in places if place in by_index), None)
        if found is not None:
            outcomes[partition] = messages.ProducePartitionResponse(
                topic=partition.topic,
                partition=partition.partition,
                error=known_error(found["errorCode"]),
                base_offset=known_offset(found["baseOffset"]),
            )
    return outcomes


def _has_flexible_header(api: Api, version: int) -> bool:
    return version in api.flexible and api.key != API_VERSIONS


def _written(exchange: _Exchange, api: Api, answer: Message) -> bytes:
    """Returns an answer as a frame."""
    writer = Writer()
    response_codec(api.key, exchange.version).write(answer, writer)
    header = b"\0" if _has_flexible_header(api, exchange.version) else b""
    content = b"".join((exchange.correlation, header, *writer.buffers()))
    return len(content).to_bytes(_SIZE_BYTES, "big") + content


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
        entries, field = answer.get("nodeEndpoints") or (), "nodeId"
    for each in entries:
        if each.get("host"):
            yield each, each[field]


def _without_session(frame: bytes | bytearray, body: Message, body_at: int, version: int) -> bytes | bytearray:
    """Returns a fetch request without a session, if it asked for a new one."""
    if version < _SESSIONS_SINCE or body["sessionEpoch"] != _FIRST_EPOCH:
        return frame
    at = body_at + _SESSION_EPOCH_AT + (4 if version < _NO_REPLICA_ID_SINCE else 0)
    return b"".join((frame[:at], _NO_SESSION, frame[at + 4 :]))
