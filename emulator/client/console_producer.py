"""A producer for standard input: records with the user's keys and values.

The identity of a record is in a header, since the value is the user's. Records with a key go where Kafka's default
partitioner would put them (murmur2 of the key); records without one are distributed batch by batch.
"""

import time
from collections.abc import Sequence
from typing import Final

import msgspec
from aiokafka.partitioner import murmur2

from emulator.client.history import History
from emulator.client.pace import operation_id
from emulator.client.records import IDENTITY_HEADER, identity_text
from emulator.client.sending import Sending
from emulator.client.shell import Links
from emulator.core.batch import BatchDescriptor
from emulator.core.client.settings import ProducerSettings
from emulator.core.client.steps import BatchContent, RecordsOffered, SendRecorded
from emulator.core.errors import InvariantError
from emulator.core.history import OperationType
from emulator.core.types import BrokerId, TopicPartition
from emulator.storage.record_batch import describe_header
from emulator.storage.record_codec import ProducerFields, RecordContent, build_batch

BATCH_BYTES_MAX: Final = 16_384
"""Keys and values of one batch; a larger record has a batch of its own (Kafka's ``batch.size``)."""

_POSITIVE: Final = 0x7FFFFFFF


class Tally(msgspec.Struct, kw_only=True):
    """Records by outcome, and the first error of each kind."""

    acked: int = 0
    failed: int = 0
    unknown: int = 0
    errors: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, recorded: SendRecorded) -> None:
        """Counts an operation's outcome."""
        match recorded.type:
            case OperationType.INVOKE:
                return
            case OperationType.OK:
                self.acked += recorded.record_count
            case OperationType.FAIL:
                self.failed += recorded.record_count
            case OperationType.INFO:
                self.unknown += recorded.record_count
        if recorded.error is not None:
            self.errors[recorded.error] = self.errors.get(recorded.error, 0) + recorded.record_count


class ConsoleProducer:
    """Sends records to the partitions of one topic.

    Attributes:
        tally: what became of them.
    """

    def __init__(
        self,
        *,
        name: str,
        settings: ProducerSettings,
        brokers: tuple[BrokerId, ...],
        partitions: Sequence[TopicPartition],
        links: Links,
        history: History,
    ) -> None:
        self.tally = Tally()
        self._name = name
        self._partitions = tuple(partitions)
        self._next_partition = 0
        self._next_record_id = 0
        self._contents: dict[int, RecordContent] = {}
        self._sending = Sending(
            name=name,
            settings=settings,
            brokers=brokers,
            topics=tuple(sorted({partition.topic for partition in partitions})),
            links=links,
            history=history,
            encode=self._encode,
            on_recorded=self._count,
        )

    @property
    def has_room(self) -> bool:
        """Whether more records may be sent now."""
        return self._sending.has_room

    def start(self) -> None:
        """Begins to look for leaders."""
        self._sending.start()

    def send(self, records: Sequence[tuple[bytes | None, bytes]]) -> None:
        """Sends keys and values, in this order within each partition."""
        keyless = self._take_turn() if any(key is None for key, _ in records) else None
        by_partition: dict[TopicPartition, list[tuple[bytes | None, bytes]]] = {}
        for key, value in records:
            partition = keyless if key is None else self._partitions[place_of_key(key, len(self._partitions))]
            if partition is None:
                raise InvariantError("a record without key has no partition")
            by_partition.setdefault(partition, []).append((key, value))
        for partition, chosen in sorted(by_partition.items()):
            for batch in split_into_batches(chosen):
                self._offer(partition, batch)

    async def finish(self, *, timeout_ms: int) -> int:
        """Waits for the outcome of what was sent; returns how many records had none in time and were given up."""
        return await self._sending.finish(timeout_ms=timeout_ms)

    def _take_turn(self) -> TopicPartition:
        partition = self._partitions[self._next_partition]
        self._next_partition = (self._next_partition + 1) % len(self._partitions)
        return partition

    def _offer(self, partition: TopicPartition, records: Sequence[tuple[bytes | None, bytes]]) -> None:
        first, timestamp_ms = self._next_record_id, time.time_ns() // 1_000_000
        for record_id, (key, value) in enumerate(records, start=first):
            identity = identity_text(self._name, record_id)
            self._contents[record_id] = RecordContent(
                key=key, value=value, timestamp_ms=timestamp_ms, headers=((IDENTITY_HEADER, identity),)
            )
        self._next_record_id += len(records)
        self._sending.offer(
            RecordsOffered(
                cause_id=operation_id(self._name, first),
                partition=partition,
                first_record_id=first,
                record_count=len(records),
            )
        )

    def _encode(self, content: BatchContent) -> tuple[bytes, BatchDescriptor]:
        producer = None
        if content.producer_id is not None and content.producer_epoch is not None and content.base_sequence is not None:
            producer = ProducerFields(
                producer_id=content.producer_id,
                producer_epoch=content.producer_epoch,
                base_sequence=content.base_sequence,
            )
        last = content.first_record_id + content.record_count
        records = [self._contents[record_id] for record_id in range(content.first_record_id, last)]
        encoded = build_batch(records, producer=producer)
        return encoded, describe_header(encoded, 0)

    def _count(self, recorded: SendRecorded) -> None:
        self.tally.add(recorded)
        if recorded.type is not OperationType.INVOKE:
            for record_id in range(recorded.first_record_id, recorded.first_record_id + recorded.record_count):
                del self._contents[record_id]


def place_of_key(key: bytes, partitions: int) -> int:
    """Returns which of so many partitions a key belongs to (Kafka's ``BuiltInPartitioner.partitionForKey``)."""
    key_hash: int = murmur2(key)
    return (key_hash & _POSITIVE) % partitions


def split_into_batches(
    records: Sequence[tuple[bytes | None, bytes]],
) -> list[list[tuple[bytes | None, bytes]]]:
    """Returns records in order, in batches of at most ``BATCH_BYTES_MAX`` bytes or of one record."""
    batches: list[list[tuple[bytes | None, bytes]]] = []
    size = 0
    for key, value in records:
        length = len(key or b"") + len(value)
        if not batches or size + length > BATCH_BYTES_MAX:
            batches.append([])
            size = 0
        batches[-1].append((key, value))
        size += length
    return batches
