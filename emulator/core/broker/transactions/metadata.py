"""Transitions of a transactional id, as pure functions (Kafka's ``TransactionMetadata``, ``TransactionState``).

Each returns the metadata to be written. It takes effect once its record is committed; until then the id is ``pending``.
"""

from typing import Final

from msgspec.structs import replace

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.transaction_records import NO_EPOCH, TransactionMetadata, TransactionState
from laststand.emulator.core.types import ProducerEpoch, ProducerId, TopicPartition

_EPOCH_MAX: Final = 2**15 - 1

NEXT_STATES: Final = {
    TransactionState.EMPTY: (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_ABORT,
        TransactionState.DEAD,
    ),
    TransactionState.ONGOING: (
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
        TransactionState.PREPARE_EPOCH_FENCE,
    ),
    TransactionState.PREPARE_COMMIT: (TransactionState.COMPLETE_COMMIT,),
    TransactionState.PREPARE_ABORT: (TransactionState.COMPLETE_ABORT,),
    TransactionState.COMPLETE_COMMIT: (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_ABORT,
        TransactionState.DEAD,
    ),
    TransactionState.COMPLETE_ABORT: (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_ABORT,
        TransactionState.DEAD,
    ),
    TransactionState.DEAD: (),
    TransactionState.PREPARE_EPOCH_FENCE: (TransactionState.PREPARE_ABORT,),
}

RESTING: Final = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""States without a transaction; from them an id may begin one, or expire."""

PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""States of a transaction that is decided, and whose markers are being written."""

_PREPARED_BY: Final = {
    TransactionResult.COMMIT: TransactionState.PREPARE_COMMIT,
    TransactionResult.ABORT: TransactionState.PREPARE_ABORT,
}
COMPLETED: Final = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


class TransitionError(ValueError):
    """The state of the transactional id does not allow the transition."""


def _check(metadata: TransactionMetadata, state: TransactionState) -> None:
    if state not in NEXT_STATES[metadata.state]:
        raise TransitionError(f"{metadata.state.name} is not followed by {state.name}")


def is_exhausted(producer_epoch: ProducerEpoch) -> bool:
    """Returns whether a producer id needs a successor: the last epoch is for fencing alone."""
    return producer_epoch >= _EPOCH_MAX - 1


def next_epoch(
    metadata: TransactionMetadata, *, timeout_ms: int, expected: ProducerEpoch | None, now_ms: int
) -> TransactionMetadata | ErrorCode:
    """Begins a session with the next epoch; PRODUCER_FENCED if the requester's epoch is old (KIP-360).

    Args:
        metadata: of an id without an open transaction.
        timeout_ms: of the new session.
        expected: the producer's epoch, if the request names one; the last but one is that of a retry.
        now_ms: the time.

    Raises:
        TransitionError: the id has an open transaction.
    """
    _check(metadata, TransactionState.EMPTY)
    epoch, last = ProducerEpoch(metadata.producer_epoch + 1), metadata.producer_epoch
    if expected is None:
        return _rested(metadata, metadata.producer_id, epoch, None, timeout_ms=timeout_ms, now_ms=now_ms)
    if expected == metadata.last_producer_epoch and expected != metadata.producer_epoch:
        epoch, last = metadata.producer_epoch, expected
    elif expected != metadata.producer_epoch and metadata.producer_epoch != NO_EPOCH:
        return ErrorCode.PRODUCER_FENCED
    return _rested(metadata, metadata.producer_id, epoch, last, timeout_ms=timeout_ms, now_ms=now_ms)


def next_producer(
    metadata: TransactionMetadata, producer_id: ProducerId, *, timeout_ms: int, is_expected: bool, now_ms: int
) -> TransactionMetadata:
    """Begins a session with a new producer id, as the epochs of the old id are exhausted.

    Raises:
        TransitionError: the id has an open transaction.
    """
    _check(metadata, TransactionState.EMPTY)
    last = metadata.producer_epoch if is_expected else None
    return _rested(metadata, producer_id, ProducerEpoch(0), last, timeout_ms=timeout_ms, now_ms=now_ms)


def _rested(
    metadata: TransactionMetadata,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    last_producer_epoch: ProducerEpoch | None,
    *,
    timeout_ms: int,
    now_ms: int,
) -> TransactionMetadata:
    return replace(
        metadata,
        producer_id=producer_id,
        previous_producer_id=metadata.producer_id,
        producer_epoch=producer_epoch,
        last_producer_epoch=last_producer_epoch,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        start_ms=None,
        update_ms=now_ms,
    )


def with_partitions(
    metadata: TransactionMetadata, partitions: frozenset[TopicPartition], *, client_version: int, now_ms: int
) -> TransactionMetadata:
    """Adds partitions to the transaction; the first ones begin it.

    Raises:
        TransitionError: the transaction is decided.
    """
    _check(metadata, TransactionState.ONGOING)
    return replace(
        metadata,
        state=TransactionState.ONGOING,
        previous_producer_id=metadata.producer_id,
        partitions=metadata.partitions | partitions,
        start_ms=now_ms if metadata.state in RESTING else metadata.start_ms,
        update_ms=now_ms,
        client_version=client_version,
    )


def fenced(metadata: TransactionMetadata, *, has_failed: bool, now_ms: int) -> TransactionMetadata:
    """Fences the producer of an ongoing transaction; with ``has_failed``, an earlier attempt has raised its epoch.

    Raises:
        TransitionError: there is no ongoing transaction, or no epoch left (KAFKA-20090).
    """
    _check(metadata, TransactionState.PREPARE_EPOCH_FENCE)
    if metadata.producer_epoch == _EPOCH_MAX:
        raise TransitionError("no epoch is left")
    epoch = metadata.producer_epoch if has_failed else ProducerEpoch(metadata.producer_epoch + 1)
    return replace(
        metadata,
        state=TransactionState.PREPARE_EPOCH_FENCE,
        producer_epoch=epoch,
        last_producer_epoch=None,
        update_ms=now_ms,
    )


def prepared(
    metadata: TransactionMetadata,
    result: TransactionResult,
    *,
    raises_epoch: bool,
    next_producer_id: ProducerId | None = None,
    now_ms: int,
) -> TransactionMetadata:
    """Decides a transaction.

    Args:
        metadata: of an ongoing transaction; an id without one can be aborted, too.
        result: commit or abort.
        raises_epoch: the markers, and the producer afterwards, have the next epoch (transaction version 2, KIP-890).
        next_producer_id: the producer's new id, if the epochs of the old id are exhausted.
        now_ms: the time.

    Raises:
        TransitionError: there is nothing to decide.
    """
    state = _PREPARED_BY[result]
    _check(metadata, state)
    if raises_epoch and metadata.producer_epoch == _EPOCH_MAX:
        raise TransitionError("no epoch is left")
    has_begun = metadata.state not in RESTING or not raises_epoch
    return replace(
        metadata,
        state=state,
        previous_producer_id=metadata.producer_id,
        next_producer_id=next_producer_id,
        producer_epoch=ProducerEpoch(metadata.producer_epoch + 1) if raises_epoch else metadata.producer_epoch,
        last_producer_epoch=metadata.producer_epoch if raises_epoch else metadata.last_producer_epoch,
        start_ms=metadata.start_ms if has_begun else now_ms,
        update_ms=now_ms,
        client_version=2 if raises_epoch else 0,
    )


def aborted(
    metadata: TransactionMetadata, *, raises_epoch: bool, has_failed: bool = False, now_ms: int
) -> TransactionMetadata:
    """Decides to abort an ongoing transaction without its producer's request; the next epoch fences the producer.

    Args:
        metadata: of the transaction.
        raises_epoch: as in ``prepared``; if false, the epoch is raised to fence the producer.
        has_failed: as in ``fenced``.
        now_ms: the time.

    Raises:
        TransitionError: there is no ongoing transaction, or no epoch left.
    """
    fence = fenced(metadata, has_failed=has_failed, now_ms=now_ms)
    before = metadata
    if not raises_epoch:
        before = replace(metadata, producer_epoch=fence.producer_epoch, last_producer_epoch=fence.last_producer_epoch)
    return prepared(before, TransactionResult.ABORT, raises_epoch=raises_epoch, now_ms=now_ms)


def completed(metadata: TransactionMetadata, *, now_ms: int) -> TransactionMetadata:
    """Ends a transaction whose markers are written.

    Raises:
        TransitionError: the transaction is not decided.
    """
    state = COMPLETED.get(metadata.state)
    if state is None:
        raise TransitionError(f"{metadata.state.name} has no end")
    is_succeeded = metadata.client_version == 2 and metadata.next_producer_id is not None
    return replace(
        metadata,
        state=state,
        producer_id=metadata.next_producer_id if is_succeeded else metadata.producer_id,
        producer_epoch=ProducerEpoch(0) if is_succeeded else metadata.producer_epoch,
        previous_producer_id=metadata.producer_id,
        next_producer_id=None,
        partitions=frozenset(),
        update_ms=now_ms,
    )


def expired(metadata: TransactionMetadata) -> TransactionMetadata:
    """Removes an id without a transaction.

    Raises:
        TransitionError: the id has a transaction.
    """
    _check(metadata, TransactionState.DEAD)
    return replace(metadata, state=TransactionState.DEAD, partitions=frozenset())
