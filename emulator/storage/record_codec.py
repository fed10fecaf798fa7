"""Encodes and decodes records; the only module that uses aiokafka's record package.

It stands apart from ``record_batch`` because importing aiokafka takes longer than starting the rest of a broker, and
few brokers ever read records.
"""

import struct
import zlib
from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from cramjam import DecompressionError

from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.types import Offset, ProducerEpoch, ProducerId
from laststand.emulator.storage.filesystem import Buffer
from laststand.emulator.storage.record_batch import MAGIC


class Compression(Enum):
    """The compression of a batch's records (KIP-98's attribute bits)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_UNLIMITED: Final = 1 << 30
_UNREADABLE: Final = (
    *(CorruptRecordException, UnsupportedCodecError, ValueError, IndexError),
    struct.error,  # snappy's
    *(OSError, EOFError, zlib.error),  # gzip's
    DecompressionError,  # of the other compressions
)


class RecordContent(msgspec.Struct, frozen=True, kw_only=True):
    """A record as a client writes it: key and value may be absent."""

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


class StoredRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as a client reads it."""

    offset: Offset
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ProducerFields(msgspec.Struct, frozen=True, kw_only=True):
    """Identity and position of an idempotent producer's batch."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int


def build_batch(
    records: Sequence[RecordContent],
    *,
    producer: ProducerFields | None = None,
    is_transactional: bool = False,
    compression: Compression = Compression.NONE,
) -> bytes:
    """Returns one batch with offsets from 0, as a producer sends it.

    Args:
        records: at least one.
        producer: ``None`` for a producer that is not idempotent.
        is_transactional: whether it is part of a transaction.
        compression: of the records.
    """
    builder = DefaultRecordBatchBuilder(
        MAGIC,
        compression.value,
        is_transactional,
        -1 if producer is None else producer.producer_id,
        -1 if producer is None else producer.producer_epoch,
        -1 if producer is None else producer.base_sequence,
        _UNLIMITED,
    )
    append = builder.append
    for offset, record in enumerate(records):
        append(offset, record.timestamp_ms, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def read_records(batch: Buffer) -> list[StoredRecord]:
    """Returns the records of one batch, decompressed where needed.

    Raises:
        CorruptRecordError: the bytes are no well-formed batch. The CRC is not checked here.
    """
    try:
        return [
            StoredRecord(
                offset=Offset(record.offset),
                timestamp_ms=record.timestamp,
                key=record.key,
                value=record.value,
                headers=tuple(record.headers),
            )
            for record in DefaultRecordBatch(bytes(batch))
        ]
    except _UNREADABLE as error:
        raise CorruptRecordError(path="<batch>", position=0, reason=str(error)) from error
