"""Producers as a log knows them: idempotence, and transactions (KIP-98, KIP-360, KIP-890).

Kept per producer: epoch, the last five batches, where its open transaction began, and the epoch of the coordinator that
wrote its last marker. Sequences and epochs are checked only for what clients and coordinators send to the leader;
followers and replay never reject. A snapshot keeps one batch per producer, so after a restart an older retry is out of
order rather than a duplicate. Three kinds of transactions are kept: open ones, those
whose marker is not committed, and aborted ones; the first two hold back the last stable offset (Kafka's
``ProducerStateManager``).
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor, Marker
from laststand.emulator.core.broker.replicas.transaction_index import (
    CompletedTransaction,
    OpenTransactions,
    TransactionIndex,
    index_of,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import Offset, ProducerEpoch, ProducerId, ProducerIdentity

RETAINED_BATCHES: Final = 5
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_NO_COORDINATOR: Final = -1
_LATE_AFTER_MS: Final = 5 * 60_000
"""Time past the longest timeout after which an open transaction counts as hanging (KIP-664)."""


class RetainedBatch(NamedTuple):
    """A batch that can still be recognised when it is sent again."""

    base_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: Offset
    max_timestamp_ms: int


class ProducerEntry:
    """One producer. Without batches, a transaction marker is all that is known of the producer's epoch.

    Attributes:
        coordinator_epoch: of the last marker; -1 before any.
        transaction_first_offset: of its open transaction.
    """

    __slots__ = ("batches", "coordinator_epoch", "last_update_ms", "producer_epoch", "transaction_first_offset")

    def __init__(self, producer_epoch: ProducerEpoch, *, now_ms: int) -> None:
        self.producer_epoch = producer_epoch
        self.batches: deque[RetainedBatch] = deque(maxlen=RETAINED_BATCHES)
        self.last_update_ms = now_ms
        self.coordinator_epoch = _NO_COORDINATOR
        self.transaction_first_offset: Offset | None = None


class Verification:
    """A producer's transaction that the coordinator is asked about before its first batch is appended (KIP-890).

    The object itself is the guard: a verified batch is appended only while this is the producer's verification.

    Attributes:
        lowest_sequence: lowest sequence of the batches that wait for the verification.
        producer_epoch: producer epoch of the newest of these batches.
        adds_partition: the coordinator is asked to add the partition (transaction version 2), not only to confirm it.
        started_ms: when the verification began.
    """

    __slots__ = ("adds_partition", "lowest_sequence", "producer_epoch", "started_ms")

    def __init__(
        self, *, lowest_sequence: int, producer_epoch: ProducerEpoch, adds_partition: bool, started_ms: int
    ) -> None:
        self.lowest_sequence = lowest_sequence
        self.producer_epoch = producer_epoch
        self.adds_partition = adds_partition
        self.started_ms = started_ms


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
_WRONG_STATE: Final = RejectedBatch(error=ErrorCode.INVALID_TXN_STATE)


class ProducerStates:
    """All producers of one log.

    Attributes:
        aborted: the aborted transactions of the log.
    """

    __slots__ = ("_entries", "_open", "_uncommitted", "_verifications", "aborted")

    def __init__(self) -> None:
        self._entries: dict[ProducerId, ProducerEntry] = {}
        self._verifications: dict[ProducerId, Verification] = {}
        self._open = OpenTransactions()
        self._uncommitted: deque[CompletedTransaction] = deque()
        self.aborted = TransactionIndex()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, producer_id: ProducerId) -> ProducerEntry | None:
        """Returns the state of a producer."""
        return self._entries.get(producer_id)

    def entries(self) -> list[tuple[ProducerId, ProducerEntry]]:
        """Returns all producers that are known, by id."""
        return sorted(self._entries.items())

    # --- Batches of clients ---------------------------------------------------------------------------------------

    def check(
        self, batch: BatchDescriptor, *, guard: Verification | None = None, is_guarded: bool = False
    ) -> SequenceCheck:
        """Checks a client's batch; changes nothing.

        Args:
            batch: as the client sent it.
            guard: of the verification that allows it to open a transaction.
            is_guarded: whether transactions are verified at all.
        """
        if batch.producer_id is None:
            return _IN_SEQUENCE
        entry = self._entries.get(batch.producer_id)
        last_sequence = -1
        if entry is not None:
            if batch.producer_epoch < entry.producer_epoch:
                return _OLD_EPOCH
            if batch.producer_epoch == entry.producer_epoch and entry.batches:
                for retained in reversed(entry.batches):
                    if retained.base_sequence == batch.base_sequence and retained.last_sequence == batch.last_sequence:
                        return DuplicateBatch(
                            base_offset=retained.base_offset,
                            last_offset=retained.last_offset,
                            max_timestamp_ms=retained.max_timestamp_ms,
                        )
                last_sequence = entry.batches[-1].last_sequence
        if batch.is_transactional and is_guarded:
            producer = ProducerIdentity(batch.producer_id, batch.producer_epoch)
            if not self._is_verified(producer, guard):
                return _WRONG_STATE
        if self._verifications and self._is_ahead_of_verified(batch, entry):
            return _OUT_OF_ORDER
        if entry is None:
            return _IN_SEQUENCE
        if batch.base_sequence != (last_sequence + 1) & _SEQUENCE_MASK and not batch.is_control:
            return _OUT_OF_ORDER
        is_outside = entry.transaction_first_offset is not None and not batch.is_transactional
        return _WRONG_STATE if is_outside and not batch.is_control else _IN_SEQUENCE

    def _is_ahead_of_verified(self, batch: BatchDescriptor, entry: ProducerEntry | None) -> bool:
        """Returns whether a batch has overtaken another that waits for the same verification (KAFKA-14561)."""
        verification = None if batch.producer_id is None else self._verifications.get(batch.producer_id)
        if verification is None:
            return False
        is_first = verification.adds_partition and (entry is None or not entry.batches)
        return batch.base_sequence > (0 if is_first else verification.lowest_sequence)

    def check_own(
        self, producer: ProducerIdentity, *, guard: Verification | None = None, is_guarded: bool = False
    ) -> ErrorCode:
        """Checks a transactional batch without sequence numbers, which the leader itself makes for a producer.

        Arguments are as in ``check``.
        """
        entry = self._entries.get(producer.producer_id)
        if entry is not None and producer.producer_epoch < entry.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        is_verified = self._is_verified(producer, guard)
        return ErrorCode.INVALID_TXN_STATE if is_guarded and not is_verified else ErrorCode.NONE

    def _is_verified(self, producer: ProducerIdentity, guard: Verification | None) -> bool:
        if self.is_open(producer):
            return True
        return guard is not None and self._verifications.get(producer.producer_id) is guard

    def is_open(self, producer: ProducerIdentity) -> bool:
        """Returns whether a transaction of this producer epoch has records in this log and no marker."""
        entry = self._entries.get(producer.producer_id)
        return (
            entry is not None
            and entry.transaction_first_offset is not None
            and entry.producer_epoch == producer.producer_epoch
        )

    def verify(
        self, producer: ProducerIdentity, *, sequence: int, adds_partition: bool, now_ms: int
    ) -> Verification | ErrorCode:
        """Begins to verify a producer's transaction, or joins the verification that is under way.

        Returns:
            The guard, INVALID_PRODUCER_EPOCH, or NONE if an open transaction of the epoch makes this unnecessary.
        """
        if self.is_open(producer):
            return ErrorCode.NONE
        producer_id, producer_epoch = producer
        entry = self._entries.get(producer_id)
        if entry is not None and producer_epoch < entry.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = self._verifications[producer_id] = Verification(
                lowest_sequence=sequence,
                producer_epoch=producer_epoch,
                adds_partition=adds_partition,
                started_ms=now_ms,
            )
        elif producer_epoch > verification.producer_epoch:
            verification.producer_epoch, verification.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == verification.producer_epoch:
            verification.lowest_sequence = min(verification.lowest_sequence, sequence)
        return verification

    # --- Markers --------------------------------------------------------------------------------------------------

    def check_marker(self, ended: TransactionEnded, *, raises_epoch: bool) -> ErrorCode:
        """Checks a coordinator's marker; changes nothing.

        Args:
            ended: the marker.
            raises_epoch: a marker has a larger epoch than its transaction's records (transaction version 2). A marker
                with the known epoch is then a repeated one, and is accepted if no transaction is open (KAFKA-19999).
        """
        entry = self._entries.get(ended.producer_id)
        if entry is None:
            return ErrorCode.NONE
        is_of_open = ended.producer_epoch == entry.producer_epoch and entry.transaction_first_offset is not None
        if ended.producer_epoch < entry.producer_epoch or (raises_epoch and is_of_open):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if ended.marker.coordinator_epoch < entry.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    # --- The log --------------------------------------------------------------------------------------------------

    def update(self, batch: BatchDescriptor, *, now_ms: int) -> CompletedTransaction | None:
        """Updates the state by an appended batch; returns the transaction that the batch ended.

        A marker sets the epoch and ends the open transaction. A batch of a new epoch joins the open transaction.
        """
        producer_id = batch.producer_id
        if producer_id is None:
            return None
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(batch.producer_epoch, now_ms=now_ms)
        elif entry.producer_epoch != batch.producer_epoch:
            entry.producer_epoch = batch.producer_epoch
            entry.batches.clear()
        entry.last_update_ms = now_ms
        if batch.is_transactional:
            self._forget_verification(producer_id, batch)
        if batch.marker is not None:
            return self._end(producer_id, entry, batch.last_offset, batch.marker)
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
            if batch.is_transactional and entry.transaction_first_offset is None:
                entry.transaction_first_offset = batch.base_offset
                self._open.first_offsets[producer_id] = batch.base_offset
        return None

    def _end(
        self, producer_id: ProducerId, entry: ProducerEntry, offset: Offset, marker: Marker
    ) -> CompletedTransaction | None:
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.transaction_first_offset = None
        completed = self._open.end(producer_id, offset, marker.result)
        if completed is not None:
            self._uncommitted.append(completed)
            if completed.is_aborted:
                self.aborted.append(completed)
        return completed

    def _forget_verification(self, producer_id: ProducerId, batch: BatchDescriptor) -> None:
        verification = self._verifications.get(producer_id)
        if verification is None:
            return
        # With version 2 that marker ended the transaction before the one that is being verified.
        is_of_former = verification.adds_partition and batch.producer_epoch == verification.producer_epoch
        if batch.marker is None or not is_of_former:
            del self._verifications[producer_id]

    def first_unstable_offset(self, high_watermark: Offset) -> Offset | None:
        """Returns the first offset of the earliest transaction that is open, or whose marker is not committed."""
        if not self._open.first_offsets and not self._uncommitted:
            return None
        while self._uncommitted and self._uncommitted[0].last_offset < high_watermark:
            self._uncommitted.popleft()
        undecided = [completed.first_offset for completed in self._uncommitted]
        earliest = self._open.earliest
        return min(undecided, default=None) if earliest is None else min([earliest, *undecided])

    @property
    def open_transactions(self) -> Mapping[ProducerId, Offset]:
        """First offsets of the open transactions."""
        return self._open.first_offsets

    def has_late_transaction(self, *, now_ms: int, timeout_max_ms: int) -> bool:
        """Returns whether the earliest open transaction's producer is silent beyond the longest timeout (KIP-664)."""
        first_offsets = self._open.first_offsets
        if not first_offsets:
            return False
        entry = self._entries[min(first_offsets, key=first_offsets.__getitem__)]
        return now_ms - entry.last_update_ms > timeout_max_ms + _LATE_AFTER_MS

    def expire(self, *, now_ms: int, expiration_ms: int) -> None:
        """Removes producers and verifications that were idle for ``expiration_ms`` (``producer.id.expiration.ms``).

        A producer with an open transaction is kept.
        """
        idle = [
            key
            for key, entry in self._entries.items()
            if now_ms - entry.last_update_ms >= expiration_ms and entry.transaction_first_offset is None
        ]
        for producer_id in idle:
            del self._entries[producer_id]
        for producer_id, verification in list(self._verifications.items()):
            if now_ms - verification.started_ms >= expiration_ms:
                del self._verifications[producer_id]

    def reload(
        self,
        snapshot: Iterable[inputs.ProducerSnapshotEntry],
        *,
        transactional: Sequence[BatchDescriptor] = (),
        now_ms: int,
    ) -> None:
        """Resets the state to a snapshot; the caller has to ``replay`` the batches after the snapshot.

        Transactions whose markers are not committed do not count as undecided any more, as in Kafka.

        Args:
            snapshot: of producers at an offset of the log.
            transactional: all batches of the log that are part of transactions, from its start on.
            now_ms: the time.
        """
        self._entries.clear()
        self._verifications.clear()
        self._open.first_offsets.clear()
        self._uncommitted.clear()
        self.aborted = index_of(transactional)
        for kept in snapshot:
            entry = self._entries[kept.producer_id] = ProducerEntry(kept.producer_epoch, now_ms=now_ms)
            entry.coordinator_epoch = kept.coordinator_epoch
            if kept.transaction_first_offset is not None:
                entry.transaction_first_offset = kept.transaction_first_offset
                self._open.first_offsets[kept.producer_id] = kept.transaction_first_offset
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

    def replay(self, batches: Iterable[BatchDescriptor], *, now_ms: int) -> None:
        """Updates the state by batches that the log held when loaded, or kept when truncated."""
        aborted, self.aborted = self.aborted, TransactionIndex()
        for batch in batches:
            self.update(batch, now_ms=now_ms)
        self._uncommitted.clear()
        self.aborted = aborted
