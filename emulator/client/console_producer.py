"""A producer for standard input: records with the user's keys and values.

A record's identity is in a header, since the value belongs to the user. Records with a key go to the partition that
Kafka's default partitioner would choose (murmur2 of the key); records without a key are distributed by batches.

Bounds: ``BUFFER_BYTES_MAX`` of keys and values without an outcome, and what the producer's settings say of records.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
from aiokafka.partitioner import murmur2

from laststand.emulator.client.history import History
from laststand.emulator.client.records import IDENTITY_HEADER, identity_text
from laststand.emulator.client.sending import Sending
from laststand.emulator.client.shell import Links
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.client.steps import BatchContent, RecordsOffered, SendRecorded, operation_id
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import BrokerId, TopicPartition
from laststand.emulator.storage.record_batch import describe_header
from laststand.emulator.storage.record_codec import Compression, ProducerFields, RecordContent, build_batch

BATCH_BYTES_MAX: Final = 262_144
"""Encoded size of one batch if nothing is said; a larger record has a batch of its own (Kafka's ``batch.size``).

Kafka's default is 16 KB. What is typed is sent as it comes, so only a pipe or a file fills a batch, and there each
batch costs a line of history and of event log."""

BUFFER_BYTES_MAX: Final = 32 << 20
"""Keys and values that have no outcome yet (Kafka's ``buffer.memory``)."""

ConsoleRecord: TypeAlias = tuple[bytes | None, bytes]
"""Key and value."""

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

_POSITIVE: Final = 0x7FFFFFFF

_RECORD_OVERHEAD: Final = 21
"""Bytes of a record beside key, value and headers, at most (Kafka's ``DefaultRecord.MAX_RECORD_OVERHEAD``)."""

_HEADER_OVERHEAD: Final = 10
"""Bytes of a header beside its key and value, at most: two lengths."""

_RECORD_ID_MAX: Final = 2**63 - 1


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

    Args:
        name: the producer's, in the history and in the identity of its records.
        settings: of the producer.
        brokers: any of them is asked for metadata.
        partitions: of the topic.
        links: connections to the cluster.
        history: gets every invocation and outcome.
        batch_bytes_max: encoded size of one batch, before compression.
        compression: of batches.
        headers: headers of every record besides the identity.
        timestamp_ms: of every record; the time of sending if not given.
        tally: counts the records' outcomes.

    Attributes:
        sent_bytes: keys and values that have an outcome.
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
        tally: Tally,
        batch_bytes_max: int = BATCH_BYTES_MAX,
        compression: Compression = Compression.NONE,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        self.sent_bytes = 0
        self._tally = tally
        self._batch_bytes_max = batch_bytes_max
        self._compression = compression
        self._headers = headers
        self._record_overhead = record_overhead(((IDENTITY_HEADER, identity_text(name, _RECORD_ID_MAX)), *headers))
        self._timestamp_ms = timestamp_ms
        self._waiting_bytes = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._name = name
        self._partitions = tuple(partitions)
        self._next_partition = 0
        self._next_record_id = 0
        self._batches: dict[int, _Batch] = {}
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

    async def room(self) -> None:
        """Waits until more records may be sent."""
        await self._has_room.wait()

    def start(self) -> None:
        """Begins to look for leaders."""
        self._sending.start()

    def send(self, records: Sequence[ConsoleRecord]) -> None:
        """Sends keys and values, in this order within each partition."""
        keyless: list[ConsoleRecord] = []
        by_partition: dict[TopicPartition, list[ConsoleRecord]] = {}
        for record in records:
            if record[0] is None:
                keyless.append(record)
            else:
                partition = self._partitions[place_of_key(record[0], len(self._partitions))]
                by_partition.setdefault(partition, []).append(record)
        for partition, chosen in sorted(by_partition.items()):
            for batch in self._batches_of(chosen):
                self._offer(partition, batch)
        for batch in self._batches_of(keyless):
            self._offer(self._next_in_turn(), batch)

    def _batches_of(self, records: Sequence[ConsoleRecord]) -> list[Sequence[ConsoleRecord]]:
        return split_into_batches(records, bytes_max=self._batch_bytes_max, record_overhead=self._record_overhead)

    async def finish(self, *, timeout_ms: int) -> int:
        """Waits for the outcomes of the sent records; returns the number of records that were given up without one."""
        return await self._sending.finish(timeout_ms=timeout_ms)

    def _next_in_turn(self) -> TopicPartition:
        partition = self._partitions[self._next_partition]
        self._next_partition = (self._next_partition + 1) % len(self._partitions)
        return partition

    def _offer(self, partition: TopicPartition, records: Sequence[ConsoleRecord]) -> None:
        first, now_ms = self._next_record_id, time.time_ns() // 1_000_000
        batch = _Batch(records, timestamp_ms=now_ms if self._timestamp_ms is None else self._timestamp_ms)
        self._batches[first] = batch
        self._waiting_bytes += batch.size
        self._next_record_id += len(records)
        self._sending.offer(
            RecordsOffered(
                cause_id=operation_id(self._name, first),
                partition=partition,
                first_record_id=first,
                record_count=len(records),
            )
        )
        if self._waiting_bytes >= BUFFER_BYTES_MAX or not self._sending.has_room:
            self._has_room.clear()

    def _encode(self, content: BatchContent) -> tuple[bytes, BatchDescriptor]:
        producer = None
        if content.producer_id is not None and content.producer_epoch is not None and content.base_sequence is not None:
            producer = ProducerFields(
                producer_id=content.producer_id,
                producer_epoch=content.producer_epoch,
                base_sequence=content.base_sequence,
            )
        batch, name, headers = self._batches[content.first_record_id], self._name, self._headers
        encoded = build_batch(
            [
                RecordContent(
                    key=key,
                    value=value,
                    timestamp_ms=batch.timestamp_ms,
                    headers=((IDENTITY_HEADER, identity_text(name, record_id)), *headers),
                )
                for record_id, (key, value) in enumerate(batch.records, start=content.first_record_id)
            ],
            producer=producer,
            compression=self._compression,
        )
        return encoded, describe_header(encoded, 0)

    def _count(self, recorded: SendRecorded) -> None:
        self._tally.add(recorded)
        if recorded.type is not OperationType.INVOKE:
            batch = self._batches.pop(recorded.first_record_id)
            self._waiting_bytes -= batch.size
            self.sent_bytes += batch.size
            if self._waiting_bytes < BUFFER_BYTES_MAX and self._sending.has_room:
                self._has_room.set()


class _Batch:
    """Records that are sent together, and the size of their keys and values."""

    __slots__ = ("records", "size", "timestamp_ms")

    def __init__(self, records: Sequence[ConsoleRecord], *, timestamp_ms: int) -> None:
        self.records = records
        self.timestamp_ms = timestamp_ms
        self.size = sum(len(key or b"") + len(value) for key, value in records)


def place_of_key(key: bytes, partitions: int) -> int:
    """Returns the partition of a key, given their number (Kafka's ``BuiltInPartitioner.partitionForKey``)."""
    key_hash: int = murmur2(key)
    return (key_hash & _POSITIVE) % partitions


def record_overhead(headers: Headers) -> int:
    """Returns the maximal size of a record with these headers without its key and value."""
    return _RECORD_OVERHEAD + sum(_HEADER_OVERHEAD + len(key.encode()) + len(value or b"") for key, value in headers)


def split_into_batches(
    records: Sequence[ConsoleRecord], *, bytes_max: int, record_overhead: int
) -> list[Sequence[ConsoleRecord]]:
    """Returns records in order, in batches of at most ``bytes_max`` encoded bytes or of one record.

    Short lines consist mostly of overhead: a batch that is measured by keys and values alone can be larger than a
    broker takes.

    Args:
        records: keys and values.
        bytes_max: of a batch before compression, without its header.
        record_overhead: size of each record without its key and value.
    """
    batches: list[Sequence[ConsoleRecord]] = []
    size = start = 0
    for position, (key, value) in enumerate(records):
        length = record_overhead + (len(value) if key is None else len(key) + len(value))
        if size + length > bytes_max and position > start:
            batches.append(records[start:position])
            start, size = position, 0
        size += length
    if start < len(records):
        batches.append(records[start:])
    return batches
