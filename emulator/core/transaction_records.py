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
        """The state's name in Kafka's responses, such as ``PrepareCommit``."""
        return self.name.title().replace("_", "")


class TransactionMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id (Kafka's ``TransactionMetadata``, ``TransactionLogKey`` and ``TransactionLogValue``).

    Attributes:
        transactional_id: of the producer.
        producer_id: the producer's id.
        producer_epoch: the producer's epoch, or in PREPARE_* that of the markers; -1 before the first is written.
        timeout_ms: longest time of a transaction.
        state: of the transaction.
        partitions: partitions of the transaction; once it is decided, those without their markers yet.
        start_ms: when the transaction began.
        update_ms: time of the last transition.
        client_version: transaction version of the client's last request that changed the state; 0 for all below 2.
        previous_producer_id: the id before the last transition; not in the log.
        next_producer_id: the producer's id after this transaction; not in the log.
        last_producer_epoch: the producer's previous epoch; not in the log.
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
    """A transaction marker in any log; a batch of its own."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    marker: Marker


class SessionsEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id's producer id is retired: its producers are refused, and the next session gets a new id.

    Kafka does not know this record (type 704), and skips it.
    """

    transactional_id: str
    producer_id: ProducerId


class TransactionRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id is forgotten (a tombstone)."""

    transactional_id: str
