"""Encodes and sends a transaction's current batch, until a final answer or a failure ends it.

A producer's ``Sender``, for one batch at a time.
"""

from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.client.network_client import NetworkClient
from laststand.emulator.core.client.outcomes import Verdict, judge
from laststand.emulator.core.client.producer_queue import Flight, PendingBatch
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.client.steps import BatchContent, BatchEncoder, TransactionalProducerEffect
from laststand.emulator.core.client.transaction import Transaction
from laststand.emulator.core.client.transaction_manager import TransactionManager
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import Acks, Offset

_DELIVERY: Final = "delivery"

_PRODUCED_AGAIN: Final = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS})
_ABORTABLE: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)
"""Answers to records after which their transaction can only be aborted."""


class TransactionalSender:
    """Sends the batches of transactions, one at a time.

    Args:
        manager: has the session and sequence numbers for batches.
        network: sends requests.
        settings: of the producer.
        encode: encodes a batch.
        effects: the step's effects, to which records of sends are appended.
    """

    def __init__(
        self,
        *,
        manager: TransactionManager,
        network: NetworkClient,
        settings: ProducerSettings,
        encode: BatchEncoder,
        effects: list[TransactionalProducerEffect],
    ) -> None:
        self._manager = manager
        self._network = network
        self._settings = settings
        self._encode = encode
        self._effects = effects
        self._batch: PendingBatch | None = None
        self._flight: Flight | None = None

    @property
    def is_under_way(self) -> bool:
        """The current batch is not finished."""
        return self._batch is not None

    def is_overdue(self, now_ms: int) -> bool:
        """Returns whether the batch was not delivered within ``delivery.timeout.ms``."""
        return self._batch is not None and self._batch.deadline_ms <= now_ms

    def take(self, transaction: Transaction, now_ms: int) -> None:
        """Takes the next batch of a transaction."""
        offered = transaction.unsent.popleft()
        self._batch = PendingBatch(offered, deadline_ms=now_ms + self._settings.delivery_timeout_ms)
        transaction.sends.append(offered.cause_id)
        self._network.timers.set(_DELIVERY, at_ms=self._batch.deadline_ms)
        self._effects.append(self._batch.recorded(OperationType.INVOKE, self._network.metadata))

    def send(self, transaction: Transaction, now_ms: int) -> None:
        """Sends the batch, once its partition is added to the transaction and has a leader."""
        batch = self._pending
        if self._manager.has_to_add(transaction, batch.partition, now_ms):
            return
        found = self._network.known_leader(batch.partition, now_ms)
        if found is None:
            return
        leader, leadership = found
        if batch.descriptor is None:
            batch.base_sequence = self._manager.sequences.get(batch.partition, 0)
            batch.descriptor = self._encode(
                BatchContent(
                    partition=batch.partition,
                    first_record_id=batch.first_record_id,
                    record_count=batch.record_count,
                    producer_id=self._manager.identity.producer_id,
                    producer_epoch=self._manager.identity.producer_epoch,
                    base_sequence=batch.base_sequence,
                    is_transactional=True,
                )
            )
        transaction.has_begun = True
        self._flight = batch.fly(leader, leadership)
        request = messages.ProduceRequest(
            acks=Acks.ALL,
            timeout_ms=self._settings.request_timeout_ms,
            partitions=(self._flight.content,),
            transactional_id=self._manager.transactional_id,
            transaction_version=self._manager.version,
            knows_abortable=self._manager.version == 2,
        )
        self._network.send(leader, request, batch.operation_id)

    def answered(
        self, transaction: Transaction, answer: messages.ProducePartitionResponse, now_ms: int
    ) -> ErrorCode | None:
        """Handles the answer: finishes or fails the batch, or waits for a retry; returns a fatal error, if any."""
        batch, flight, error = self._pending, self._flight, answer.error
        assert flight is not None, "it was sent"
        flight.answered(error)
        if error is ErrorCode.NONE:
            self._manager.sequences[batch.partition] = (flight.descriptor.last_sequence + 1) & 0x7FFFFFFF
            self._finish(OperationType.OK, base_offset=answer.base_offset)
        elif error in _ABORTABLE:
            self.give_up(transaction, error.name)
        elif error in _PRODUCED_AGAIN or judge(error) in (Verdict.RETRY, Verdict.RETRY_ELSEWHERE):
            self._network.retry(now_ms, wants_metadata=judge(error) is Verdict.RETRY_ELSEWHERE)
        else:
            return error
        return None

    def unanswered(self, outcome: str) -> None:
        """Records on the batch that its request got no answer."""
        if self._batch is not None and self._flight is not None:
            self._flight.unanswered(outcome)

    def give_up(self, transaction: Transaction, error: str) -> None:
        """Fails the batch, and turns its transaction into one to be aborted."""
        self.end(error)
        transaction.abort(error)

    def end(self, error: str) -> None:
        """Ends the current batch, if there is one, as its transaction ends."""
        if self._batch is not None:
            self._finish(self._batch.given_up, error=error)

    @property
    def _pending(self) -> PendingBatch:
        assert self._batch is not None, "its batch is under way"
        return self._batch

    def _finish(self, type_: OperationType, *, base_offset: Offset | None = None, error: str | None = None) -> None:
        recorded = self._pending.recorded(type_, self._network.metadata, base_offset=base_offset, error=error)
        self._effects.append(recorded)
        self._batch = self._flight = None
        self._network.timers.cancel(_DELIVERY)
