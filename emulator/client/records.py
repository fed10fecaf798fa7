"""Records that contain their identity: a value is ``producer-0:123`` and dots up to the record's size.

So the ids can be recovered from a log, or a batch on the wire, without the history. If the value belongs to the user,
the same text is in a header. Batches have format v2.
"""

import time
from collections.abc import Sequence
from typing import Final

from laststand.emulator.core.batch import AbortedTransaction, BatchDescriptor, InvalidBatch
from laststand.emulator.core.client.committed_records import committed_batches
from laststand.emulator.core.client.steps import BatchContent
from laststand.emulator.core.errors import CorruptRecordError, InvariantError
from laststand.emulator.core.history import COORDINATOR, UNKNOWN_PRODUCER, PolledBatch
from laststand.emulator.core.types import Offset
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.storage.record_batch import crc_of, describe_header, split_batches
from laststand.emulator.storage.record_codec import StoredRecord, read_records
from laststand.emulator.storage.value_batch import build_value_batch

IDENTITY_HEADER: Final = "laststand"
"""Header that holds the identity of a record whose value does not."""


def identity_text(producer: str, record_id: int) -> bytes:
    """Returns the identity of a record."""
    return b"%s:%d" % (producer.encode(), record_id)


def record_value(producer: str, record_id: int, size: int) -> bytes:
    """Returns a record's value; longer than ``size`` if that is too short for the id."""
    return (identity_text(producer, record_id) + b".").ljust(size, b".")


def record_identity(value: bytes | None) -> tuple[str, int]:
    """Returns producer and record id that a value, or an identity header, holds."""
    producer, colon, number = (value or b"").partition(b".")[0].rpartition(b":")
    if not colon or not number.isdigit():
        return UNKNOWN_PRODUCER, 0
    return producer.decode("utf-8", "replace"), int(number)


def encode_batch(producer: str, content: BatchContent, *, record_size: int) -> tuple[bytes, BatchDescriptor]:
    """Returns a batch's bytes and header."""
    encoded = build_value_batch(
        [
            record_value(producer, record_id, record_size)
            for record_id in range(content.first_record_id, content.first_record_id + content.record_count)
        ],
        timestamp_ms=time.time_ns() // 1_000_000,
        producer_id=content.producer_id,
        producer_epoch=content.producer_epoch,
        base_sequence=content.base_sequence,
        is_transactional=content.is_transactional,
    )
    return encoded, describe_header(encoded, 0)


def parse_fetched(block: bytes) -> tuple[BatchDescriptor, ...]:
    """Returns the headers of the batches in a fetched block.

    Raises:
        CodecError: the block holds other data.
    """
    batches = split_batches(block)
    if isinstance(batches, InvalidBatch):
        raise CodecError(message="FetchResponse", reason=batches.reason)
    return tuple(descriptor for _, descriptor in batches)


def last_batch(block: bytes) -> BatchDescriptor | None:
    """Returns the header of a fetched block's last batch; ``None`` if the block is empty."""
    return parse_fetched(block)[-1] if block else None


def polled_batches(
    block: bytes, *, position: Offset, aborted: Sequence[AbortedTransaction] | None = None
) -> tuple[PolledBatch, ...]:
    """Returns which records a fetched block holds from ``position`` on.

    A batch whose ids are not consecutive, or of several producers, becomes several; records without ids stay together.
    For a read_committed consumer, records of the ``aborted`` transactions and all markers are left out.
    """
    batches = split_batches(block)
    if isinstance(batches, InvalidBatch):
        raise InvariantError(f"fetched block was read before and is now {batches.reason}")
    if aborted is not None:
        given = set(committed_batches((descriptor for _, descriptor in batches), aborted))
        batches = [each for each in batches if each[1] in given]
    polled: list[PolledBatch] = []
    for batch, descriptor in batches:
        crc = crc_of(batch)  # Of what came, not what its header says: evidence of a reader that does not check.
        for first_offset, count, producer, first_record_id in _runs(batch, descriptor, position):
            polled.append(
                PolledBatch(
                    base_offset=first_offset,
                    last_offset=Offset(first_offset + count - 1),
                    leader_epoch=descriptor.leader_epoch,
                    crc=crc,
                    producer=producer,
                    first_record_id=first_record_id,
                    record_count=count,
                )
            )
    return tuple(polled)


def polled_records(block: bytes, *, position: Offset) -> tuple[StoredRecord, ...]:
    """Returns the records that a fetched block holds from ``position`` on."""
    batches = split_batches(block)
    if isinstance(batches, InvalidBatch):
        raise InvariantError(f"fetched block was read before and is now {batches.reason}")
    return tuple(record for batch, _ in batches for record in read_records(batch) if record.offset >= position)


def _runs(batch: memoryview, descriptor: BatchDescriptor, position: Offset) -> list[tuple[Offset, int, str, int]]:
    runs: list[tuple[Offset, int, str, int]] = []
    try:
        records = read_records(batch)
    except CorruptRecordError:
        # A client of Kafka compressed it, well or badly: its broker did not look inside.
        first = max(position, descriptor.base_offset)
        return [(first, descriptor.last_offset - first + 1, UNKNOWN_PRODUCER, 0)]
    if descriptor.is_control:
        return [(record.offset, 1, COORDINATOR, 0) for record in records if record.offset >= position]
    for record in records:
        if record.offset < position:
            continue
        producer, record_id = record_identity(dict(record.headers).get(IDENTITY_HEADER, record.value))
        if runs:
            first_offset, count, run_producer, first_record_id = runs[-1]
            is_next = producer == UNKNOWN_PRODUCER or record_id == first_record_id + count
            if is_next and (first_offset + count, run_producer) == (record.offset, producer):
                runs[-1] = (first_offset, count + 1, producer, first_record_id)
                continue
        runs.append((record.offset, 1, producer, record_id))
    return runs
