"""Headers read and stamped in place."""

import struct

import pytest

from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.errors import CorruptRecordError, ErrorCode
from laststand.emulator.core.types import ProducerEpoch, ProducerId
from laststand.emulator.storage.batch_scan import BatchValidation, ScanEnd, scan_batches
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.record_batch import (
    HEADER_SIZE,
    PARSE_ANYTHING,
    crc_of,
    parse_batch,
    parse_produced,
    split_batches,
    stamp,
)
from laststand.emulator.storage.record_codec import (
    Compression,
    ProducerFields,
    RecordContent,
    build_batch,
    read_records,
)
from tests.unit.storage.log_fixtures import durable_directory, make_batch, overwrite

RECORDS = [
    RecordContent(value=b"v1", key=b"k", timestamp_ms=1000, headers=(("h", b"x"), ("n", None))),
    RecordContent(value=None, timestamp_ms=1005),
]
PRODUCER = ProducerFields(producer_id=ProducerId(9), producer_epoch=ProducerEpoch(1), base_sequence=4)
BATCH = build_batch(RECORDS, producer=PRODUCER)


def _with(at: int, pattern: str, value: int, *, mend_crc: bool = True) -> bytes:
    changed = bytearray(BATCH)
    struct.pack_into(pattern, changed, at, value)
    if mend_crc:
        struct.pack_into(">I", changed, 17, crc_of(changed))
    return bytes(changed)


def test_built_batch_parses_and_reads_back() -> None:
    parsed = parse_produced(BATCH, max_message_bytes=len(BATCH))
    assert isinstance(parsed, BatchDescriptor)
    assert (parsed.base_offset, parsed.last_offset, parsed.leader_epoch, parsed.record_count) == (0, 1, 0, 2)
    assert (parsed.producer_id, parsed.producer_epoch, parsed.base_sequence, parsed.last_sequence) == (9, 1, 4, 5)
    assert (parsed.max_timestamp_ms, parsed.size, parsed.is_control) == (1005, len(BATCH), False)
    records = read_records(BATCH)
    assert [(r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in records] == [
        (0, 1000, b"k", b"v1", (("h", b"x"), ("n", None))),
        (1, 1005, None, None, ()),
    ]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (BATCH[: HEADER_SIZE - 1], ErrorCode.INVALID_RECORD),
        (BATCH[:-1], ErrorCode.INVALID_RECORD),
        (BATCH + BATCH, ErrorCode.INVALID_RECORD),
        (_with(8, ">i", 10), ErrorCode.CORRUPT_MESSAGE),
        (_with(16, ">b", 1), ErrorCode.INVALID_RECORD),
        (_with(16, ">b", 3), ErrorCode.CORRUPT_MESSAGE),
        (_with(53, ">i", -1), ErrorCode.INVALID_RECORD),
        (_with(17, ">I", 1, mend_crc=False), ErrorCode.CORRUPT_MESSAGE),
        (_with(61, ">b", 1, mend_crc=False), ErrorCode.CORRUPT_MESSAGE),
        (_with(57, ">i", 0), ErrorCode.INVALID_RECORD),
        (_with(23, ">i", -1), ErrorCode.INVALID_RECORD),
        (_with(23, ">i", 7), ErrorCode.INVALID_RECORD),
        (_with(0, ">q", 5), ErrorCode.INVALID_RECORD),
        (_with(21, ">h", 0x20), ErrorCode.INVALID_RECORD),
    ],
)
def test_bad_batch_is_refused_with_its_error(content: bytes, error: ErrorCode) -> None:
    parsed = parse_produced(content, max_message_bytes=PARSE_ANYTHING)
    assert isinstance(parsed, InvalidBatch)
    assert parsed.error is error


def test_size_limit_counts_the_whole_batch() -> None:
    parsed = parse_batch(BATCH, max_message_bytes=len(BATCH) - 1)
    assert isinstance(parsed, InvalidBatch)
    assert parsed.error is ErrorCode.MESSAGE_TOO_LARGE


def test_stamp_leaves_the_crc_alone_and_copies_only_when_it_must() -> None:
    descriptor, stamped = make_batch(40, 2, leader_epoch=7)
    parsed = parse_batch(stamped, max_message_bytes=PARSE_ANYTHING)
    assert parsed == descriptor
    assert stamp(stamped, descriptor) is stamped
    assert [record.offset for record in read_records(stamped)] == [40, 41]


def test_fetched_bytes_are_split_into_batches() -> None:
    (first, one), (second, two) = make_batch(0, 2), make_batch(2, 1)
    split = split_batches(one + two)
    assert not isinstance(split, InvalidBatch)
    assert [(bytes(content), descriptor) for content, descriptor in split] == [(one, first), (two, second)]
    assert split_batches(b"") == []
    for damaged in (one + two[:-1], one[:-1] + b"\xff" + two, one + b"\x00" * 70):
        assert isinstance(split_batches(damaged), InvalidBatch)


def test_malformed_records_are_an_error() -> None:
    with pytest.raises(CorruptRecordError):
        read_records(_with(57, ">i", 5))


@pytest.mark.parametrize("compression", [each for each in Compression if each is not Compression.NONE])
def test_compressed_records_that_are_damaged_are_an_error(compression: Compression) -> None:
    batch = bytearray(build_batch(RECORDS, compression=compression))
    cut = [batch[:end] for end in range(HEADER_SIZE, len(batch))]
    batch[HEADER_SIZE:] = b"?" * (len(batch) - HEADER_SIZE)
    for damaged in (batch, *cut):
        with pytest.raises(CorruptRecordError):
            read_records(damaged)


@pytest.mark.parametrize(
    ("tail", "end"),
    [
        (b"", ScanEnd.SILENT),
        (bytes(17), ScanEnd.SILENT),
        (bytes(18), ScanEnd.CORRUPT),
        (BATCH[:-1], ScanEnd.SILENT),
        (BATCH[:16] + b"\x01" + BATCH[17:], ScanEnd.CORRUPT),
    ],
)
def test_scan_ends_silently_or_in_corruption(tail: bytes, end: ScanEnd) -> None:
    filesystem = durable_directory("/d")
    overwrite(filesystem, "/d/log", BATCH + tail)
    scan = scan_batches(filesystem.open("/d/log", OpenMode.READ), check=BatchValidation.HEADERS)
    assert (len(scan.batches), scan.valid_bytes, scan.end) == (1, len(BATCH), end)


def test_scan_reads_batches_larger_than_its_buffer() -> None:
    filesystem = durable_directory("/d")
    made = [make_batch(base, value=b"x" * size) for base, size in ((0, 3 << 20), (1, 10), (2, 1 << 20), (3, 5))]
    overwrite(filesystem, "/d/log", b"".join(content for _, content in made))
    for check in BatchValidation:
        scan = scan_batches(filesystem.open("/d/log", OpenMode.READ), check=check)
        assert scan.batches == [descriptor for descriptor, _ in made]
