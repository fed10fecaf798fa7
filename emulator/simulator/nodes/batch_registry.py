"""Registers the batches that simulated producers send: record ids, by the batch's CRC, and bytes where they matter.

A sweep never reads bytes, so a batch's CRC is a running number, the same for the same content. A run that is written to
disk is played again with an ``encode`` that makes real bytes; nothing in the protocol depends on that, so it is the
same run.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client.steps import BatchContent
from laststand.emulator.core.coordinator_records import EncodeRecords
from laststand.emulator.core.history import UNKNOWN_PRODUCER, PolledBatch
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch
from laststand.emulator.storage.coordinator_records import encode_records

ENCODE_RECORDS: Final[EncodeRecords] = partial(encode_records, timestamp_ms=0)
"""Makes the batches of coordinators, in real bytes: virtual time has no calendar, and they are few."""

_BATCH_OVERHEAD: Final = 61
_RECORD_BYTES: Final = 100
_LONGER_FROM: Final = (64, 8192)
"""Positions in a batch from which on a record is a byte longer, as its offset delta is."""

Encode: TypeAlias = Callable[[str, BatchContent], BatchDescriptor]
"""Makes the header of a producer's batch; equal content, equal header."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    producer: str
    first_record_id: int
    record_count: int


_NOBODYS: Final = _Entry(producer=UNKNOWN_PRODUCER, first_record_id=0, record_count=1)


class BatchRegistry:
    """Makes batches, and keeps which records are in each.

    Args:
        encode: makes a batch's header; ``None`` for running numbers.
    """

    def __init__(self, encode: Encode | None = None) -> None:
        self._encode = encode or self._number
        self._numbers: dict[tuple[str, BatchContent], int] = {}
        self._entries: dict[int, _Entry] = {}

    def encoder(self, producer: str) -> Callable[[BatchContent], BatchDescriptor]:
        """Returns the encoder of one producer."""

        def encode(content: BatchContent) -> BatchDescriptor:
            descriptor = self._encode(producer, content)
            self._entries[descriptor.crc] = _Entry(
                producer=producer, first_record_id=content.first_record_id, record_count=content.record_count
            )
            return descriptor

        return encode

    def polled(self, batch: BatchDescriptor, *, position: Offset) -> PolledBatch | None:
        """Returns which records of a batch a consumer at ``position`` receives; ``None`` if it has none from there on.

        A batch that no client sent, such as a transaction marker, has no producer.
        """
        if batch.last_offset < position:
            return None
        entry = self._entries.get(batch.crc, _NOBODYS)
        skipped = max(0, position - batch.base_offset)
        return PolledBatch(
            base_offset=Offset(batch.base_offset + skipped),
            last_offset=batch.last_offset,
            leader_epoch=batch.leader_epoch,
            crc=batch.crc,
            producer=entry.producer,
            first_record_id=entry.first_record_id + skipped,
            record_count=entry.record_count - skipped,
        )

    def _number(self, producer: str, content: BatchContent) -> BatchDescriptor:
        crc = self._numbers.setdefault((producer, content), len(self._numbers) + 1)
        return BatchDescriptor(
            base_offset=Offset(0),
            last_offset=Offset(content.record_count - 1),
            leader_epoch=LeaderEpoch(0),
            crc=crc,
            size=batch_size(content.record_count),
            record_count=content.record_count,
            producer_id=content.producer_id,
            producer_epoch=ProducerEpoch(-1) if content.producer_epoch is None else content.producer_epoch,
            base_sequence=-1 if content.base_sequence is None else content.base_sequence,
            is_transactional=content.is_transactional,
        )


def batch_size(record_count: int) -> int:
    """Returns the length in bytes of a batch with a number of simulated records, for limits and segments."""
    longer = sum(max(0, record_count - position) for position in _LONGER_FROM)
    return _BATCH_OVERHEAD + _RECORD_BYTES * record_count + longer
