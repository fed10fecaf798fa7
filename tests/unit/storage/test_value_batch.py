"""Batches of values are, byte for byte, what the library's builder makes."""

import pytest

from laststand.emulator.core.types import ProducerEpoch, ProducerId
from laststand.emulator.storage.record_codec import ProducerFields, RecordContent, build_batch
from laststand.emulator.storage.value_batch import build_value_batch

IDENTITY = ProducerFields(producer_id=ProducerId(7), producer_epoch=ProducerEpoch(3), base_sequence=99)


@pytest.mark.parametrize("producer", [None, IDENTITY], ids=["plain", "idempotent"])
@pytest.mark.parametrize("count", [1, 2, 64, 65, 1_500])
@pytest.mark.parametrize("length", [0, 1, 57, 58, 1024, 9000])
def test_the_same_bytes_as_the_builder(count: int, length: int, producer: ProducerFields | None) -> None:
    values = [bytes([number % 256]) * length for number in range(count)]
    expected = build_batch([RecordContent(value=value, timestamp_ms=1_234) for value in values], producer=producer)
    actual = build_value_batch(
        values,
        timestamp_ms=1_234,
        producer_id=None if producer is None else producer.producer_id,
        producer_epoch=None if producer is None else producer.producer_epoch,
        base_sequence=None if producer is None else producer.base_sequence,
    )
    assert actual == expected


def test_values_of_different_lengths() -> None:
    values = [b"x" * length for length in (0, 200, 3, 20_000)]
    expected = build_batch([RecordContent(value=value, timestamp_ms=5) for value in values])
    actual = build_value_batch(values, timestamp_ms=5, producer_id=None, producer_epoch=None, base_sequence=None)
    assert actual == expected
