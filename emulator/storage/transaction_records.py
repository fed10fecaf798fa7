"""Records of ``__transaction_state``: keys and values in Kafka's format.

::

    key    = 0 i16 | transactional id string
    value  = 1 i16 | producer id i64 | epoch i16 | timeout i32 | status i8 | compact array? of partitions
             | last update i64 | start i64 | tags

    partitions of a topic = topic compact string | compact array of i32 | tags
    tag 2                 = client transaction version i16, if it is not 0

    key of an end of sessions = 704 i16 | transactional id string, which Kafka passes over
    its value                 = producer id i64

A null value is a tombstone; without a transaction the partitions are null, and the start is -1. Kafka 4.2 writes
neither the former nor the next producer id. Source: Kafka's ``TransactionLog``, ``TransactionLogValue.json``.
"""

import struct
from collections.abc import Iterable
from typing import Final, TypeAlias

from laststand.emulator.core.transaction_records import (
    SessionsEnded,
    TransactionMetadata,
    TransactionRemoved,
    TransactionState,
)
from laststand.emulator.core.types import ProducerEpoch, ProducerId, TopicPartition
from laststand.emulator.storage.fields import INT16, INT64, FieldReader
from laststand.emulator.storage.varint import varint

_KEY_TYPE: Final = 0
_SESSIONS_ENDED: Final = 704
_VERSION: Final = 1
_CLIENT_VERSION_TAG: Final = 2
_NONE: Final = -1
_HEAD: Final = struct.Struct(">hqhib")
_TIMES: Final = struct.Struct(">qq")
_PARTITION: Final = struct.Struct(">i")

KeyedRecord: TypeAlias = TransactionMetadata | TransactionRemoved | SessionsEnded


def encode_key(record: KeyedRecord) -> bytes:
    """Returns the key of a record."""
    name = record.transactional_id.encode()
    return (
        INT16.pack(_SESSIONS_ENDED if isinstance(record, SessionsEnded) else _KEY_TYPE) + INT16.pack(len(name)) + name
    )


def encode_value(record: KeyedRecord) -> bytes | None:
    """Returns the value of a record, ``None`` for a tombstone."""
    if isinstance(record, TransactionRemoved):
        return None
    if isinstance(record, SessionsEnded):
        return INT64.pack(record.producer_id)
    tags = b"\x00"
    if record.client_version:
        tags = bytes((1, _CLIENT_VERSION_TAG, INT16.size)) + INT16.pack(record.client_version)
    is_empty = record.state is TransactionState.EMPTY
    return b"".join(
        (
            _HEAD.pack(_VERSION, record.producer_id, record.producer_epoch, record.timeout_ms, record.state),
            b"\x00" if is_empty else _topics(record.partitions),
            _TIMES.pack(record.update_ms, _NONE if record.start_ms is None else record.start_ms),
            tags,
        )
    )


def _topics(partitions: Iterable[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    parts = [varint(len(by_topic) + 1)]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += (varint(len(name) + 1), name, varint(len(numbers) + 1), *map(_PARTITION.pack, numbers), b"\x00")
    return b"".join(parts)


def decode_record(key: bytes | None, value: bytes | None) -> KeyedRecord | None:
    """Returns a record; ``None`` for one of another type or version.

    Raises:
        FieldError: key or value ends too soon, or has a text that is not UTF-8.
    """
    if key is None:
        return None
    reader = FieldReader(key)
    key_type = reader.int16()
    if key_type not in (_KEY_TYPE, _SESSIONS_ENDED):
        return None
    transactional_id = reader.utf8(reader.int16())
    if value is None:
        return TransactionRemoved(transactional_id=transactional_id)
    fields = FieldReader(value)
    if key_type == _SESSIONS_ENDED:
        return SessionsEnded(transactional_id=transactional_id, producer_id=ProducerId(fields.int64()))
    if fields.int16() != _VERSION:
        return None
    producer_id, producer_epoch = fields.int64(), fields.int16()
    timeout_ms, state = fields.int32(), TransactionState(fields.int8())
    partitions: set[TopicPartition] = set()
    for _ in range(fields.varint() - 1):
        topic = fields.utf8(fields.varint() - 1)
        partitions.update(TopicPartition(topic, fields.int32()) for _ in range(fields.varint() - 1))
        fields.tagged()
    update_ms, start_ms = fields.int64(), fields.int64()
    tags = dict(fields.tagged())
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(producer_epoch),
        timeout_ms=timeout_ms,
        state=state,
        partitions=frozenset(partitions),
        start_ms=None if start_ms < 0 else start_ms,
        update_ms=update_ms,
        client_version=tags[_CLIENT_VERSION_TAG].int16() if _CLIENT_VERSION_TAG in tags else 0,
    )
