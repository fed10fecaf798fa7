"""Batches of clients: what is refused before a partition is looked up, what its leader refuses, what it rewrites."""

from typing import Any

import pytest

from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.properties import NodeProperties, TopicProperties, topic_properties
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.kafka_listener.produced_batch import (
    ProducedBatch,
    framing_problem,
    is_transactional,
    validated,
)
from laststand.emulator.kafka_listener.wire_errors import WireError
from laststand.emulator.storage.record_codec import read_records
from tests.wire.batches import make_batch

PARTITION = TopicPartition("t", 3)
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def topic(**given: str) -> TopicProperties:
    return topic_properties(NodeProperties(), {name.replace("_", "."): value for name, value in given.items()})


def validate(batch: bytes, **given: str) -> ProducedBatch:
    return validated(batch, PARTITION, topic(**given), now_ms=NOW_MS)


def error_of(batch: ProducedBatch) -> ErrorCode:
    return batch.header.error if isinstance(batch.header, InvalidBatch) else ErrorCode.NONE


@pytest.mark.parametrize(
    ("records", "version", "error"),
    [
        (b"", 9, ErrorCode.INVALID_RECORD),
        (b"\0" * 5, 9, ErrorCode.INVALID_RECORD),
        (b"\0" * 80, 9, ErrorCode.CORRUPT_MESSAGE),
        (b"\xff" * 80, 9, ErrorCode.CORRUPT_MESSAGE),
        (make_batch(magic=0), 9, ErrorCode.INVALID_RECORD),
        (make_batch(magic=1), 9, ErrorCode.INVALID_RECORD),
        (make_batch(magic=3), 9, ErrorCode.CORRUPT_MESSAGE),
        (make_batch(corrupt="short"), 9, ErrorCode.INVALID_RECORD),
        (make_batch() + make_batch(), 9, ErrorCode.INVALID_RECORD),
        (make_batch(codec="zstd"), 6, WireError.UNSUPPORTED_COMPRESSION_TYPE),
        (make_batch(codec="zstd"), 7, None),
        (make_batch(corrupt="crc"), 9, None),
        (make_batch(), 3, None),
    ],
)
def test_bytes_that_are_not_one_current_batch_are_refused_first(records: bytes, version: int, error: int) -> None:
    problem = framing_problem(records, version=version)
    assert (None if problem is None else problem[0]) == error


def test_only_what_is_malformed_has_a_message() -> None:
    assert framing_problem(make_batch(magic=3), version=9) == (2, "Invalid magic found in record: 3")
    assert framing_problem(b"\0" * 12, version=9) == (2, "Record size 0 is less than the minimum record overhead (14)")
    assert framing_problem(make_batch(magic=1), version=9) == (87, None)


def test_batches_of_transactions_are_recognised() -> None:
    assert is_transactional(make_batch(transactional=True, producerId=1, producerEpoch=0, baseSequence=0))
    assert not is_transactional(make_batch())
    assert not is_transactional(make_batch(magic=1))
    assert not is_transactional(b"")


@pytest.mark.parametrize(
    ("batch", "given", "error"),
    [
        ({}, {}, ErrorCode.NONE),
        ({"corrupt": "crc"}, {}, ErrorCode.CORRUPT_MESSAGE),
        ({"corrupt": "crc"}, {"max_message_bytes": "40"}, ErrorCode.MESSAGE_TOO_LARGE),
        ({"control": True}, {}, ErrorCode.INVALID_RECORD),
        ({"control": True}, {"max_message_bytes": "40"}, ErrorCode.MESSAGE_TOO_LARGE),
        ({"corrupt": "attr"}, {}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"timestamp": NOW_MS + HOUR_MS}, {}, ErrorCode.NONE),
        ({"timestamp": NOW_MS + HOUR_MS + 1}, {}, ErrorCode.INVALID_TIMESTAMP),
        ({"timestamp": NOW_MS + HOUR_MS + 1, "codec": "gzip"}, {}, ErrorCode.INVALID_TIMESTAMP),
        ({"timestamp": NOW_MS + HOUR_MS + 1}, {"message_timestamp_after_max_ms": f"{2**63 - 1}"}, ErrorCode.NONE),
        ({"timestamp": 5}, {}, ErrorCode.NONE),
        ({"timestamp": -1}, {"message_timestamp_before_max_ms": "1000"}, ErrorCode.NONE),
        ({"timestamp": NOW_MS - 1001}, {"message_timestamp_before_max_ms": "1000"}, ErrorCode.INVALID_TIMESTAMP),
        ({"timestamp": NOW_MS - 1000}, {"message_timestamp_before_max_ms": "1000"}, ErrorCode.NONE),
        ({"records": [[None, "v"]]}, {}, ErrorCode.NONE),
        ({"records": [[None, "v"]]}, {"cleanup_policy": "compact"}, ErrorCode.INVALID_RECORD),
        ({"records": [[None, "v"]]}, {"cleanup_policy": "compact,delete"}, ErrorCode.INVALID_RECORD),
        ({"records": [["k", None]]}, {"cleanup_policy": "compact"}, ErrorCode.NONE),
        ({"corrupt": "relative"}, {}, ErrorCode.NONE),
    ],
)
def test_a_leader_refuses_what_kafkas_does(batch: dict[str, Any], given: dict[str, str], error: ErrorCode) -> None:
    assert error_of(validate(make_batch(**batch), **given)) is error


def test_the_records_at_fault_are_named() -> None:
    records = make_batch([[None, "a"], ["k", "b"], [None, "c"]])
    refused = validate(records, cleanup_policy="compact")
    assert [each.batch_index for each in refused.record_errors] == [0, 2]
    assert refused.record_errors[0].message == (
        "Compacted topic cannot accept message without key in topic partition t-3"
    )
    assert isinstance(refused.header, InvalidBatch)
    assert refused.header.reason.startswith("One or more records have been rejected due to 2 record errors in total")


def test_a_wrong_time_outweighs_a_missing_key() -> None:
    records = make_batch([[None, "a"], ["k", "b"]], timestamp=NOW_MS + 2 * HOUR_MS)
    refused = validate(records, cleanup_policy="compact")
    assert error_of(refused) is ErrorCode.INVALID_TIMESTAMP
    assert [each.error for each in refused.record_errors] == [ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP]
    assert isinstance(refused.header, InvalidBatch)
    assert refused.header.reason == "One or more records have been rejected due to invalid timestamp"


def test_a_batch_passes_unchanged() -> None:
    records = make_batch()
    assert validate(records).records is records


def test_the_time_of_the_append_replaces_that_of_the_client() -> None:
    sent = make_batch([["k", "v"], ["k", "w"]], timestamp=NOW_MS + 9 * HOUR_MS)
    batch = validate(sent, message_timestamp_type="LogAppendTime")
    assert isinstance(batch.header, BatchDescriptor)
    assert batch.append_time_ms == batch.header.max_timestamp_ms == NOW_MS
    assert [record.timestamp_ms for record in read_records(batch.records)] == [NOW_MS, NOW_MS]
    assert batch.stamped(NOW_MS).header == batch.header
    assert batch.stamped(NOW_MS + 1).header != batch.header


@pytest.mark.parametrize(
    ("codec", "wanted", "stored"),
    [("none", "gzip", 1), ("gzip", "zstd", 4), ("none", "lz4", 3), ("gzip", "producer", 1)],
)
def test_a_topic_has_batches_compressed_again(codec: str, wanted: str, stored: int) -> None:
    sent = make_batch([["k", "v"], [None, "w"]], codec=codec, producerId=7, producerEpoch=1, baseSequence=5)
    batch = validate(sent, compression_type=wanted)
    assert isinstance(batch.header, BatchDescriptor)
    assert batch.records[22] == stored
    assert (batch.header.producer_id, batch.header.producer_epoch, batch.header.base_sequence) == (7, 1, 5)
    assert [(record.key, record.value) for record in read_records(batch.records)] == [(b"k", b"v"), (None, b"w")]
    assert (batch.records == sent) is (codec == "gzip" and wanted == "producer")
