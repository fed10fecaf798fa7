"""A connection through a tap, without sockets: what is written down of it, and what its client is told."""

import asyncio
import errno
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from laststand.emulator.client.history import read_history
from laststand.emulator.cluster.tapped_connection import TappedBroker, TappedConnection
from laststand.emulator.core.batch import Marker, TransactionResult
from laststand.emulator.core.history import (
    COORDINATOR,
    UNKNOWN_PRODUCER,
    GroupPositionOperation,
    HistoryLine,
    OperationType,
    PollOperation,
    SendOperation,
)
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import BrokerId, NodeId, ProducerEpoch, ProducerId, TopicId
from laststand.emulator.kafka_listener.message_codec import Writer, request_codec, response_codec
from laststand.emulator.kafka_listener.messages import Message, api_named
from laststand.emulator.rpc.frame_end import FrameEnd
from laststand.emulator.storage.control_batch import encode_marker
from laststand.emulator.storage.fields import FieldReader
from laststand.emulator.storage.record_batch import describe_batches
from laststand.emulator.storage.record_codec import RecordContent, build_batch

ORDERS = TopicId("id-of-orders-id-of-ord")


class Cluster:
    """A cluster with one topic."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.bug: Exception | None = None
        self.keeps_batches = True

    async def place_of(self, broker_id: BrokerId, address: str) -> tuple[str, int]:
        if self.bug is not None:
            raise self.bug
        return "tap", 9092 + broker_id

    async def learn_topics(self, topics: Iterable[tuple[str, TopicId | None]]) -> None:
        pass

    def topic_of(self, name: str | None, topic_id: TopicId | None) -> tuple[str, TopicId | None]:
        return "orders", ORDERS

    def is_judged(self, topic: str) -> bool:
        return self.keeps_batches

    def fail(self, problem: str) -> None:
        self.problems.append(problem)


class Transport(asyncio.Transport):
    """Remembers what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: object) -> None:
        assert isinstance(data, bytes | bytearray)
        self.written.append(bytes(data))

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


class Tap:
    """A connection, with what its two ends were written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = Cluster()
        self.broker = TappedBroker(
            BrokerId(NodeId(1)),
            "127.0.0.1:1",
            history_file=folder / "history.packed",
            key_file=folder / "keys.jsonl",
            cluster=self.cluster,
        )
        self._connection = TappedConnection(self.broker, number=1, on_end=lambda _: None)
        self.client, self.node = Transport(), Transport()
        self._ends: list[FrameEnd] = [self._connection.client, self._connection.client.other]
        for end, transport in zip(self._ends, (self.client, self.node), strict=True):
            end.connection_made(transport)
            end.release()

    def ask(self, api: str, version: int, body: Message) -> None:
        writer = Writer()
        request_codec(api_named(api).key, version).write(body, writer)
        self.send(api, version, b"".join(writer.buffers()))

    def send(self, api: str, version: int, body: bytes) -> None:
        key = api_named(api)
        tags = b"\0" if version in key.flexible else b""
        head = key.key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\7" + b"\0\4shop" + tags
        self._receive(self._ends[0], head + body)

    def answer(self, api: str, version: int, body: Message) -> None:
        key = api_named(api)
        writer = Writer()
        response_codec(key.key, version).write(body, writer)
        tags = b"\0" if version in key.flexible else b""
        self._receive(self._ends[1], b"".join((b"\0\0\0\7", tags, *writer.buffers())))

    def close(self) -> None:
        self._connection.close()
        self.broker.close()

    @staticmethod
    def _receive(end: FrameEnd, content: bytes) -> None:
        frame = len(content).to_bytes(4, "big") + content
        end.get_buffer(-1)[: len(frame)] = frame
        end.buffer_updated(len(frame))


@pytest.fixture
async def tap(tmp_path: Path) -> Tap:
    return Tap(tmp_path)


def history_of(tap: Tap) -> Sequence[HistoryLine]:
    tap.close()
    return read_history(tap.folder / "history.packed")[:-1]


async def test_a_batch_is_on_record_with_its_answer_and_its_keys(tap: Tap) -> None:
    records = [RecordContent(key=b"order-1", value=b"1", timestamp_ms=0), RecordContent(value=b"2", timestamp_ms=0)]
    batch = build_batch(records)
    entry = {"index": 0, "records": batch}
    tap.ask("Produce", 9, {"acks": -1, "timeoutMs": 1, "topicData": [{"name": "orders", "partitionData": [entry]}]})
    answered = {"index": 0, "errorCode": 0, "baseOffset": 40}
    tap.answer("Produce", 9, {"responses": [{"name": "orders", "partitionResponses": [answered]}]})
    assert len(tap.node.written) == len(tap.client.written) == 1
    [begun, ended] = history_of(tap)
    assert isinstance(begun, SendOperation)
    assert isinstance(ended, SendOperation)
    assert (begun.type, ended.type, ended.base_offset) == (OperationType.INVOKE, OperationType.OK, 40)
    assert (ended.record_count, ended.process) == (2, "kafka:shop@1000->1-0.1")
    [described] = describe_batches(batch)
    assert json.loads((tap.folder / "keys.jsonl").read_text()) == {
        "topic": "orders", "topic_id": ORDERS, "partition": 0, "base_offset": 40,
        "crc": described.crc, "keys": ["order-1", None],
    }  # fmt: skip


async def test_a_connection_that_ends_leaves_its_requests_unknown(tap: Tap) -> None:
    entry = {"index": 0, "records": build_batch([RecordContent(value=b"1", timestamp_ms=0)])}
    tap.ask("Produce", 9, {"acks": -1, "timeoutMs": 1, "topicData": [{"name": "orders", "partitionData": [entry]}]})
    commit(tap, 8)
    types = [each.type for each in history_of(tap) if isinstance(each, SendOperation | GroupPositionOperation)]
    assert types == [OperationType.INVOKE, OperationType.INFO, OperationType.INFO]
    assert tap.node.is_closed


@pytest.mark.parametrize("version", [2, 8, 10])
@pytest.mark.parametrize(
    ("error", "outcome"), [(0, OperationType.OK), (16, OperationType.INFO), (22, OperationType.FAIL)]
)
async def test_a_commit_is_on_record(version: int, error: int, outcome: OperationType, tap: Tap) -> None:
    commit(tap, version)
    entry = {"partitionIndex": 3, "errorCode": error}
    tap.answer("OffsetCommit", version, {"topics": [{"name": "orders", "topicId": ORDERS, "partitions": [entry]}]})
    [position] = history_of(tap)
    assert isinstance(position, GroupPositionOperation)
    assert (position.type, position.kind, position.group_id, position.offset) == (outcome, "commit", "buyers", 17)
    assert (position.topic, position.partition, position.node) == ("orders", 3, 1)
    assert 0 < position.begun_ns <= position.time_ns


@pytest.mark.parametrize(("api", "version"), [("Produce", 2), ("Produce", 14), ("Fetch", 3), ("Metadata", 14)])
async def test_what_cannot_be_put_on_record_does_not_pass(
    api: str, version: int, tap: Tap, caplog: pytest.LogCaptureFixture
) -> None:
    tap.send(api, version, b"")
    assert tap.node.written == []
    assert tap.client.is_closed
    assert tap.node.is_closed
    assert f"client=shop reason={api} in version {version}" in caplog.text


async def test_only_versions_that_can_be_read_are_offered(tap: Tap) -> None:
    tap.ask("ApiVersions", 0, {})
    offered = [{"apiKey": api_named(name).key, "minVersion": 0, "maxVersion": 99} for name in ("Produce", "JoinGroup")]
    tap.answer("ApiVersions", 0, {"errorCode": 0, "apiKeys": offered})
    [frame] = tap.client.written
    api_keys = response_codec(api_named("ApiVersions").key, 0).read(FieldReader(memoryview(frame)[8:]))["apiKeys"]
    assert [(each["minVersion"], each["maxVersion"]) for each in api_keys] == [(3, 13), (0, 99)]


async def test_a_version_of_api_versions_that_is_unknown_passes(tap: Tap) -> None:
    tap.send("ApiVersions", 5, b"")
    assert len(tap.node.written) == 1


async def test_a_commit_in_a_transaction_is_on_record(tap: Tap) -> None:
    entry = {"partitionIndex": 3, "committedOffset": 17, "committedMetadata": None}
    identity = {"transactionalId": "pay", "groupId": "buyers", "producerId": 1, "producerEpoch": 0, "memberId": ""}
    tap.ask("TxnOffsetCommit", 3, {**identity, "topics": [{"name": "orders", "partitions": [entry]}]})
    answered = {"partitionIndex": 3, "errorCode": 0}
    tap.answer("TxnOffsetCommit", 3, {"topics": [{"name": "orders", "partitions": [answered]}]})
    [position] = history_of(tap)
    assert isinstance(position, GroupPositionOperation)
    assert (position.kind, position.offset) == ("commit", 17)
    assert position.type is OperationType.INFO, "the transaction may be aborted"


@pytest.mark.parametrize("version", [1, 8])
async def test_a_position_that_is_given_is_on_record(version: int, tap: Tap) -> None:
    asked = {"name": "orders", "partitionIndexes": [3, 4]}
    groups = [{"groupId": "buyers", "topics": [asked]}]
    tap.ask("OffsetFetch", version, {"groupId": "buyers", "topics": [asked], "groups": groups})
    given = [
        {"partitionIndex": 3, "committedOffset": 17, "errorCode": 0},
        {"partitionIndex": 4, "committedOffset": -1, "errorCode": 0},
    ]
    topics = [{"name": "orders", "partitions": given}]
    tap.answer("OffsetFetch", version, {"topics": topics, "groups": [{"groupId": "buyers", "topics": topics}]})
    positions = [each for each in history_of(tap) if isinstance(each, GroupPositionOperation)]
    assert [(each.kind, each.group_id, each.partition, each.offset) for each in positions] == [
        ("fetch", "buyers", 3, 17),
        ("fetch", "buyers", 4, None),
    ]


@pytest.mark.parametrize(
    ("error", "outcome"), [(0, OperationType.OK), (68, OperationType.FAIL), (15, OperationType.INFO)]
)
async def test_positions_that_are_deleted_are_on_record(error: int, outcome: OperationType, tap: Tap) -> None:
    tap.ask(
        "OffsetDelete", 0, {"groupId": "buyers", "topics": [{"name": "orders", "partitions": [{"partitionIndex": 3}]}]}
    )
    tap.answer("OffsetDelete", 0, {"errorCode": error, "topics": [] if error else [deleted_position()]})
    tap.ask("DeleteGroups", 2, {"groupsNames": ["buyers"]})
    tap.answer("DeleteGroups", 2, {"results": [{"groupId": "buyers", "errorCode": error}]})
    positions = [each for each in history_of(tap) if isinstance(each, GroupPositionOperation)]
    assert [(each.kind, each.group_id, each.offset) for each in positions] == [("commit", "buyers", None)] * 2
    assert [(each.topic, each.partition) for each in positions] == [("orders", 3), ("", 0)]
    assert [each.type for each in positions] == [outcome] * 2


@pytest.mark.parametrize(
    ("error", "outcome"), [(0, OperationType.OK), (16, OperationType.FAIL), (-1, OperationType.FAIL)]
)
async def test_a_position_that_is_asked_for_is_given_without_an_error_only(
    error: int, outcome: OperationType, tap: Tap
) -> None:
    entry = {"name": "orders", "partitionIndexes": [3]}
    tap.ask("OffsetFetch", 1, {"groupId": "buyers", "topics": [entry]})
    given = {"partitionIndex": 3, "committedOffset": -1, "metadata": "", "errorCode": error}
    tap.answer("OffsetFetch", 1, {"topics": [{"name": "orders", "partitions": [given]}]})
    [position] = [each for each in history_of(tap) if isinstance(each, GroupPositionOperation)]
    assert (position.kind, position.type, position.offset) == ("fetch", outcome, None)


async def test_of_a_topic_whose_batches_brokers_change_nothing_is_on_record(tap: Tap) -> None:
    tap.cluster.keeps_batches = False
    entry = {"index": 0, "records": build_batch([RecordContent(value=b"1", timestamp_ms=0)])}
    tap.ask("Produce", 9, {"acks": -1, "timeoutMs": 1, "topicData": [{"name": "orders", "partitionData": [entry]}]})
    answered = {"index": 0, "errorCode": 0, "baseOffset": 40}
    tap.answer("Produce", 9, {"responses": [{"name": "orders", "partitionResponses": [answered]}]})
    fetch(tap, 0, 0)
    assert len(tap.client.written) == 2
    assert tap.broker.partitions == set()
    tap.close()
    assert not (tap.folder / "history.packed").exists()


async def test_a_consumer_has_sought_where_it_does_not_go_on_from_its_last_batch(tap: Tap) -> None:
    for position, error in [(0, 0), (2, 0), (7, 0), (9, 1), (9, 0), (3, 0)]:
        fetch(tap, position, error)
    polls = [each for each in history_of(tap) if isinstance(each, PollOperation)]
    assert [(each.position, each.seek) for each in polls] == [
        (0, True), (2, False), (7, True), (9, False), (9, True), (3, True),
    ]  # fmt: skip


async def test_a_history_that_cannot_be_written_ends_the_tap(
    tap: Tap, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def write(descriptor: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    commit(tap, 8)
    with monkeypatch.context() as context:
        context.setattr(os, "write", write)
        tap.close()
    problem = f"{tap.folder / 'history.packed'}: No space left on device"
    assert (tap.cluster.problems, caplog.messages) == ([problem], [problem])
    assert read_history(tap.folder / "history.packed") == [], "it is not sealed"


async def test_a_client_whose_answer_meets_a_bug_is_disconnected(tap: Tap) -> None:
    tap.cluster.bug = ArithmeticError("a bug")
    tap.ask("Metadata", 9, {"topics": []})
    tap.answer("Metadata", 9, {"brokers": [{"nodeId": 1, "host": "kafka", "port": 9092}], "topics": []})
    assert not tap.client.is_closed
    with pytest.raises(ArithmeticError):
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
    assert tap.client.is_closed


async def test_a_frame_that_is_no_kafka_request_closes_both_connections(tap: Tap) -> None:
    tap.ask("Produce", 9, {"acks": -1, "timeoutMs": 1, "topicData": []})
    tap.answer("Metadata", 9, {"brokers": [], "topics": []})
    assert tap.client.is_closed
    assert tap.node.is_closed


def commit(tap: Tap, version: int) -> None:
    entry = {"partitionIndex": 3, "committedOffset": 17, "committedMetadata": None}
    topics = [{"name": "orders", "topicId": ORDERS, "partitions": [entry]}]
    tap.ask("OffsetCommit", version, {"groupId": "buyers", "memberId": "", "topics": topics})


async def test_a_marker_that_a_consumer_is_given_is_the_coordinator_s(tap: Tap) -> None:
    end = TransactionEnded(
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(0),
        marker=Marker(result=TransactionResult.COMMIT, coordinator_epoch=0),
    )
    marker = encode_marker(end, timestamp_ms=0)
    fetch(tap, 0, 0, bytes(marker.content))
    fetch(tap, 1, 0)
    polls = [each for each in history_of(tap) if isinstance(each, PollOperation)]
    assert [batch.producer for each in polls for batch in each.batches] == [COORDINATOR, UNKNOWN_PRODUCER]


def deleted_position() -> Message:
    return {"name": "orders", "partitions": [{"partitionIndex": 3, "errorCode": 0}]}


def fetch(tap: Tap, position: int, error: int, given: bytes | None = None) -> None:
    """Fetches a batch, of two records if it is not given."""
    records = given or build_batch([RecordContent(value=b"1", timestamp_ms=0)] * 2)
    batch = position.to_bytes(8, "big") + records[8:]
    entry = {"partition": 0, "fetchOffset": position, "currentLeaderEpoch": -1}
    tap.ask("Fetch", 12, {"replicaId": -1, "sessionEpoch": -1, "topics": [{"topic": "orders", "partitions": [entry]}]})
    answer = {"partitionIndex": 0, "errorCode": error, "highWatermark": 20, "records": b"" if error else batch}
    tap.answer("Fetch", 12, {"responses": [{"topic": "orders", "partitions": [answer]}]})
