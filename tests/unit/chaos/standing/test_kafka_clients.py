"""Connections of clients of Kafka, as a run directory tells of them."""

from pathlib import Path

import pytest

from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.standing.kafka_clients import ClientConnection, client_connections
from laststand.emulator.core import events, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Acks, BrokerId, CauseId, NodeId, Offset, TopicPartition
from laststand.emulator.kafka_listener.client_history import ClientHistory, Polled
from laststand.emulator.kafka_listener.connection import KafkaConnection
from laststand.emulator.node.event_writer import EventWriter
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.storage.record_batch import describe_batches
from tests.wire.batches import make_batch

BROKER = BrokerId(NodeId(0))
ORDERS = TopicPartition("orders", 0)
BATCH = make_batch([["a", "b"], ["c", "d"]])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of which two connections of client ``app`` are on record: one is over, and one stands."""
    (tmp_path / "events").mkdir()
    (tmp_path / "history").mkdir()
    harness = HarnessLog(
        tmp_path / "events",
        run="r",
        wall_time_ns=0,
        driver=DriverName.PROCESS,
        ending=None,
        kafka_clients=("app",),
    )
    harness.started(BROKER, 0)
    writer = EventWriter(str(tmp_path / "events" / "0-0.packed"), run="r", node_id=BROKER, incarnation=0)
    history = ClientHistory(tmp_path / "history" / "kafka-0-0.packed", broker_id=BROKER, incarnation=0)
    over, standing = (connection(number) for number in (1, 2))
    for each in (over, standing):
        process = history.process_of(each)
        writer.add(
            events.ClientConnected(
                cause_id=CauseId(process), process=process, address="127.0.0.1:7", software="librdkafka 2"
            )
        )
    writer.add(events.ClientDisconnected(cause_id=CauseId("x"), process=history.process_of(over)))
    writer.flush()
    produce(history, over, ErrorCode.NONE)
    produce(history, over, ErrorCode.NOT_ENOUGH_REPLICAS)
    produce(history, over, None)
    history.add_polls(standing, [polled()])
    return tmp_path


def connection(number: int) -> KafkaConnection:
    made = KafkaConnection(link=NodeId(1001), number=number, max_bytes=0, handle=None, on_end=lambda _: None)
    made.client_id = "app"
    return made


def produce(history: ClientHistory, over: KafkaConnection, error: ErrorCode | None) -> None:
    (batch,) = describe_batches(BATCH)
    assert isinstance(batch, BatchDescriptor)
    sent = history.invoke(over, [(ORDERS, None, batch)], Acks.ALL, records={ORDERS: BATCH})
    if error is not None:
        outcome = messages.ProducePartitionResponse(
            topic="orders", partition=0, error=error, base_offset=Offset(0) if error is ErrorCode.NONE else None
        )
        history.complete(over, sent, {ORDERS: outcome}, is_written=True)


def polled() -> Polled:
    asked = messages.FetchPartition(
        topic="orders",
        topic_id=None,
        partition=0,
        fetch_offset=Offset(0),
        current_leader_epoch=None,
        last_fetched_epoch=None,
        partition_max_bytes=1000,
    )
    answer = messages.FetchPartitionResponse(
        topic="orders", partition=0, error=ErrorCode.NONE, high_watermark=Offset(2), log_start_offset=Offset(0)
    )
    return Polled(asked, answer, BATCH)


def test_connections_are_listed_with_what_was_reported_on_them(run: Path) -> None:
    common = {"client_id": "app", "link": "app", "broker": BROKER, "software": "librdkafka 2", "address": "127.0.0.1:7"}
    assert client_connections(run) == [
        ClientConnection(**common, connection=1, acked=2, refused=2, unknown=2),  # type: ignore[arg-type]
        ClientConnection(**common, connection=2, is_connected=True, read=2),  # type: ignore[arg-type]
    ]
