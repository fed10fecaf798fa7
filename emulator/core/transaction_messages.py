"""Requests to transaction coordinators, and their requests to leaders; part of ``messages.Request``.

Producers and administrators send requests to the coordinator. Brokers also send requests to each other: a leader has a
transaction verified before it appends the transaction's first batch (KIP-890), and a coordinator has markers written.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.message import Message
from laststand.emulator.core.transaction_records import TransactionState
from laststand.emulator.core.types import LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition

NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)


class TransactionMessage(Message, frozen=True, kw_only=True):
    """Base of all requests of this module."""


class InitTransactionRequest(TransactionMessage, frozen=True, kw_only=True):
    """Begins a session of a transactional producer, and ends the one before (InitProducerId with a transactional id).

    ``producer_id`` and ``producer_epoch`` are given together: the identity that the producer continues (KIP-360).
    """

    transactional_id: str
    timeout_ms: int
    producer_id: ProducerId | None = None
    producer_epoch: ProducerEpoch | None = None


class AddPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions to be added to a producer's transaction; sent by the client or by a partition's leader.

    Attributes:
        transactional_id: of the producer.
        producer_id: likewise.
        producer_epoch: likewise.
        partitions: the partitions to add or verify.
        is_verify_only: only asks whether they are part of the transaction.
        client_version: transaction version of the client; below 2 the client itself adds partitions.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    partitions: tuple[TopicPartition, ...]
    is_verify_only: bool = False
    client_version: int = 0


class AddPartitionsOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of each partition, in its order."""

    errors: tuple[ErrorCode, ...]


class AddPartitionsToTxnRequest(TransactionMessage, frozen=True, kw_only=True):
    """Asks a coordinator about the transactions of one or more producers."""

    transactions: tuple[AddPartitions, ...]


class AddPartitionsToTxnResponse(Message, frozen=True, kw_only=True):
    """Answers in request order; none with an error."""

    error: ErrorCode = ErrorCode.NONE
    transactions: tuple[AddPartitionsOutcome, ...] = ()


class EndTxnRequest(TransactionMessage, frozen=True, kw_only=True):
    """Commits or aborts a transaction (EndTxn); ``client_version`` 2 gives the producer the next epoch (KIP-890)."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    result: TransactionResult
    client_version: int = 0


class InitTransactionResponse(Message, frozen=True, kw_only=True):
    """The identity to produce under."""

    error: ErrorCode
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH


class EndTxnResponse(Message, frozen=True, kw_only=True):
    """The outcome, and the producer's next identity, if it changes."""

    error: ErrorCode
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH


class DescribeTransactionRequest(TransactionMessage, frozen=True, kw_only=True):
    """Asks for a transactional id."""

    transactional_id: str


class DescribeTransactionResponse(Message, frozen=True, kw_only=True):
    """A transactional id; ``state`` is Kafka's name, ``start_ms`` the start of a transaction that has begun."""

    error: ErrorCode
    state: str = ""
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    start_ms: int | None = None
    partitions: tuple[TopicPartition, ...] = ()


class ListTransactionsRequest(TransactionMessage, frozen=True, kw_only=True):
    """Requests all transactional ids that a broker coordinates; the requester filters them."""


class ListedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """A transactional id in a list; ``duration_ms`` since its transaction began."""

    transactional_id: str
    producer_id: ProducerId
    state: str
    duration_ms: int


class ListTransactionsResponse(Message, frozen=True, kw_only=True):
    """The ids, by name."""

    error: ErrorCode
    transactions: tuple[ListedTransaction, ...] = ()


class TransactionMarkers(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one transaction, for partitions that one broker leads.

    Attributes:
        producer_id: of the transaction's producer.
        producer_epoch: of the marker.
        result: of the transaction.
        coordinator_epoch: leader epoch of the coordinator's partition.
        raises_epoch: as in ``producer_state.ProducerStates.check_marker``.
        partitions: the partitions that get the marker.
    """

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    result: TransactionResult
    coordinator_epoch: int
    raises_epoch: bool
    partitions: tuple[TopicPartition, ...]


class WriteTxnMarkersRequest(TransactionMessage, frozen=True, kw_only=True):
    """Asks the leader of partitions to write transaction markers (WriteTxnMarkers)."""

    markers: tuple[TransactionMarkers, ...]


class MarkerOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of each partition of a marker, in its order."""

    errors: tuple[ErrorCode, ...]


class WriteTxnMarkersResponse(Message, frozen=True, kw_only=True):
    """Outcomes in request order."""

    markers: tuple[MarkerOutcome, ...]


class TransactionsOfProducersRequest(TransactionMessage, frozen=True, kw_only=True):
    """A leader asks a coordinator about producers whose transactions are open in its log; not in Kafka.

    Attributes:
        partition: of ``__transaction_state``.
        leader_epoch: of that partition, as the requester knows it.
        producer_ids: producers whose transactions are open.
    """

    partition: int
    leader_epoch: LeaderEpoch
    producer_ids: tuple[ProducerId, ...]


class KnownTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """The last committed state of a producer's transaction; fields as in ``TransactionMetadata``."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    state: TransactionState
    client_version: int


class TransactionsOfProducersResponse(Message, frozen=True, kw_only=True):
    """The transactions of the producers that this partition of ``__transaction_state`` knows; empty with an error."""

    error: ErrorCode
    transactions: tuple[KnownTransaction, ...] = ()


TransactionalIdRequest: TypeAlias = InitTransactionRequest | EndTxnRequest | DescribeTransactionRequest
"""A request about one transactional id, to its coordinator."""

TransactionalIdResponse: TypeAlias = InitTransactionResponse | EndTxnResponse | DescribeTransactionResponse

TransactionRequest: TypeAlias = (
    TransactionalIdRequest
    | ListTransactionsRequest
    | AddPartitionsToTxnRequest
    | WriteTxnMarkersRequest
    | TransactionsOfProducersRequest
)

TransactionResponse: TypeAlias = (
    TransactionalIdResponse
    | ListTransactionsResponse
    | AddPartitionsToTxnResponse
    | WriteTxnMarkersResponse
    | TransactionsOfProducersResponse
)
