"""Idempotent producers: what a log remembers of each, and what it makes of the next batch (KIP-98, KIP-360).

Kept per producer: epoch and the last five batches. Sequences are checked only for batches that clients send to the
leader; followers and replay never reject. A snapshot keeps one batch per producer, so after a restart an older retry is
out of order rather than a duplicate (Kafka's ``ProducerStateManager``).
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Offset, ProducerEpoch, ProducerId

RETAINED_BATCHES: Final = 5
_SEQUENCE_MASK: Final = 0x7FFFFFFF


class RetainedBatch(NamedTuple):
    """A batch that can still be recognised when it is sent again."""

    base_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: Offset
    max_timestamp_ms: int


class ProducerEntry:
    """One producer. No batches means that only a transaction marker is known of it."""

    __slots__ = ("batches", "last_update_ms", "producer_epoch")

    def __init__(self, producer_epoch: ProducerEpoch, *, now_ms: int) -> None:
        self.producer_epoch = producer_epoch
        self.batches: deque[RetainedBatch] = deque(maxlen=RETAINED_BATCHES)
        self.last_update_ms = now_ms


class InSequence(msgspec.Struct, frozen=True):
    """The batch may be appended."""


class DuplicateBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The batch is in the log already, at these offsets (inclusive)."""

    base_offset: Offset
    last_offset: Offset
    max_timestamp_ms: int


class RejectedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The batch must not be appended."""

    error: ErrorCode


SequenceCheck: TypeAlias = InSequence | DuplicateBatch | RejectedBatch

_IN_SEQUENCE: Final = InSequence()
_OUT_OF_ORDER: Final = RejectedBatch(error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
_OLD_EPOCH: Final = RejectedBatch(error=ErrorCode.INVALID_PRODUCER_EPOCH)


class ProducerStates:
    """All producers of one log."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[ProducerId, ProducerEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, producer_id: ProducerId) -> ProducerEntry | None:
        """Returns the state of a producer."""
        return self._entries.get(producer_id)

    def entries(self) -> list[tuple[ProducerId, ProducerEntry]]:
        """Returns all producers that are known, by id."""
        return sorted(self._entries.items())

    def check(self, batch: BatchDescriptor) -> SequenceCheck:
        """Judges a batch that a client sent; changes nothing."""
        if batch.producer_id is None:
            return _IN_SEQUENCE
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            return _IN_SEQUENCE
        if batch.producer_epoch < entry.producer_epoch:
            return _OLD_EPOCH
        if batch.producer_epoch > entry.producer_epoch:
            return _IN_SEQUENCE if batch.base_sequence == 0 or batch.is_control else _OUT_OF_ORDER
        for retained in reversed(entry.batches):
            if retained.base_sequence == batch.base_sequence and retained.last_sequence == batch.last_sequence:
                return DuplicateBatch(
                    base_offset=retained.base_offset,
                    last_offset=retained.last_offset,
                    max_timestamp_ms=retained.max_timestamp_ms,
                )
        last_sequence = entry.batches[-1].last_sequence if entry.batches else -1
        in_sequence = batch.base_sequence == (last_sequence + 1) & _SEQUENCE_MASK
        return _IN_SEQUENCE if in_sequence or batch.is_control else _OUT_OF_ORDER

    def update(self, batch: BatchDescriptor, *, now_ms: int) -> None:
        """Takes note of an appended batch. A marker moves the epoch only."""
        if batch.producer_id is None:
            return
        entry = self._entries.get(batch.producer_id)
        if entry is None or entry.producer_epoch != batch.producer_epoch:
            entry = self._entries[batch.producer_id] = ProducerEntry(batch.producer_epoch, now_ms=now_ms)
        entry.last_update_ms = now_ms
        if not batch.is_control:
            entry.batches.append(
                RetainedBatch(
                    batch.base_sequence,
                    batch.last_sequence,
                    batch.base_offset,
                    batch.last_offset,
                    batch.max_timestamp_ms,
                )
            )

    def expire(self, *, now_ms: int, expiration_ms: int) -> None:
        """Forgets producers that appended nothing for ``expiration_ms`` (``producer.id.expiration.ms``)."""
        idle = [key for key, entry in self._entries.items() if now_ms - entry.last_update_ms >= expiration_ms]
        for producer_id in idle:
            del self._entries[producer_id]

    def reload(self, snapshot: Iterable[inputs.ProducerSnapshotEntry], *, now_ms: int) -> None:
        """Forgets everything and starts from a snapshot; the log after it is to be replayed with ``update``."""
        self._entries.clear()
        for kept in snapshot:
            entry = self._entries[kept.producer_id] = ProducerEntry(kept.producer_epoch, now_ms=now_ms)
            if kept.last_offset >= 0:
                entry.batches.append(
                    RetainedBatch(
                        (kept.last_sequence - kept.offset_delta) & _SEQUENCE_MASK,
                        kept.last_sequence,
                        Offset(kept.last_offset - kept.offset_delta),
                        kept.last_offset,
                        kept.timestamp_ms,
                    )
                )
