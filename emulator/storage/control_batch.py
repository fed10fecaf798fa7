"""Markers of transactions as control batches (Kafka's ``EndTransactionMarker``).

::

    batch   = of a producer id and epoch, transactional and control, sequence -1, one record
    key     = 0 i16 | type i16                   0 for an abort, 1 for a commit
    value   = 0 i16 | coordinator epoch i32
"""

from typing import Final

from laststand.emulator.core.batch import Marker
from laststand.emulator.core.group_records import EncodedBatch
from laststand.emulator.core.types import ProducerEpoch, ProducerId
from laststand.emulator.storage.record_batch import CONTROL, MARKER_KEY, MARKER_VALUE, TRANSACTIONAL, describe_header
from laststand.emulator.storage.value_batch import encode_record, seal_batch

_VERSION: Final = 0


def encode_marker(
    producer_id: ProducerId, producer_epoch: ProducerEpoch, marker: Marker, *, timestamp_ms: int
) -> EncodedBatch:
    """Returns the batch of a marker, at offset 0."""
    key = MARKER_KEY.pack(_VERSION, marker.result.value)
    value = MARKER_VALUE.pack(_VERSION, marker.coordinator_epoch)
    content = seal_batch(
        encode_record(0, key, value),
        record_count=1,
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL | CONTROL,
    )
    return EncodedBatch(describe_header(content, 0), content)
