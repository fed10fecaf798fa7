"""The history that a broker writes for clients that write none."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from laststand.emulator.client.history import read_history
from laststand.emulator.core import messages
from laststand.emulator.core.eras import era_rules
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.history import OperationType, PollOperation
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.switches import DEFAULT_ERA
from laststand.emulator.core.types import BrokerId, NodeId, Offset
from laststand.emulator.kafka_listener.client_history import ClientHistory
from laststand.emulator.kafka_listener.connection import KafkaConnection
from laststand.emulator.kafka_listener.fetch import fetch
from laststand.emulator.kafka_listener.fetch_sessions import FetchSessions
from laststand.emulator.kafka_listener.gateway import Answered
from laststand.emulator.kafka_listener.messages import api_named
from laststand.emulator.kafka_listener.quota_usage import QuotaUsage
from laststand.emulator.kafka_listener.releases import served_versions
from laststand.emulator.kafka_listener.requests import ClientRequest, Endpoint, Served
from tests.wire.batches import make_batch

BROKER = BrokerId(NodeId(0))
BATCH_CRC = slice(17, 21)


def connection(client_id: str = "app") -> KafkaConnection:
    made = KafkaConnection(link=NodeId(1001), number=1, max_bytes=1000, handle=None, on_end=lambda _: None)
    made.client_id = client_id
    return made


def fetch_request(topic: str) -> ClientRequest:
    partition = {
        "partition": 0,
        "fetchOffset": 0,
        "currentLeaderEpoch": -1,
        "lastFetchedEpoch": -1,
        "partitionMaxBytes": 1000,
    }
    body = {
        "replicaId": -1,
        "replicaState": None,
        "maxWaitMs": 0,
        "minBytes": 1,
        "maxBytes": 1000,
        "isolationLevel": 0,
        "rackId": "",
        "sessionId": 0,
        "sessionEpoch": -1,
        "topics": [{"topic": topic, "topicId": None, "partitions": [partition]}],
    }
    return ClientRequest(api_named("Fetch").key, 12, body, connection())


def broker_with(records: bytes, history: ClientHistory) -> Served:
    """Returns a broker that answers every fetch with these records."""

    async def ask(request: messages.FetchRequest) -> Answered:
        answers = tuple(
            messages.FetchPartitionResponse(
                topic=each.topic,
                partition=each.partition,
                error=ErrorCode.NONE,
                high_watermark=Offset(2),
                log_start_offset=Offset(0),
            )
            for each in request.partitions
        )
        return Answered(messages.FetchResponse(partitions=answers), [records] * len(answers))

    fakes: Any = {"broker": SimpleNamespace(image=MetadataImage()), "core": SimpleNamespace(ask=ask)}
    unused = cast(Any, None)
    return Served(
        broker_id=BROKER,
        cluster_id="",
        controllers={NodeId(100): Endpoint("127.0.0.1", 1)},
        log_dir="",
        properties=unused,
        versions=served_versions(era_rules(DEFAULT_ERA)),
        endpoints={},
        controller=unused,
        note_order=unused,
        fetch_sessions=FetchSessions(),
        history=history,
        produced=QuotaUsage("producer_byte_rate"),
        fetched=QuotaUsage("consumer_byte_rate"),
        **fakes,
    )


async def test_batches_that_a_fetch_gives_are_on_record_before_its_answer_leaves(tmp_path: Path) -> None:
    path = tmp_path / "history.packed"
    batches = make_batch() + make_batch()
    await fetch(broker_with(batches, ClientHistory(path, broker_id=BROKER, incarnation=0)), fetch_request("orders"))
    (line,) = read_history(path)
    assert isinstance(line, PollOperation)
    assert (line.type, line.topic, line.process) == (OperationType.OK, "orders", "kafka:app@1001->0-0.1")
    crc = int.from_bytes(batches[BATCH_CRC], "big")
    assert [(batch.crc, batch.record_count) for batch in line.batches] == [(crc, 1), (crc, 1)]


async def test_a_damaged_batch_of_a_log_is_given_and_on_record_with_the_crc_that_it_claims(tmp_path: Path) -> None:
    path = tmp_path / "history.packed"
    damaged = make_batch(corrupt="crc")
    history = ClientHistory(path, broker_id=BROKER, incarnation=0)
    answer = await fetch(broker_with(damaged, history), fetch_request("orders"))
    assert answer["responses"][0]["partitions"][0]["records"] == damaged
    (line,) = read_history(path)
    assert isinstance(line, PollOperation)
    assert [batch.crc for batch in line.batches] == [int.from_bytes(damaged[BATCH_CRC], "big")]
