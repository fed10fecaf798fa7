"""Requests to the coordinator of a transactional id: for a producer id and epoch, for partitions to be added, for ends.

A producer's ``TransactionManager``. A session begins with InitProducerId, which fences what went before. With
transaction version 1 the producer itself adds partitions to its transaction, and asks for another epoch after an
abortable error (KIP-360); with version 2 leaders add them, and each end brings the next epoch (KIP-890).
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
        timeout_ms: after which the coordinator aborts a transaction.
        network: sends requests.
        effects: those of a step, to which sessions are added.

    Attributes:
        transactional_id: of the producer.
        version: of transactions, 1 or 2.
        sequences: the next one of each partition, where it is not 0.
        needs_session: InitProducerId comes next.
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
        """The producer id and epoch of the session, which has begun."""
        assert self._identity is not None, "a session has begun"
        return self._identity

    # --- Requests -------------------------------------------------------------------------------------------------

    def ask_for_session(self, now_ms: int) -> None:
        """Sends InitProducerId; if there is an identity, for its next epoch."""
        identity = self._identity
        request = InitTransactionRequest(
            transactional_id=self.transactional_id,
            timeout_ms=self._timeout_ms,
            producer_id=None if identity is None else identity.producer_id,
            producer_epoch=None if identity is None else identity.producer_epoch,
        )
        self._ask(request, CauseId(self.transactional_id), now_ms)

    def has_to_add(self, transaction: Transaction, partition: TopicPartition, now_ms: int) -> bool:
        """Has a partition added to a transaction, where the producer does that itself; returns whether it was asked."""
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
        """Sends EndTxn, with the result that is wanted by now."""
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
        """Begins the session, or waits to ask for it again; after a final error without the identity it had."""
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
        """Starts sequences again where the transaction has an epoch of its own."""
        if self.version == 2:
            self.sequences.clear()

    def transaction_ended(self, transaction: Transaction, response: EndTxnResponse) -> None:
        """Takes over the epoch that an end brought; without one, a session is needed if an error aborted it."""
        if response.producer_id >= 0:
            self._identity = ProducerIdentity(response.producer_id, response.producer_epoch)
        elif transaction.error is not None:
            self.needs_session = True  # with another epoch, whatever of it is still under way (KIP-360)

    def fenced(self) -> None:
        """Has the next session asked for as by an application that starts: without an identity."""
        self._identity = None
        self.needs_session = True
