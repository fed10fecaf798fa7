"""Records say who they are, on the wire and in a log."""

import pytest

from laststand.emulator.client.records import (
    IDENTITY_HEADER,
    encode_batch,
    identity_text,
    parse_fetched,
    polled_batches,
    polled_records,
    record_identity,
    record_value,
)
from laststand.emulator.core.batch import Marker, TransactionResult
from laststand.emulator.core.client.steps import BatchContent
from laststand.emulator.core.history import COORDINATOR, UNKNOWN_PRODUCER
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import Offset, ProducerEpoch, ProducerId, TopicPartition
from laststand.emulator.rpc.codec_error import CodecError
from laststand.emulator.storage.coordinator_records import encode_records
from laststand.emulator.storage.record_batch import crc_of
from laststand.emulator.storage.record_codec import RecordContent, build_batch

CRC = slice(17, 21)
COMPRESSION = 22
"""Byte of a batch's attributes that names the codec (KIP-98)."""

UNREADABLE = 1
"""Gzip, which these records are not."""


@pytest.mark.parametrize("size", [20, 100, 1000])
@pytest.mark.parametrize("record_id", [0, 7, 123_456])
def test_a_value_has_its_size_and_its_id(record_id: int, size: int) -> None:
    value = record_value("producer-0", record_id, size)
    assert len(value) == size
    assert record_identity(value) == ("producer-0", record_id)


def test_a_record_with_a_value_of_its_own_has_its_id_in_a_header() -> None:
    headers = ((IDENTITY_HEADER, identity_text("client-3", 7)),)
    records = [RecordContent(value=b"producer-9:1.", key=b"k", timestamp_ms=1, headers=headers)]
    block = build_batch([*records, RecordContent(value=b"hello", timestamp_ms=1)])
    first, second = polled_batches(block, position=Offset(0))
    assert (first.producer, first.first_record_id) == ("client-3", 7)
    assert (second.producer, second.first_record_id) == (UNKNOWN_PRODUCER, 0)
    assert [(record.key, record.value) for record in polled_records(block, position=Offset(0))] == [
        (b"k", b"producer-9:1."),
        (None, b"hello"),
    ]
    assert [record.offset for record in polled_records(block, position=Offset(1))] == [1]


@pytest.mark.parametrize("value", [None, b"", b"hello", b"producer-0:x.", b":", b"no colon."])
def test_a_strange_value_has_no_producer(value: bytes | None) -> None:
    assert record_identity(value) == (UNKNOWN_PRODUCER, 0)


def content(first_record_id: int, count: int) -> BatchContent:
    return BatchContent(
        partition=TopicPartition("orders", 0),
        first_record_id=first_record_id,
        record_count=count,
        producer_id=ProducerId(3),
        producer_epoch=ProducerEpoch(1),
        base_sequence=first_record_id,
    )


def test_a_batch_comes_back_with_the_ids_that_went_in() -> None:
    block, header = encode_batch("producer-0", content(40, 5), record_size=100)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (3, 1, 40, 5)
    assert parse_fetched(block) == (header,)
    (polled,) = polled_batches(block, position=Offset(0))
    assert (polled.producer, polled.first_record_id, polled.record_count, polled.crc) == (
        "producer-0",
        40,
        5,
        header.crc,
    )


def test_records_below_the_position_are_not_polled() -> None:
    block, _ = encode_batch("producer-0", content(40, 5), record_size=100)
    (polled,) = polled_batches(block, position=Offset(2))
    assert (polled.base_offset, polled.last_offset, polled.first_record_id) == (2, 4, 42)


def test_a_batch_that_cannot_be_read_is_one_of_an_unknown_producer() -> None:
    block = bytearray(build_batch([RecordContent(value=b"v", timestamp_ms=0)] * 3))
    block[COMPRESSION] = UNREADABLE
    block[CRC] = crc_of(block).to_bytes(4, "big")
    (polled,) = polled_batches(bytes(block), position=Offset(1))
    assert (polled.producer, polled.base_offset, polled.last_offset, polled.record_count) == (UNKNOWN_PRODUCER, 1, 2, 2)


def test_a_batch_whose_ids_are_not_consecutive_is_distinguished() -> None:
    values = [record_value("a", 1, 50), record_value("a", 2, 50), record_value("b", 3, 50), b"?"]
    block = build_batch([RecordContent(value=value, timestamp_ms=0) for value in values])
    polled = polled_batches(block, position=Offset(0))
    assert [(each.producer, each.first_record_id, each.record_count) for each in polled] == [
        ("a", 1, 2),
        ("b", 3, 1),
        (UNKNOWN_PRODUCER, 0, 1),
    ]


def test_bytes_that_are_no_batches_are_refused() -> None:
    with pytest.raises(CodecError):
        parse_fetched(b"nonsense")


def test_a_marker_is_no_producers() -> None:
    ended = TransactionEnded(
        producer_id=ProducerId(1),
        producer_epoch=ProducerEpoch(0),
        marker=Marker(result=TransactionResult.COMMIT, coordinator_epoch=0),
    )
    payload = encode_records((ended,), timestamp_ms=0).content
    assert [each.producer for each in polled_batches(payload, position=Offset(0))] == [COORDINATOR]
    assert polled_batches(payload, position=Offset(0), aborted=()) == ()
