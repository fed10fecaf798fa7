"""One batch of records that have only a value, all with one timestamp, as a producer under load writes.

::

    record  = length varint | attributes 0 | timestamp delta 0 | offset delta varint | key -1 | value length varint
              | value | headers 0                             (all varints zig-zag; source: Kafka's ``DefaultRecord``)

What is in front of the value depends on its length and its place in the batch alone, so it is made once and kept; a
batch is then one join, several times as fast as a builder's call per record.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from laststand.emulator.core.types import ProducerEpoch, ProducerId
from laststand.emulator.storage.record_batch import HEADER, LOG_OVERHEAD, MAGIC, TRANSACTIONAL, checksum
from laststand.emulator.storage.varint import zig_zag

_CRC_START: Final = 21
_NO_ATTRIBUTES: Final = b"\x00"
_NO_TIMESTAMP_DELTA: Final = b"\x00"
_NULL: Final = b"\x01"
"""The length of a null key or value: -1, in zig-zag form."""

_NO_HEADERS: Final = b"\x00"
_NO_LEADER_EPOCH: Final = -1
_NO_PRODUCER: Final = -1

_PLACES_KEPT: Final = 8_192
"""Beginnings of records that are kept, of about ten bytes each."""


def build_value_batch(
    values: Sequence[bytes],
    *,
    timestamp_ms: int,
    producer_id: ProducerId | None,
    producer_epoch: ProducerEpoch | None,
    base_sequence: int | None,
    is_transactional: bool = False,
) -> bytes:
    """Returns one uncompressed batch with offsets from 0, as a producer sends it.

    Args:
        values: of the records; at least one.
        timestamp_ms: of each record.
        producer_id: ``None``, like the next two, for a producer that is not idempotent.
        producer_epoch: of the producer.
        base_sequence: of the first record.
        is_transactional: whether it is part of a transaction.
    """
    records: list[bytes] = []
    for offset_delta, value in enumerate(values):
        records += (_beginning(offset_delta, len(value)), value, _NO_HEADERS)
    return seal_batch(
        records,
        record_count=len(values),
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        attributes=TRANSACTIONAL if is_transactional else 0,
    )


def encode_record(offset_delta: int, key: bytes, value: bytes | None) -> tuple[bytes, bytes]:
    """Returns a record with a key, at the batch's timestamp, as parts for ``seal_batch``."""
    sized_value = _NULL if value is None else zig_zag(len(value)) + value
    head = _NO_ATTRIBUTES + _NO_TIMESTAMP_DELTA + zig_zag(offset_delta) + zig_zag(len(key))
    body = b"".join((head, key, sized_value, _NO_HEADERS))
    return zig_zag(len(body)), body


def seal_batch(
    parts: Sequence[bytes],
    *,
    record_count: int,
    timestamp_ms: int,
    producer_id: ProducerId | None = None,
    producer_epoch: ProducerEpoch | None = None,
    base_sequence: int | None = None,
    attributes: int = 0,
) -> bytes:
    """Returns the batch of encoded records; arguments as in ``build_value_batch``.

    Args:
        parts: the bytes of all records, in order.
        record_count: number of records.
        timestamp_ms: of each record.
        producer_id: as there.
        producer_epoch: as there.
        base_sequence: as there.
        attributes: of the batch.
    """
    size = HEADER.size + sum(map(len, parts))
    fields = (
        attributes,
        record_count - 1,
        timestamp_ms,
        timestamp_ms,
        _NO_PRODUCER if producer_id is None else producer_id,
        _NO_PRODUCER if producer_epoch is None else producer_epoch,
        _NO_PRODUCER if base_sequence is None else base_sequence,
        record_count,
    )
    covered = b"".join((HEADER.pack(0, 0, _NO_LEADER_EPOCH, MAGIC, 0, *fields)[_CRC_START:], *parts))
    header = HEADER.pack(0, size - LOG_OVERHEAD, _NO_LEADER_EPOCH, MAGIC, checksum(covered), *fields)
    return header[:_CRC_START] + covered


@lru_cache(maxsize=_PLACES_KEPT)
def _beginning(offset_delta: int, value_length: int) -> bytes:
    body = _NO_ATTRIBUTES + _NO_TIMESTAMP_DELTA + zig_zag(offset_delta) + _NULL + zig_zag(value_length)
    return zig_zag(len(body) + value_length + len(_NO_HEADERS)) + body
