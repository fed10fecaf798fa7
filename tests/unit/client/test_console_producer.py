"""Partitions of typed records, and the batches that they are cut into."""

import pytest

from laststand.emulator.client.console_producer import (
    BATCH_BYTES_MAX,
    Headers,
    place_of_key,
    record_overhead,
    split_into_batches,
)
from laststand.emulator.storage.record_batch import HEADER_SIZE
from laststand.emulator.storage.record_codec import RecordContent, build_batch


@pytest.mark.parametrize(
    ("key", "java_hash"),
    # Source: Kafka's ``UtilsTest.testMurmur2``.
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
@pytest.mark.parametrize("partitions", [1, 2, 7, 100])
def test_a_key_goes_where_kafka_would_put_it(key: bytes, java_hash: int, partitions: int) -> None:
    assert place_of_key(key, partitions) == (java_hash & 0x7FFFFFFF) % partitions


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ([], []),
        ([1], [[1]]),
        ([BATCH_BYTES_MAX, 1], [[BATCH_BYTES_MAX], [1]]),
        ([1, BATCH_BYTES_MAX - 1, 1], [[1, BATCH_BYTES_MAX - 1], [1]]),
        ([BATCH_BYTES_MAX * 3, 5, 5], [[BATCH_BYTES_MAX * 3], [5, 5]]),
        ([0, 0], [[0, 0]]),
    ],
)
def test_a_batch_is_full_or_one_large_record(sizes: list[int], batches: list[list[int]]) -> None:
    found = split_into_batches([(None, bytes(size)) for size in sizes], bytes_max=BATCH_BYTES_MAX, record_overhead=0)
    assert [[len(value) for _, value in batch] for batch in found] == batches


def test_keys_count_as_bytes_too() -> None:
    records = [(bytes(BATCH_BYTES_MAX // 2), b"x"), (bytes(BATCH_BYTES_MAX // 2), b"y")]
    found = split_into_batches(records, bytes_max=BATCH_BYTES_MAX, record_overhead=0)
    assert [[value for _, value in batch] for batch in found] == [[b"x"], [b"y"]]


@pytest.mark.parametrize("headers", [(), (("laststand", b"console-0:9223372036854775807"), ("k", None))])
@pytest.mark.parametrize("value", [b"", b"1", b"x" * 300])
def test_a_batch_of_short_records_is_no_larger_than_it_may_be(headers: Headers, value: bytes) -> None:
    first, *_ = split_into_batches([(b"key", value)] * 2000, bytes_max=20_000, record_overhead=record_overhead(headers))
    records = [RecordContent(key=b"key", value=value, timestamp_ms=2**62, headers=headers) for _ in first]
    assert 5_000 < len(build_batch(records)) <= 20_000 + HEADER_SIZE
