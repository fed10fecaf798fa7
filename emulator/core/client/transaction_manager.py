"""Requests to a transactional id's coordinator: InitProducerId, AddPartitionsToTxn and EndTxn.

A producer's ``TransactionManager``. A session begins with InitProducerId, which fences earlier sessions. With
transaction version 1 the producer itself adds partitions to its transaction, and requests another epoch after an
abortable error (KIP-360). With version 2 the partitions' leaders add them, and each EndTxn response has the next epoch
(KIP-890).
"""

from typing import TypeAlias

from laststand.emulator.core.client.network_client import NetworkClient
from laststand.emulator.core.client.steps import SessionRecorded, TransactionalProducerEffect
from laststand.emulator.core.client.transaction import Transaction
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    AddPartitions,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    EndTxnResponse,
    InitTransactionRequest,
    InitTransactionResponse,
)
from laststand.emulator.core.types import CauseId, ProducerIdentity, TopicPartition

_ToCoordinator: TypeAlias = InitTransactionRequest | AddPartitionsToTxnRequest | EndTxnRequest


class TransactionManager:
    """The session of one transactional id.

    Args:
        transactional_id: of the producer.
        version: of transactions, 1 or 2.
        timeout_ms: time after which the coordinator aborts a transaction.
        network: sends requests.
        effects: the step's effects, to which session records are appended.

    Attributes:
        transactional_id: of the producer.
        version: of transactions, 1 or 2.
        sequences: the next sequence number of each partition, if not 0.
        needs_session: the next request is InitProducerId.
    """

    def __init__(
        self,
        *,
        transactional_id: str,
        version: int,
        timeout_ms: int,
        network: NetworkClient,
        effects: list[TransactionalProducerEffect],
    ) -> None:
        self.transactional_id = transactional_id
        self.version = version
        self.sequences: dict[TopicPartition, int] = {}
        self.needs_session = True
        self._timeout_ms = timeout_ms
        self._network = network
        self._effects = effects
        self._identity: ProducerIdentity | None = None

    @property
    def identity(self) -> ProducerIdentity:
        """The producer id and epoch of the current session; only valid once it has begun."""
        assert self._identity is not None, "a session has begun"
        return self._identity

    # --- Requests -------------------------------------------------------------------------------------------------

    def ask_for_session(self, now_ms: int) -> None:
        """Sends InitProducerId; with the current producer id, if there is one, to get its next epoch."""
        identity = self._identity
        request = InitTransactionRequest(
            transactional_id=self.transactional_id,
            timeout_ms=self._timeout_ms,
            producer_id=None if identity is None else identity.producer_id,
            producer_epoch=None if identity is None else identity.producer_epoch,
        )
        self._ask(request, CauseId(self.transactional_id), now_ms)

    def has_to_add(self, transaction: Transaction, partition: TopicPartition, now_ms: int) -> bool:
        """Sends AddPartitionsToTxn if the producer has to add the partition itself; returns whether it has to."""
        if self.version == 2 or partition in transaction.partitions:
            return False
        transaction.has_begun = True
        asked = AddPartitions(
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            partitions=(partition,),
        )
        self._ask(AddPartitionsToTxnRequest(transactions=(asked,)), transaction.operation_id, now_ms)
        return True

    def ask_for_end(self, transaction: Transaction, now_ms: int) -> None:
        """Sends EndTxn, with the transaction's current result."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            result=transaction.result,
            client_version=2 if self.version == 2 else 0,
        )
        self._ask(request, transaction.operation_id, now_ms)

    def _ask(self, request: _ToCoordinator, cause_id: CauseId, now_ms: int) -> None:
        partition = self._network.coordinating(self.transactional_id, TRANSACTIONS_TOPIC)
        self._network.ask_coordinator(partition, request, cause_id, now_ms)

    # --- Sessions -------------------------------------------------------------------------------------------------

    def session_answered(self, response: InitTransactionResponse, now_ms: int) -> None:
        """Begins the session, or waits and retries; after a fatal error, the retry is without the old producer id."""
        if self._network.asks_again(response.error, now_ms):
            return
        if response.error is not ErrorCode.NONE:
            self._identity = None
            self._network.retry(now_ms)
            return
        self._identity = ProducerIdentity(response.producer_id, response.producer_epoch)
        self.needs_session = False
        self.sequences.clear()
        self._effects.append(
            SessionRecorded(
                transactional_id=self.transactional_id,
                producer_id=response.producer_id,
                producer_epoch=response.producer_epoch,
            )
        )

    def transaction_begins(self) -> None:
        """Restarts sequences at 0 if each transaction has an epoch of its own (version 2)."""
        if self.version == 2:
            self.sequences.clear()

    def transaction_ended(self, transaction: Transaction, response: EndTxnResponse) -> None:
        """Adopts the epoch in an EndTxn response; if it has none, and an error caused an abort, requests a session."""
        if response.producer_id >= 0:
            self._identity = ProducerIdentity(response.producer_id, response.producer_epoch)
        elif transaction.error is not None:
            self.needs_session = True  # with another epoch, whatever of it is still under way (KIP-360)

    def fenced(self) -> None:
        """Makes the next InitProducerId carry no producer id, as if the application had restarted."""
        self._identity = None
        self.needs_session = True
