"""A coordinator that takes over a log of 100,000 records, on real processes: how long until it answers.

The log is a partition of ``__consumer_offsets`` or ``__transaction_state`` with RF 3 and min ISR 2, whose records are
as coordinators write them, one in a batch. Its leadership is moved from broker to broker, and a group's position, or a
transactional id, is asked for until the new coordinator has read the log: from the request for the election to that
answer.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.cluster import BROKER_IDS, CONTROLLER_ID, BenchmarkCluster, BenchmarkError
from benchmarks.figure import Figure
from laststand.emulator.client.admin import AdminClient
from laststand.emulator.client.admin_connection import AdminConnection
from laststand.emulator.client.records import parse_fetched
from laststand.emulator.core import admin_messages, messages
from laststand.emulator.core.coordinator_records import CoordinatorRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import OffsetFetchRequest, OffsetFetchResponse
from laststand.emulator.core.group_records import OffsetCommitted
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    TransactionsOfProducersRequest,
    TransactionsOfProducersResponse,
)
from laststand.emulator.core.transaction_records import TransactionMetadata, TransactionState
from laststand.emulator.core.types import (
    Acks,
    BrokerId,
    CauseId,
    CorrelationId,
    LeaderEpoch,
    NodeId,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
)
from laststand.emulator.rpc.address_book import AddressBook
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.outbound import Outbound, Outcome
from laststand.emulator.storage.coordinator_records import encode_records

RECORDS: Final = 100_000
REPETITIONS: Final = 5

_KEYS: Final = 1_000
"""Groups, or transactional ids, that take turns."""

_IN_FLIGHT: Final = 500
_SESSION_TIMEOUT_MS: Final = 9_000
_REQUEST_TIMEOUT_MS: Final = 30_000
_ASKED_EVERY_S: Final = 0.002
_DEADLINE_S: Final = 60.0
_CAUSE: Final = CauseId("benchmark")


def measure() -> Iterator[Figure]:
    """Yields a figure of each internal topic.

    Raises:
        BenchmarkError: a node died, or a coordinator did not answer in time.
    """
    for name, topic, record, question in (
        ("load_consumer_offsets", OFFSETS_TOPIC, _position, _ask_group),
        ("load_transaction_state", TRANSACTIONS_TOPIC, _transaction, _ask_transaction),
    ):
        with tempfile.TemporaryDirectory(prefix="laststand-benchmark-") as directory:
            values = asyncio.run(_load(Path(directory), topic, record, question))
        yield Figure(name=name, unit="s", values=tuple(values))


def _position(number: int) -> CoordinatorRecord:
    return OffsetCommitted(
        group_id=f"group-{number % _KEYS}",
        partition=TopicPartition("orders", number % 3),
        offset=number,
        leader_epoch=LeaderEpoch(0),
        committed_ms=number,
    )


def _transaction(number: int) -> CoordinatorRecord:
    return TransactionMetadata(
        transactional_id=f"payments-{number % _KEYS}",
        producer_id=ProducerId(number % _KEYS),
        producer_epoch=ProducerEpoch(number // _KEYS),
        timeout_ms=60_000,
        state=TransactionState.COMPLETE_COMMIT,
        update_ms=number,
        client_version=2,
    )


def _ask_group(_leader_epoch: LeaderEpoch) -> messages.Request:
    return OffsetFetchRequest(group_id="group-0", partitions=None)


def _ask_transaction(leader_epoch: LeaderEpoch) -> messages.Request:
    return TransactionsOfProducersRequest(partition=0, leader_epoch=leader_epoch, producer_ids=(ProducerId(0),))


async def _load(
    directory: Path,
    topic: str,
    record: Callable[[int], CoordinatorRecord],
    question: Callable[[LeaderEpoch], messages.Request],
) -> list[float]:
    partition = TopicPartition(topic, 0)
    async with BenchmarkCluster(directory, session_timeout_ms=_SESSION_TIMEOUT_MS, properties=()) as cluster:
        await cluster.start()
        await cluster.create_topic(topic, (BROKER_IDS,))
        await cluster.wait_until(partial(_is_led, partition, BROKER_IDS[0]), what="coordinator")
        await _fill(cluster, partition, record)
        durations: list[float] = []
        async with _connection(cluster) as connection:
            admin = AdminClient(connection.ask, controller_id=CONTROLLER_ID)
            for repetition in range(1, 1 + REPETITIONS):
                replicas = BROKER_IDS[repetition % 3 :] + BROKER_IDS[: repetition % 3]
                await admin.reassign({partition: replicas})
                await cluster.wait_until(partial(_is_of, partition, replicas), what="order of replicas")
                begun = time.perf_counter()
                await _move(admin, partition)
                await cluster.wait_until(partial(_is_led, partition, replicas[0]), what="coordinator")
                leader_epoch = cluster.partition(partition).leader_epoch
                await _await_answer(connection, replicas[0], question(leader_epoch))
                durations.append(time.perf_counter() - begun)
        cluster.check()
    return durations


def _is_led(partition: TopicPartition, leader: BrokerId, image: MetadataImage) -> bool:
    state = image.partitions.get(partition)
    return state is not None and state.leader == leader and len(state.isr) == len(BROKER_IDS)


def _is_of(partition: TopicPartition, replicas: tuple[BrokerId, ...], image: MetadataImage) -> bool:
    return image.partitions[partition].replicas == replicas


def _addresses(cluster: BenchmarkCluster) -> dict[NodeId, str]:
    return {NodeId(node): address for node, address in cluster.processes.direct_addresses().items()}


@asynccontextmanager
async def _connection(cluster: BenchmarkCluster) -> AsyncIterator[AdminConnection]:
    keepalive, token = keepalive_for(session_timeout_ms=_SESSION_TIMEOUT_MS), cluster.processes.token
    async with AdminConnection(_addresses(cluster), keepalive=keepalive, token=token, cause_id=_CAUSE) as connection:
        yield connection


async def _fill(
    cluster: BenchmarkCluster, partition: TopicPartition, record: Callable[[int], CoordinatorRecord]
) -> None:
    """Has the leader append the records as a producer's would be."""
    changed = asyncio.Event()
    failures: list[str] = []
    answers = 0

    def take(outcome: Outcome, _attachments: Sequence[bytes]) -> None:
        nonlocal answers
        answers += 1
        match getattr(outcome, "response", None):
            case messages.ProduceResponse(partitions=(messages.ProducePartitionResponse(error=ErrorCode.NONE),)):
                pass
            case _:
                failures.append(str(outcome))
        changed.set()

    async with asyncio.TaskGroup() as tasks:
        outbound = Outbound(
            addresses=AddressBook(_addresses(cluster)),
            dialler=None,
            keepalive=keepalive_for(session_timeout_ms=_SESSION_TIMEOUT_MS),
            token=cluster.processes.token,
            tasks=tasks,
            parse_fetched=parse_fetched,
            deliver=take,
        )
        for number in range(RECORDS):
            while number - answers >= _IN_FLIGHT:
                changed.clear()
                await changed.wait()
            batch = encode_records((record(number),), timestamp_ms=number)
            part = messages.ProducePartition(topic=partition.topic, partition=partition.partition, batch=batch.header)
            outbound.send(
                destination=BROKER_IDS[0],
                correlation_id=CorrelationId(number),
                request=messages.ProduceRequest(acks=Acks.ALL, timeout_ms=_REQUEST_TIMEOUT_MS, partitions=(part,)),
                timeout_ms=_REQUEST_TIMEOUT_MS,
                cause_id=_CAUSE,
                attachments=(batch.content,),
            )
        while answers < RECORDS:
            changed.clear()
            await changed.wait()
        await outbound.close()
    if failures:
        raise BenchmarkError(f"{partition} was not filled: {failures[0]}")


async def _move(admin: AdminClient, partition: TopicPartition) -> None:
    """Has the first replica lead."""
    elected = admin_messages.ElectablePartition(topic=partition.topic, partition=partition.partition)
    (result,) = await admin.elect_leaders(admin_messages.RequestedElection.PREFERRED, (elected,))
    if result.error is not ErrorCode.NONE:
        raise BenchmarkError(f"{partition} has no other leader: {result.error.name}")


async def _await_answer(connection: AdminConnection, broker: BrokerId, question: messages.Request) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        match await connection.ask(broker, question):
            case (
                OffsetFetchResponse(error=ErrorCode.NONE, offsets=(_, *_))
                | TransactionsOfProducersResponse(error=ErrorCode.NONE, transactions=(_, *_))
            ):
                return
            case (
                OffsetFetchResponse(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS | ErrorCode.NOT_COORDINATOR)
                | TransactionsOfProducersResponse(
                    error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS | ErrorCode.NOT_COORDINATOR
                )
            ):
                await asyncio.sleep(_ASKED_EVERY_S)
            case answer:
                raise BenchmarkError(f"broker {broker} answered {answer}")
    raise BenchmarkError(f"broker {broker} coordinates nothing within {_DEADLINE_S} s")
