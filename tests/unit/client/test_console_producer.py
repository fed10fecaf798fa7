"""Where typed records go, and how they are cut into batches."""

import pytest

from emulator.client.console_producer import BATCH_BYTES_MAX, place_of_key, split_into_batches


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
    found = split_into_batches([(None, bytes(size)) for size in sizes])
    assert [[len(value) for _, value in batch] for batch in found] == batches


def test_keys_count_as_bytes_too() -> None:
    records = [(bytes(BATCH_BYTES_MAX // 2), b"x"), (bytes(BATCH_BYTES_MAX // 2), b"y")]
    assert [[value for _, value in batch] for batch in split_into_batches(records)] == [[b"x"], [b"y"]]
