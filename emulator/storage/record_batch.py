"""The header of a record batch (format v2), read and stamped in place; records themselves are ``record_codec``'s.

::

    at  field                 type       at  field            type
     0  baseOffset            i64        27  baseTimestamp    i64
     8  batchLength           i32        35  maxTimestamp     i64
    12  partitionLeaderEpoch  i32        43  producerId       i64
    16  magic = 2             i8         51  producerEpoch    i16
    17  crc (CRC-32C)         u32        53  baseSequence     i32
    21  attributes            i16        57  recordCount      i32
    23  lastOffsetDelta       i32        61  records

``batchLength`` counts the bytes after itself. The CRC covers byte 21 to the end, so a leader stamps base offset and
leader epoch without touching it, and a flipped bit there is not detected. Source: Kafka's ``DefaultRecordBatch``.
"""

import struct
from collections.abc import Iterator
from typing import Final

import crc32c
import msgspec

from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch, Marker, TransactionResult
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from laststand.emulator.storage.filesystem import Buffer
from laststand.emulator.storage.varint import zig_zag_at

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""All 61 bytes of the header."""

_STAMP: Final = struct.Struct(">qii")
_ATTRIBUTES: Final = struct.Struct(">h")

HEADER_SIZE: Final = HEADER.size
LOG_OVERHEAD: Final = 12
"""Bytes before the part that ``batchLength`` counts."""

HEADER_UP_TO_MAGIC: Final = 17
"""A reader of files needs more bytes than this to see a batch at all (Kafka's ``FileLogInputStream``)."""

MINIMAL_BATCH_LENGTH: Final = 14
"""A declared length below this (a record of format v0) is corruption (Kafka's ``LegacyRecord.RECORD_OVERHEAD_V0``)."""

MAGIC: Final = 2
_CRC_START: Final = 21
_MAX_TIMESTAMP: Final = 35
_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
"""Attributes of batches that belong to a transaction, and of those that hold a control record."""

MARKER_KEY: Final = struct.Struct(">hh")
"""Key of a control record: version 0 and type, which for a marker is a ``TransactionResult``."""

MARKER_VALUE: Final = struct.Struct(">hi")
"""Value of a marker: version 0 and coordinator epoch (Kafka's ``EndTxnMarker.json``)."""

PARSE_ANYTHING: Final = 1 << 31
"""A size limit that no batch reaches."""


def crc_of(batch: Buffer) -> int:
    """Returns the CRC-32C of a whole batch's covered part."""
    return crc32c.crc32c(memoryview(batch)[_CRC_START:])


def checksum(payload: Buffer) -> int:
    """Returns the CRC-32C (RFC 3720) of any bytes."""
    return crc32c.crc32c(payload)


def describe_header(buffer: Buffer, position: int) -> BatchDescriptor:
    """Returns the 61 header bytes at ``position`` as a descriptor, unchecked; of a marker, its record too.

    Raises:
        struct.error: fewer than 61 bytes are left.
    """
    (
        base_offset,
        batch_length,
        leader_epoch,
        _magic,
        crc,
        attributes,
        last_offset_delta,
        _base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    ) = HEADER.unpack_from(buffer, position)
    return BatchDescriptor(
        base_offset=base_offset,
        last_offset=Offset(base_offset + last_offset_delta),
        leader_epoch=leader_epoch,
        crc=crc,
        size=batch_length + LOG_OVERHEAD,
        record_count=record_count,
        max_timestamp_ms=max_timestamp,
        producer_id=None if producer_id < 0 else ProducerId(producer_id),
        producer_epoch=ProducerEpoch(producer_epoch),
        base_sequence=base_sequence,
        is_control=bool(attributes & CONTROL),
        is_transactional=bool(attributes & TRANSACTIONAL),
        marker=_marker_at(buffer, position + HEADER_SIZE) if attributes & CONTROL else None,
    )


def _marker_at(buffer: Buffer, position: int) -> Marker | None:
    """Returns the marker whose record begins at ``position``; ``None`` for another control record, or a cut one."""
    try:
        _, position = zig_zag_at(buffer, position)
        _, position = zig_zag_at(buffer, position + 1)
        _, position = zig_zag_at(buffer, position)
        key_size, position = zig_zag_at(buffer, position)
        _, kind = MARKER_KEY.unpack_from(buffer, position)
        _, position = zig_zag_at(buffer, position + key_size)
        _, coordinator_epoch = MARKER_VALUE.unpack_from(buffer, position)
        return Marker(result=TransactionResult(kind), coordinator_epoch=coordinator_epoch)
    except (IndexError, ValueError, struct.error):
        return None


def parse_batch(buffer: Buffer, *, max_message_bytes: int) -> BatchDescriptor | InvalidBatch:
    """Checks that ``buffer`` is exactly one intact batch, and returns its header. No byte is copied.

    Args:
        buffer: a producer's bytes for one partition, or one batch of a fetch response.
        max_message_bytes: limit of the whole batch (``max.message.bytes``).

    Returns:
        The descriptor, or the error that the batch deserves (``ReplicaManager.appendRecords``): MESSAGE_TOO_LARGE,
        CORRUPT_MESSAGE (a size that no batch has, an unknown magic, CRC), INVALID_RECORD (no whole batch, an old magic,
        count, more than one batch).
    """
    size = len(buffer)
    if size < HEADER_SIZE:
        return InvalidBatch(error=ErrorCode.INVALID_RECORD, reason=f"{size} bytes are less than a batch header")
    descriptor = describe_header(buffer, 0)
    if descriptor.size < HEADER_SIZE or buffer[16] > MAGIC:
        reason = f"declared size {descriptor.size}, magic {buffer[16]}"
        return InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason=reason)
    if buffer[16] != MAGIC:
        return InvalidBatch(error=ErrorCode.INVALID_RECORD, reason=f"magic {buffer[16]} is not {MAGIC}")
    if descriptor.size != size:
        reason = "more than one batch" if descriptor.size < size else f"{size} of {descriptor.size} bytes of a batch"
        return InvalidBatch(error=ErrorCode.INVALID_RECORD, reason=reason)
    if size > max_message_bytes:
        return InvalidBatch(error=ErrorCode.MESSAGE_TOO_LARGE, reason=f"{size} bytes, allowed {max_message_bytes}")
    actual = crc_of(buffer)
    if actual != descriptor.crc:
        return InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason=f"CRC {descriptor.crc}, computed {actual}")
    delta = descriptor.last_offset - descriptor.base_offset
    if descriptor.record_count < 1 or delta < 0:
        return InvalidBatch(
            error=ErrorCode.INVALID_RECORD, reason=f"{descriptor.record_count} records, last offset delta {delta}"
        )
    return descriptor


def parse_produced(buffer: Buffer, *, max_message_bytes: int) -> BatchDescriptor | InvalidBatch:
    """As ``parse_batch``, with what holds for batches that clients send: offsets dense from 0, no control batch.

    Source: Kafka's ``LogValidator.validateBatch``.
    """
    parsed = parse_batch(buffer, max_message_bytes=max_message_bytes)
    if isinstance(parsed, InvalidBatch):
        return parsed
    if parsed.base_offset != 0:
        return InvalidBatch(error=ErrorCode.INVALID_RECORD, reason=f"base offset {parsed.base_offset} is not 0")
    if parsed.record_count != parsed.last_offset + 1:
        return InvalidBatch(
            error=ErrorCode.INVALID_RECORD,
            reason=f"{parsed.record_count} records, last offset delta {parsed.last_offset}",
        )
    if parsed.is_control:
        return InvalidBatch(error=ErrorCode.INVALID_RECORD, reason="clients may not send control batches")
    if parsed.producer_id is not None and parsed.base_sequence < 0:
        return InvalidBatch(error=ErrorCode.INVALID_RECORD, reason="a producer id without a sequence number")
    # A producer does not know the leader epoch; what it left in the field means nothing.
    return parsed if parsed.leader_epoch == 0 else msgspec.structs.replace(parsed, leader_epoch=LeaderEpoch(0))


def split_batches(buffer: Buffer) -> list[tuple[memoryview, BatchDescriptor]] | InvalidBatch:
    """Splits the concatenated batches of a fetch response, each checked as in ``parse_batch``, without copying."""
    view = memoryview(buffer)
    batches: list[tuple[memoryview, BatchDescriptor]] = []
    position = 0
    while position < len(view):
        size = batch_size_at(view, position)
        if size is None:
            return InvalidBatch(error=ErrorCode.CORRUPT_MESSAGE, reason=f"no whole batch at byte {position}")
        batch = view[position : position + size]
        parsed = parse_batch(batch, max_message_bytes=PARSE_ANYTHING)
        if isinstance(parsed, InvalidBatch):
            return parsed
        batches.append((batch, parsed))
        position += size
    return batches


def describe_batches(buffer: Buffer) -> Iterator[BatchDescriptor]:
    """Yields the headers of concatenated batches, unchecked, up to the first that is not whole."""
    position = 0
    while (size := batch_size_at(buffer, position)) is not None:
        yield describe_header(buffer, position)
        position += size


def batch_size_at(buffer: Buffer, position: int) -> int | None:
    """Returns the size of the whole batch at ``position``, or ``None`` if no whole batch follows."""
    left = len(buffer) - position
    if left < HEADER_SIZE:
        return None
    size = int.from_bytes(buffer[position + 8 : position + 12], "big", signed=True) + LOG_OVERHEAD
    return size if HEADER_SIZE <= size <= left else None


def stamp(batch: Buffer, descriptor: BatchDescriptor) -> Buffer:
    """Returns the batch with the descriptor's base offset and leader epoch; copied only if these differ."""
    prefix = _STAMP.pack(descriptor.base_offset, descriptor.size - LOG_OVERHEAD, descriptor.leader_epoch)
    if batch[: _STAMP.size] == prefix:
        return batch
    return b"".join((prefix, memoryview(batch)[_STAMP.size :]))


def stamp_append_time(batch: Buffer, timestamp_ms: int) -> bytes:
    """Returns the batch with its append time as timestamp of all records, and the CRC of the changed content.

    Source: Kafka's ``DefaultRecordBatch.setMaxTimestamp`` for ``message.timestamp.type=LogAppendTime``.
    """
    stamped = bytearray(batch)
    (attributes,) = _ATTRIBUTES.unpack_from(stamped, _CRC_START)
    _ATTRIBUTES.pack_into(stamped, _CRC_START, attributes | _APPEND_TIME)
    struct.pack_into(">q", stamped, _MAX_TIMESTAMP, timestamp_ms)
    struct.pack_into(">I", stamped, HEADER_UP_TO_MAGIC, crc_of(stamped))
    return bytes(stamped)
