"""Markers of transactions as control batches (Kafka's ``EndTransactionMarker``).

::

    batch   = of a producer id and epoch, transactional and control, sequence -1, one record
    key     = 0 i16 | type i16                   0 for an abort, 1 for a commit
    value   = 0 i16 | coordinator epoch i32
"""

from typing import Final

from laststand.emulator.core.coordinator_records import EncodedBatch
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.storage.record_batch import CONTROL, MARKER_KEY, MARKER_VALUE, TRANSACTIONAL, describe_header
from laststand.emulator.storage.value_batch import encode_record, seal_batch

_VERSION: Final = 0


def encode_marker(ended: TransactionEnded, *, timestamp_ms: int) -> EncodedBatch:
    """Returns the batch of a marker, at offset 0."""
    key = MARKER_KEY.pack(_VERSION, ended.marker.result.value)
    value = MARKER_VALUE.pack(_VERSION, ended.marker.coordinator_epoch)
    content = seal_batch(
        encode_record(0, key, value),
        record_count=1,
        timestamp_ms=timestamp_ms,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        attributes=TRANSACTIONAL | CONTROL,
    )
    return EncodedBatch(describe_header(content, 0), content)
