"""Records of ``__transaction_state`` as values: what the coordinators of transactions write, and load again."""

from enum import IntEnum

import msgspec

from laststand.emulator.core.batch import Marker
from laststand.emulator.core.types import ProducerEpoch, ProducerId, TopicPartition

NO_EPOCH = ProducerEpoch(-1)
"""Epoch of a producer id that no producer was given yet."""


class TransactionState(IntEnum):
    """The state of a transactional id; values as on disk. The last two are never written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Its name in answers of Kafka, such as ``PrepareCommit``."""
        return self.name.title().replace("_", "")


class TransactionMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id (Kafka's ``TransactionMetadata``, ``TransactionLogKey`` and ``TransactionLogValue``).

    Attributes:
        transactional_id: of the producer.
        producer_id: that its producer has.
        producer_epoch: that its producer has, or in PREPARE_* that of the markers; -1 before the first is written.
        timeout_ms: longest time of a transaction.
        state: of the transaction.
        partitions: that take part, or that have not got their markers yet.
        start_ms: when the transaction began.
        update_ms: of the last transition.
        client_version: transaction version of the client's last request that changed it; 0 for all below 2.
        previous_producer_id: the id before the last transition; not in the log.
        next_producer_id: that the producer goes on with after this transaction; not in the log.
        last_producer_epoch: the epoch before the last one was given out; not in the log.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int | None = None
    update_ms: int
    client_version: int = 0
    previous_producer_id: ProducerId | None = None
    next_producer_id: ProducerId | None = None
    last_producer_epoch: ProducerEpoch | None = None


class TransactionEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A marker, in whichever log; it is a batch of its own."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    marker: Marker


class SessionsEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody who has this producer id of a transactional id is served any more; the next session gets another.

    Kafka knows no such record (type 704), and passes over it.
    """

    transactional_id: str
    producer_id: ProducerId


class TransactionRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id is forgotten (a tombstone)."""

    transactional_id: str
