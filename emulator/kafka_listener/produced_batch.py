"""A batch that a client sends: Kafka's checks of it, and what its leader changes in it.

``framing_problem`` comes before the broker looks up the partition (``ProduceRequest.validateRecords``), ``validated``
is the leader's own validation (Kafka's ``LogValidator``). The leader rewrites a batch if the topic uses the append
time, or has another compression. Then the CRC changes, too; the core, the replicas and the history of the client have
the rewritten batch.
"""

from typing import Final, NamedTuple

from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.errors import CorruptRecordError, ErrorCode
from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.kafka_listener.wire_errors import WireError
from laststand.emulator.storage.record_batch import (
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC,
    MINIMAL_BATCH_LENGTH,
    PARSE_ANYTHING,
    parse_produced,
    stamp_append_time,
)

_ATTRIBUTES: Final = 22
"""Offset of the byte of a batch whose bits say codec, timestamp type and transaction."""

_FIRST_TIMESTAMP: Final = 27
_CODEC_BITS: Final = 0x07
_APPEND_TIME_BIT: Final = 0x08
_TRANSACTIONAL_BIT: Final = 0x10
_CODECS: Final = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
_ZSTD: Final = _CODECS.index("zstd")
_ZSTD_VERSION: Final = 7
_NO_TIMESTAMP: Final = -1
_SHOWN_ERRORS: Final = 3


class RecordError(NamedTuple):
    """A record because of which its batch is refused.

    Attributes:
        batch_index: of the record in its batch.
        message: the reason.
        error: Kafka's error for the batch.
    """

    batch_index: int
    message: str
    error: ErrorCode


class ProducedBatch(NamedTuple):
    """A batch as the core gets it.

    Attributes:
        header: of the batch.
        records: bytes of its records.
        append_time_ms: the append time that was written into it, if any.
        record_errors: records because of which it is refused.
    """

    header: BatchDescriptor | InvalidBatch
    records: bytes
    append_time_ms: int | None = None
    record_errors: tuple[RecordError, ...] = ()

    def stamped(self, append_time_ms: int) -> "ProducedBatch":
        """Returns the batch with a time of its append."""
        return _parsed(stamp_append_time(self.records, append_time_ms), append_time_ms=append_time_ms)


def is_transactional(records: bytes) -> bool:
    """Returns whether bytes are a batch of a transaction."""
    is_current = len(records) > _ATTRIBUTES and records[HEADER_UP_TO_MAGIC - 1] == MAGIC
    return is_current and bool(records[_ATTRIBUTES] & _TRANSACTIONAL_BIT)


def framing_problem(records: bytes, *, version: int) -> tuple[int, str | None] | None:
    """Returns the error, and the message beside it, of bytes that are not one batch of the current format.

    Args:
        records: bytes for one partition.
        version: of the request.
    """
    if len(records) < LOG_OVERHEAD:
        return ErrorCode.INVALID_RECORD, None
    length = int.from_bytes(records[LOG_OVERHEAD - 4 : LOG_OVERHEAD], "big", signed=True)
    if length < MINIMAL_BATCH_LENGTH:
        message = f"Record size {length} is less than the minimum record overhead ({MINIMAL_BATCH_LENGTH})"
        return ErrorCode.CORRUPT_MESSAGE, message
    magic = records[HEADER_UP_TO_MAGIC - 1] if len(records) >= HEADER_UP_TO_MAGIC else MAGIC
    if magic > MAGIC:
        return ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}"
    if magic < MAGIC or len(records) != LOG_OVERHEAD + length:
        return ErrorCode.INVALID_RECORD, None
    if version < _ZSTD_VERSION and records[_ATTRIBUTES] & _CODEC_BITS == _ZSTD:
        return WireError.UNSUPPORTED_COMPRESSION_TYPE, None
    return None


def validated(records: bytes, partition: TopicPartition, topic: TopicProperties, *, now_ms: int) -> ProducedBatch:
    """Validates one batch of the current format as the leader of its partition does, and rewrites it where it has to.

    Args:
        records: the batch.
        partition: the partition to append to.
        topic: properties of the topic.
        now_ms: since the epoch, by this broker's wall clock.
    """
    header = parse_produced(records, max_message_bytes=topic.max_message_bytes)
    if isinstance(header, InvalidBatch):
        return ProducedBatch(header, records)
    codec = records[_ATTRIBUTES] & _CODEC_BITS
    if codec >= len(_CODECS):
        return _refused(records, ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown codec {codec}")
    stamps_append_time = topic.message_timestamp_type == "LogAppendTime"
    is_recompressed = topic.compression_type not in ("producer", _CODECS[codec])
    has_doubtful_times = not stamps_append_time and not _has_fitting_times(header, records, topic, now_ms)
    batch = ProducedBatch(header, records)
    if has_doubtful_times or is_recompressed or "compact" in topic.cleanup_policy:
        batch = _with_records_read(batch, codec, partition, topic, now_ms=None if stamps_append_time else now_ms)
    if stamps_append_time and isinstance(batch.header, BatchDescriptor):
        return batch.stamped(now_ms)
    return batch


def _parsed(records: bytes, *, append_time_ms: int | None = None) -> ProducedBatch:
    return ProducedBatch(parse_produced(records, max_message_bytes=PARSE_ANYTHING), records, append_time_ms)


def _refused(records: bytes, error: ErrorCode, reason: str, errors: tuple[RecordError, ...] = ()) -> ProducedBatch:
    return ProducedBatch(InvalidBatch(error=error, reason=reason), records, record_errors=errors)


# --- Times --------------------------------------------------------------------------------------------------------


def _limits_ms(topic: TopicProperties, now_ms: int) -> tuple[int, int]:
    return now_ms - topic.message_timestamp_before_max_ms, now_ms + topic.message_timestamp_after_max_ms


def _fits(time_ms: int, topic: TopicProperties, now_ms: int) -> bool:
    earliest_ms, latest_ms = _limits_ms(topic, now_ms)
    return time_ms == _NO_TIMESTAMP or earliest_ms <= time_ms <= latest_ms


def _has_fitting_times(header: BatchDescriptor, records: bytes, topic: TopicProperties, now_ms: int) -> bool:
    """Returns whether a batch has times that are allowed, by the first and the largest time in its header."""
    first_ms = int.from_bytes(records[_FIRST_TIMESTAMP : _FIRST_TIMESTAMP + 8], "big", signed=True)
    is_stamped = records[_ATTRIBUTES] & _APPEND_TIME_BIT
    return not is_stamped and _fits(first_ms, topic, now_ms) and _fits(header.max_timestamp_ms, topic, now_ms)


# --- Records ------------------------------------------------------------------------------------------------------


def _with_records_read(
    batch: ProducedBatch, codec: int, partition: TopicPartition, topic: TopicProperties, *, now_ms: int | None
) -> ProducedBatch:
    """Checks each record, and compresses the records again if the topic requires it.

    Args:
        batch: to be checked.
        codec: the topic's compression.
        partition: the partition to append to.
        topic: properties of the topic.
        now_ms: the time with which timestamps are compared; ``None`` if they are not checked.
    """
    # Imported where it is needed: it takes longer than all else that a broker imports.
    from laststand.emulator.storage import record_codec

    try:
        records = record_codec.read_records(batch.records)
    except CorruptRecordError as error:
        return _refused(batch.records, ErrorCode.INVALID_RECORD, error.reason)
    is_stamped = bool(batch.records[_ATTRIBUTES] & _APPEND_TIME_BIT)
    errors: list[RecordError] = []
    for index, record in enumerate(records):
        if record.key is None and "compact" in topic.cleanup_policy:
            message = f"Compacted topic cannot accept message without key in topic partition {partition}"
            errors.append(RecordError(index, message, ErrorCode.INVALID_RECORD))
        elif now_ms is not None and is_stamped:
            message = "Invalid timestamp type. Producer should not set timestamp type to LogAppendTime."
            errors.append(RecordError(index, message, ErrorCode.INVALID_TIMESTAMP))
        elif now_ms is not None and not _fits(record.timestamp_ms, topic, now_ms):
            message = (
                f"Timestamp {record.timestamp_ms} of message with offset {index} is out of range. "
                f"The timestamp should be within [{', '.join(map(str, _limits_ms(topic, now_ms)))}]"
            )
            errors.append(RecordError(index, message, ErrorCode.INVALID_TIMESTAMP))
    if errors:
        return _refused_for(batch.records, tuple(errors))
    if topic.compression_type in ("producer", _CODECS[codec]):
        return batch
    assert isinstance(batch.header, BatchDescriptor), "an invalid batch is refused before its records are read"
    producer = None
    if batch.header.producer_id is not None:
        producer = record_codec.ProducerFields(
            producer_id=batch.header.producer_id,
            producer_epoch=batch.header.producer_epoch,
            base_sequence=batch.header.base_sequence,
        )
    compression = record_codec.Compression(_CODECS.index(topic.compression_type))
    contents = [
        record_codec.RecordContent(
            key=record.key, value=record.value, timestamp_ms=record.timestamp_ms, headers=record.headers
        )
        for record in records
    ]
    return _parsed(record_codec.build_batch(contents, producer=producer, compression=compression))


def _refused_for(records: bytes, errors: tuple[RecordError, ...]) -> ProducedBatch:
    """Refuses a batch for the sake of some of its records (``LogValidator.processRecordErrors``)."""
    if any(each.error is ErrorCode.INVALID_TIMESTAMP for each in errors):
        reason = "One or more records have been rejected due to invalid timestamp"
        return _refused(records, ErrorCode.INVALID_TIMESTAMP, reason, errors)
    shown = ", ".join(
        f"RecordError(batchIndex={each.batch_index}, message='{each.message}')" for each in errors[:_SHOWN_ERRORS]
    )
    reason = (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )
    return _refused(records, ErrorCode.INVALID_RECORD, reason, errors)
