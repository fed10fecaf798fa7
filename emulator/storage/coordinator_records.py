"""Batches of the records that coordinators write, in Kafka's format, so that Kafka's own tools read the logs.

``group_records`` and ``transaction_records`` have the keys and values, ``control_batch`` the markers. A batch is never
compressed. Records of other types, and values of other versions, come from other programs and are skipped.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.coordinator_records import CoordinatorRecord, EncodedBatch, LoadedRecord
from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.group_records import OffsetCommitted
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_records import (
    SessionsEnded,
    TransactionEnded,
    TransactionMetadata,
    TransactionRemoved,
)
from laststand.emulator.core.types import Offset, ProducerIdentity
from laststand.emulator.storage import group_records, transaction_records
from laststand.emulator.storage.control_batch import encode_marker
from laststand.emulator.storage.fields import FieldError
from laststand.emulator.storage.record_batch import HEADER, TRANSACTIONAL, batch_size_at, describe_header
from laststand.emulator.storage.value_batch import encode_record, seal_batch
from laststand.emulator.storage.varint import zig_zag_at


def encode_records(records: Sequence[CoordinatorRecord], *, timestamp_ms: int) -> EncodedBatch:
    """Returns one batch of records, all with one timestamp, with offsets from 0; a marker has a batch of its own."""
    first = records[0]
    if isinstance(first, TransactionEnded):
        return encode_marker(first, timestamp_ms=timestamp_ms)
    parts: list[bytes] = []
    for number, record in enumerate(records):
        match record:
            case TransactionMetadata() | TransactionRemoved() | SessionsEnded():
                key, value = transaction_records.encode_key(record), transaction_records.encode_value(record)
            case TransactionEnded():
                raise ValueError("a marker is a batch of its own")
            case _:
                key = group_records.encode_key(record)
                value = group_records.encode_value(record)
        parts += encode_record(number, key, value)
    producer = first.producer if isinstance(first, OffsetCommitted) else None
    content = seal_batch(
        parts,
        record_count=len(records),
        timestamp_ms=timestamp_ms,
        producer_id=None if producer is None else producer.producer_id,
        producer_epoch=None if producer is None else producer.producer_epoch,
        base_sequence=None if producer is None else 0,
        attributes=0 if producer is None else TRANSACTIONAL,
    )
    return EncodedBatch(describe_header(content, 0), content)


def decode_records(batches: bytes, *, is_of_transactions: bool) -> tuple[LoadedRecord, ...]:
    """Returns the records of concatenated batches as they are in a log.

    Args:
        batches: the bytes.
        is_of_transactions: whether the log belongs to ``__transaction_state``.

    Raises:
        CorruptRecordError: the bytes are not complete batches of complete records.
    """
    decode = transaction_records.decode_record if is_of_transactions else group_records.decode_record
    loaded: list[LoadedRecord] = []
    for position, header in _headers(batches):
        if header.marker is not None and header.producer_id is not None:
            ended = TransactionEnded(
                producer_id=header.producer_id, producer_epoch=header.producer_epoch, marker=header.marker
            )
            loaded.append(LoadedRecord(ended, header.next_offset))
        elif not header.is_control:
            try:
                for stored in _stored(batches, position + HEADER.size, header.record_count):
                    record = decode(stored.key, stored.value)
                    if record is not None:
                        next_offset = Offset(header.base_offset + stored.offset_delta + 1)
                        loaded.append(LoadedRecord(_in_transaction(record, header), next_offset))
            except (FieldError, IndexError) as error:
                raise CorruptRecordError(path="<batches>", position=position, reason=str(error)) from error
    return tuple(loaded)


def decode_transactions(batches: bytes) -> tuple[LoadedRecord, ...]:
    """Returns the last record of each transactional id in concatenated batches; earlier ones are obsolete.

    Raises:
        CorruptRecordError: as in ``decode_records``.
    """
    latest: dict[bytes | None, tuple[_Stored, Offset, int]] = {}
    for position, header in _headers(batches):
        if header.is_control:
            continue
        try:
            for stored in _stored(batches, position + HEADER.size, header.record_count):
                next_offset = Offset(header.base_offset + stored.offset_delta + 1)
                latest[stored.key] = (stored, next_offset, position)
        except IndexError as error:
            raise CorruptRecordError(path="<batches>", position=position, reason=str(error)) from error
    loaded: list[LoadedRecord] = []
    for stored, next_offset, position in latest.values():
        try:
            record = transaction_records.decode_record(stored.key, stored.value)
        except (FieldError, IndexError) as error:
            raise CorruptRecordError(path="<batches>", position=position, reason=str(error)) from error
        if record is not None:
            loaded.append(LoadedRecord(record, next_offset))
    return tuple(sorted(loaded, key=lambda each: each.next_offset))


def decode_log(batches: bytes, *, topic: str) -> tuple[LoadedRecord, ...]:
    """Returns what a coordinator needs from the log of an internal topic.

    Raises:
        CorruptRecordError: as ``decode_records``.
    """
    return (
        decode_transactions(batches)
        if topic == TRANSACTIONS_TOPIC
        else decode_records(batches, is_of_transactions=False)
    )


def _headers(batches: bytes) -> Iterator[tuple[int, BatchDescriptor]]:
    """Yields each batch's position and header."""
    position = 0
    while position < len(batches):
        size = batch_size_at(batches, position)
        if size is None:
            raise CorruptRecordError(path="<batches>", position=position, reason="no whole batch")
        yield position, describe_header(batches, position)
        position += size


def _in_transaction(record: CoordinatorRecord, header: BatchDescriptor) -> CoordinatorRecord:
    if not header.is_transactional or header.producer_id is None or not isinstance(record, OffsetCommitted):
        return record
    return msgspec.structs.replace(record, producer=ProducerIdentity(header.producer_id, header.producer_epoch))


class _Stored(NamedTuple):
    offset_delta: int
    key: bytes | None
    value: bytes | None


def _stored(content: bytes, position: int, count: int) -> Iterator[_Stored]:
    for _ in range(count):
        size, position = zig_zag_at(content, position)
        end = position + size
        _, position = zig_zag_at(content, position + 1)
        offset_delta, position = zig_zag_at(content, position)
        key, position = _sized_at(content, position)
        value, position = _sized_at(content, position)
        yield _Stored(offset_delta, key, value)
        position = end


def _sized_at(content: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = zig_zag_at(content, position)
    if size < 0:
        return None, position
    return content[position : position + size], position + size
