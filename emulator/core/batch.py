"""A record batch as the core sees it: its header, never its bytes.

A log, to the core, is a sequence of ``BatchDescriptor``. Batches pass as opaque bytes from producer to follower. The
leader stamps only base offset and leader epoch, which the CRC does not cover, so the CRC identifies a batch everywhere
(record batch v2, Kafka's ``DefaultRecordBatch``).
"""

from enum import Enum

import msgspec

from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId


class TransactionResult(Enum):
    """The end of a transaction; values as control records have them (KIP-98)."""

    ABORT = 0
    COMMIT = 1


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """The control record that ends a producer's transaction in one partition (Kafka's ``EndTransactionMarker``).

    ``coordinator_epoch`` is the leader epoch of the partition of ``__transaction_state`` whose leader decided.
    """

    result: TransactionResult
    coordinator_epoch: int


class AbortedTransaction(msgspec.Struct, frozen=True):
    """An aborted transaction in a fetch response: consumers skip the producer's records from there to the marker."""

    producer_id: ProducerId
    first_offset: Offset


class BatchDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """The header of one record batch in a log.

    Attributes:
        base_offset: offset of the first record; 0 in a batch that a producer sends.
        last_offset: offset of the last record, inclusive (Kafka's ``lastOffset``).
        leader_epoch: epoch of the leader that appended it; 0 in a batch that a producer sends.
        crc: CRC-32C over everything from the attributes on.
        size: bytes of the whole batch, header included.
        record_count: number of records.
        max_timestamp_ms: largest record timestamp.
        producer_id: ``None`` if the producer is not idempotent; the next two are then unused.
        producer_epoch: generation of the producer id.
        base_sequence: sequence number of the first record.
        is_control: whether it holds a control record.
        is_transactional: whether it is part of a transaction, or ends one.
        marker: its control record, if that ends a transaction.
    """

    base_offset: Offset
    last_offset: Offset
    leader_epoch: LeaderEpoch
    crc: int
    size: int
    record_count: int
    max_timestamp_ms: int = 0
    producer_id: ProducerId | None = None
    producer_epoch: ProducerEpoch = ProducerEpoch(-1)
    base_sequence: int = -1
    is_control: bool = False
    is_transactional: bool = False
    marker: Marker | None = None

    @property
    def next_offset(self) -> Offset:
        """The offset after the last record."""
        return Offset(self.last_offset + 1)

    def stamped(self, base_offset: Offset, leader_epoch: LeaderEpoch) -> "BatchDescriptor":
        """Returns the header as a leader appends the batch; this one's offsets have to start at 0."""
        return BatchDescriptor(
            base_offset=base_offset,
            last_offset=Offset(base_offset + self.last_offset),
            leader_epoch=leader_epoch,
            crc=self.crc,
            size=self.size,
            record_count=self.record_count,
            max_timestamp_ms=self.max_timestamp_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_control=self.is_control,
            is_transactional=self.is_transactional,
            marker=self.marker,
        )

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; wraps from 2**31 - 1 to 0 as Kafka's does."""
        return (self.base_sequence + self.record_count - 1) & 0x7FFFFFFF


class InvalidBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that the gateway rejects as they are not one v2 batch, and the error to answer."""

    error: ErrorCode
    reason: str


class LogSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Whole batches of a log, named by offsets: what a fetch response carries. The driver knows the bytes.

    Attributes:
        base_offset: base offset of the first batch.
        end_offset: exclusive; next offset of the last batch.
        size: bytes of all batches together; fewer where the last one is cut.
    """

    base_offset: Offset
    end_offset: Offset
    size: int


class EpochEntry(msgspec.Struct, frozen=True, order=True):
    """One entry of a leader epoch cache: the epoch and the offset at which it started."""

    leader_epoch: LeaderEpoch
    start_offset: Offset


class EpochEndOffset(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to an epoch lookup: the largest epoch not above the one asked for, and its (exclusive) end offset."""

    leader_epoch: LeaderEpoch
    end_offset: Offset
