"""A cluster that speaks Kafka's protocol and keeps its records in memory, for drivers that know only that protocol.

All brokers share one log per partition, so a failover loses nothing by itself. ``Fault`` says what the cluster does
wrong. A broker is down while there is a file ``down-<id>`` in the cluster's folder: commands that kill and start it
make and remove that.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.kafka_listener.message_codec import Writer, request_codec, response_codec
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.storage.fields import FieldReader
from laststand.emulator.storage.record_batch import describe_header, stamp

VERSIONS: Final[Mapping[str, int]] = {
    "Produce": 11,
    "Fetch": 16,
    "ListOffsets": 7,
    "Metadata": 12,
    "ApiVersions": 3,
    "InitProducerId": 4,
    "CreateTopics": 7,
    "DeleteTopics": 6,
}
_HOST: Final = "127.0.0.1"
_WAIT_S: Final = 0.05
_BATCHES_MAX: Final = 4

_NONE: Final = 0
_OFFSET_OUT_OF_RANGE: Final = 1
_UNKNOWN_TOPIC: Final = 3
_NOT_LEADER: Final = 6
_NOT_CONTROLLER: Final = 41
_UNKNOWN_TOPIC_ID: Final = 100
_EARLIEST: Final = -2


class Fault(NamedTuple):
    """Misbehaviour of a cluster.

    Attributes:
        drops_one_in: the batch with each record whose number is a multiple of that is acknowledged, and not stored; 0
            for none.
        stale_records: so many of the newest records are left out of what the successor of a leader serves, until all
            brokers are there again.
        delay_s: before each answer to a producer or consumer.
    """

    drops_one_in: int = 0
    stale_records: int = 0
    delay_s: float = 0.0


class _Batch(NamedTuple):
    base_offset: int
    next_offset: int
    content: bytes


class _Log:
    def __init__(self) -> None:
        self.batches: list[_Batch] = []
        self.epoch = 0
        self.leader: int | None = None
        self.received = 0
        self.appended: dict[tuple[int | None, int, int], int] = {}

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0


class FakeCluster:
    """Brokers on loopback; ``running`` starts them.

    Args:
        folder: of the files that say which brokers are down.
        broker_ids: of the brokers.
        fault: what they do wrong.
    """

    def __init__(self, folder: Path, *, broker_ids: Sequence[int], fault: Fault) -> None:
        self.dropped = 0
        self._folder = folder
        self._fault = fault
        self._ports = dict.fromkeys(broker_ids, 0)
        self._topics: dict[str, list[_Log]] = {}
        self._producers = 0
        self._answers: dict[int, Callable[[int, Message], Message]] = {
            api_named("ApiVersions").key: self._api_versions,
            api_named("Metadata").key: self._metadata,
            api_named("InitProducerId").key: self._init_producer_id,
            api_named("Produce").key: self._produce,
            api_named("ListOffsets").key: self._list_offsets,
            api_named("Fetch").key: self._fetch,
            api_named("CreateTopics").key: self._create_topics,
            api_named("DeleteTopics").key: self._delete_topics,
        }

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return ",".join(f"{_HOST}:{port}" for port in self._ports.values())

    @property
    def topics(self) -> list[str]:
        """Names of the topics that there are."""
        return list(self._topics)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serves from a thread of its own."""
        loop = asyncio.new_event_loop()
        servers = [loop.run_until_complete(self._listen(broker_id)) for broker_id in self._ports]
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            for server in servers:
                server.close()
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    async def _listen(self, broker_id: int) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while not self._is_down(broker_id):
                    request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                    answer = await self._answer(broker_id, request)
                    if not self._is_down(broker_id):
                        writer.write(len(answer).to_bytes(4, "big") + answer)
            writer.transport.abort()

        server = await asyncio.start_server(serve, _HOST, 0)
        self._ports[broker_id] = server.sockets[0].getsockname()[1]
        return server

    def _is_down(self, broker_id: int) -> bool:
        return (self._folder / f"down-{broker_id}").exists()

    async def _answer(self, broker_id: int, frame: bytes) -> bytes:
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        reader = FieldReader(frame)
        reader.position = 8
        reader.raw_bytes(max(0, reader.int16()))
        reader.tagged()  # all these versions are flexible
        request = request_codec(key, version).read(reader)
        if key in (api_named("Produce").key, api_named("Fetch").key):
            await asyncio.sleep(self._fault.delay_s)
        writer = Writer()
        answer = self._answers[key](broker_id, request)
        if key == api_named("Fetch").key and not any(
            each["records"] for topic in answer["responses"] for each in topic["partitions"]
        ):
            await asyncio.sleep(_WAIT_S)
        response_codec(key, version).write(answer, writer)
        header = b"" if key == api_named("ApiVersions").key else b"\0"
        return b"".join((frame[4:8], header, *writer.buffers()))

    # --- Who is there ---------------------------------------------------------------------------------------------

    def _api_versions(self, _: int, __: Message) -> Message:
        keys = [
            {"apiKey": api_named(name).key, "minVersion": 0, "maxVersion": version}
            for name, version in VERSIONS.items()
        ]
        return {"errorCode": _NONE, "apiKeys": keys}

    def _metadata(self, _: int, request: Message) -> Message:
        wanted = self._topics if request["topics"] is None else [each["name"] for each in request["topics"]]
        return {
            "brokers": [
                {"nodeId": broker_id, "host": _HOST, "port": port} for broker_id, port in self._alive().items()
            ],
            "clusterId": "fake",
            "controllerId": self._controller,
            "topics": [self._described(name) for name in wanted],
        }

    @property
    def _controller(self) -> int:
        """The last broker that is alive; the others refuse what is the controller's."""
        return next(reversed(self._alive()), -1)

    def _alive(self) -> dict[int, int]:
        return {broker_id: port for broker_id, port in self._ports.items() if not self._is_down(broker_id)}

    def _described(self, name: str) -> Message:
        if name not in self._topics:
            return {"errorCode": _UNKNOWN_TOPIC, "name": name, "topicId": topic_id(""), "partitions": []}
        partitions = []
        for index, log in enumerate(self._topics[name]):
            self._elect(log)
            partitions.append(
                {
                    "errorCode": _NONE,
                    "partitionIndex": index,
                    "leaderId": -1 if log.leader is None else log.leader,
                    "leaderEpoch": log.epoch,
                    "replicaNodes": list(self._ports),
                    "isrNodes": list(self._alive()),
                    "offlineReplicas": [],
                }
            )
        return {"errorCode": _NONE, "name": name, "topicId": topic_id(name), "partitions": partitions}

    def _elect(self, log: _Log) -> None:
        """Has the first broker that is alive lead, if nobody does."""
        alive = self._alive()
        if log.leader not in alive:
            has_led = log.leader is not None
            log.leader = next(iter(alive), None)
            log.epoch += has_led

    def _create_topics(self, broker_id: int, request: Message) -> Message:
        if broker_id != self._controller:
            return {"topics": [{"name": each["name"], "errorCode": _NOT_CONTROLLER} for each in request["topics"]]}
        for topic in request["topics"]:
            self._topics[topic["name"]] = [_Log() for _ in topic["assignments"] or range(topic["numPartitions"])]
        return {"topics": [{"name": each["name"], "topicId": topic_id(each["name"])} for each in request["topics"]]}

    def _delete_topics(self, broker_id: int, request: Message) -> Message:
        if broker_id != self._controller:
            return {"responses": [{"name": each["name"], "errorCode": _NOT_CONTROLLER} for each in request["topics"]]}
        for topic in request["topics"]:
            self._topics.pop(topic["name"], None)
        return {"responses": [{"name": each["name"]} for each in request["topics"]]}

    # --- Records --------------------------------------------------------------------------------------------------

    def _init_producer_id(self, _: int, __: Message) -> Message:
        self._producers += 1
        return {"errorCode": _NONE, "producerId": 1000 + self._producers, "producerEpoch": 0}

    def _log(self, broker_id: int, name: str | None, index: int) -> tuple[_Log | None, int]:
        """Returns a partition that a broker leads, or the error of one that it does not."""
        if name not in self._topics:
            return None, _UNKNOWN_TOPIC
        log = self._topics[name][index]
        self._elect(log)
        return (log, _NONE) if log.leader == broker_id else (None, _NOT_LEADER)

    def _produce(self, broker_id: int, request: Message) -> Message:
        return {
            "responses": [
                {
                    "name": topic["name"],
                    "partitionResponses": [
                        self._append(broker_id, topic["name"], each) for each in topic["partitionData"]
                    ],
                }
                for topic in request["topicData"]
            ]
        }

    def _append(self, broker_id: int, name: str, asked: Message) -> Message:
        log, error = self._log(broker_id, name, asked["index"])
        if log is None:
            return {"index": asked["index"], "errorCode": error, "baseOffset": -1}
        described = describe_header(asked["records"], 0)
        sequence = (described.producer_id, described.producer_epoch, described.base_sequence)
        if described.producer_id is None or sequence not in log.appended:
            base_offset, before = log.end, log.received
            log.appended[sequence] = base_offset
            log.received += described.record_count
            if (
                self._fault.drops_one_in
                and before // self._fault.drops_one_in < log.received // self._fault.drops_one_in
            ):
                self.dropped += described.record_count
            else:
                end = base_offset + described.record_count
                placed = msgspec.structs.replace(
                    described, base_offset=base_offset, last_offset=end - 1, leader_epoch=log.epoch
                )
                log.batches.append(_Batch(base_offset, end, bytes(stamp(asked["records"], placed))))
        return {
            "index": asked["index"],
            "errorCode": _NONE,
            "baseOffset": log.appended[sequence],
            "logStartOffset": 0,
        }

    def _served_end(self, log: _Log) -> int:
        is_stale = log.epoch > 0 and len(self._alive()) < len(self._ports)
        return max(0, log.end - self._fault.stale_records) if is_stale else log.end

    def _list_offsets(self, broker_id: int, request: Message) -> Message:
        def listed(name: str, asked: Message) -> Message:
            log, error = self._log(broker_id, name, asked["partitionIndex"])
            if log is None:
                return {"partitionIndex": asked["partitionIndex"], "errorCode": error}
            offset = 0 if asked["timestamp"] == _EARLIEST else self._served_end(log)
            return {"partitionIndex": asked["partitionIndex"], "offset": offset, "leaderEpoch": log.epoch}

        return {
            "topics": [
                {"name": topic["name"], "partitions": [listed(topic["name"], each) for each in topic["partitions"]]}
                for topic in request["topics"]
            ]
        }

    def _fetch(self, broker_id: int, request: Message) -> Message:
        names = {topic_id(name): name for name in self._topics}

        def fetched(name: str | None, asked: Message) -> Message:
            log, error = self._log(broker_id, name, asked["partition"])
            if log is None:
                error = _UNKNOWN_TOPIC_ID if name is None else error
                return {"partitionIndex": asked["partition"], "errorCode": error, "highWatermark": -1, "records": b""}
            end = self._served_end(log)
            if asked["fetchOffset"] > end:
                error = _OFFSET_OUT_OF_RANGE
            found = [
                each for each in log.batches if each.next_offset > asked["fetchOffset"] and each.next_offset <= end
            ]
            return {
                "partitionIndex": asked["partition"],
                "errorCode": error,
                "highWatermark": end,
                "lastStableOffset": end,
                "logStartOffset": 0,
                "records": b"".join(each.content for each in found[:_BATCHES_MAX]),
            }

        return {
            "responses": [
                {
                    "topicId": topic["topicId"],
                    "partitions": [fetched(names.get(topic["topicId"]), each) for each in topic["partitions"]],
                }
                for topic in request["topics"]
            ]
        }


def topic_id(name: str) -> str:
    """Returns the id of a topic of a fake cluster."""
    return uuid_text(name.encode()[:16].ljust(16, b"\0"))
