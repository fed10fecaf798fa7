r"""A transactional producer: transactions go in, each comes out as ``ok``, ``fail`` or ``info``.

One request is in flight at a time: first a transaction's reads, then its batches in order, each to its partition, then
the position after the records read, and finally EndTxn::

    (new session) -> READY -> [READING ->] SENDING -> [COMMITTING OFFSETS ->] ENDING -> READY
                                  \\________/\
                              abortable error  fatal error -> (new session)

An abortable error turns the transaction into one to be aborted (KIP-98). After a fatal error, the application is
assumed to restart with the same transactional id, which fences the old session. EndTxn is repeated until it is
answered; until then the outcome is unknown. Everything that depends on the transaction version is in
``transaction_manager.py``.

The application may also read for a group outside transactions, and then commit the position with OffsetCommit.
"""

from collections import deque
from collections.abc import Sequence
from itertools import cycle
from typing import Final, assert_never

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client import steps
from laststand.emulator.core.client.group_reading import GroupReading
from laststand.emulator.core.client.network_client import SEEK_COORDINATOR, NetworkClient
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.client.transaction import Consumption, Transaction
from laststand.emulator.core.client.transaction_manager import TransactionManager
from laststand.emulator.core.client.transaction_offsets import OFFSETS_ABORTABLE, TransactionOffsets
from laststand.emulator.core.client.transactional_sender import TransactionalSender
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.group_messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchResponse
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitTransactionResponse,
)
from laststand.emulator.core.types import BrokerId, CorrelationId, TopicPartition

_NOTHING_READ: Final = "NOTHING_READ"


class TransactionalProducer:
    """State machine of one transactional producer.

    Args:
        transactional_id: of the producer.
        name: of the producer in the history; other producers may have the same transactional id.
        settings: of the producer; it is idempotent, and sends one batch at a time.
        bootstrap: brokers to request metadata from.
        topics: the topics that it will write to.
        version: of transactions, 1 or 2.
        encode: encodes a batch.

    Attributes:
        metadata: its view of the cluster.
    """

    def __init__(
        self,
        *,
        transactional_id: str,
        name: str,
        settings: ProducerSettings,
        bootstrap: tuple[BrokerId, ...],
        topics: tuple[str, ...],
        version: int,
        encode: steps.BatchEncoder,
    ) -> None:
        self._transactional_id = transactional_id
        self._name = name
        self._effects: list[steps.TransactionalProducerEffect] = []
        self._network = NetworkClient(
            bootstrap=bootstrap,
            topics=(*topics, TRANSACTIONS_TOPIC, OFFSETS_TOPIC),
            settings=settings,
            emit=self._effects.append,
        )
        self._manager = TransactionManager(
            transactional_id=transactional_id,
            version=version,
            timeout_ms=settings.transaction_timeout_ms,
            network=self._network,
            effects=self._effects,
        )
        self._sender = TransactionalSender(
            manager=self._manager,
            network=self._network,
            settings=settings,
            encode=encode,
            effects=self._effects,
        )
        self._offsets = TransactionOffsets(manager=self._manager, network=self._network, effects=self._effects)
        self.metadata = self._network.metadata
        self._offered: deque[steps.TransactionOffered | steps.ConsumptionOffered] = deque()
        self._current: Transaction | Consumption | None = None
        self._next_record_id = 0
        self._is_abandoned = False

    @property
    def unfinished(self) -> int:
        """Number of offered transactions and consumptions that are not over."""
        return len(self._offered) + (self._current is not None)

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None``."""
        return self._network.timers.earliest_ms

    def step(
        self, incoming: steps.TransactionalProducerInput, *, now_ms: int
    ) -> list[steps.TransactionalProducerEffect]:
        """Handles one input; returns the effects, in order."""
        match incoming:
            case inputs.Started():
                self._network.want_metadata(now_ms)
            case steps.TransactionOffered() | steps.ConsumptionOffered():
                self._offered.append(incoming)
            case inputs.ResponseReceived():
                self._answered(incoming, now_ms)
            case steps.RecordsReceived(correlation_id=correlation_id):
                self._network.answered(correlation_id)
                self._read(self._reading.fetched(incoming), now_ms)
            case inputs.RequestFailed(correlation_id=correlation_id, failure=failure):
                self._unanswered(correlation_id, failure.name, now_ms)
            case inputs.TimerFired():
                self._network.timer_fired(now_ms)
            case steps.Abandoned():
                self._abandon()
            case _:
                assert_never(incoming)
        self._pump(now_ms)
        effects = self._effects.copy()
        self._effects.clear()
        return effects

    # --- What is next ---------------------------------------------------------------------------------------------

    def _pump(self, now_ms: int) -> None:
        """Sends the next request, unless one is in flight or a backoff runs."""
        if self._is_abandoned or self._network.is_busy:
            return
        if self._sender.is_overdue(now_ms):
            self._sender.give_up(self._transaction, "DELIVERY_TIMED_OUT")
        if self._network.backs_off(now_ms):
            return
        while not self._manager.needs_session:
            if self._current is None and self._offered:
                self._begin(self._offered.popleft())
            if self._current is None or self._asked_anything(self._current, now_ms):
                return
        self._manager.ask_for_session(now_ms)

    def _asked_anything(self, current: Transaction | Consumption, now_ms: int) -> bool:
        """Sends the operation's next request; returns false if the operation ended without one."""
        if current.reading is not None and not current.reading.is_over:
            self._offsets.read(current.reading, current.operation_id, now_ms)
            return True
        if isinstance(current, Transaction):
            return self._continued(current, now_ms)
        if not current.reading.batches:
            self._current = None
            return False
        self._offsets.commit(current, current.reading, now_ms)
        return True

    def _continued(self, transaction: Transaction, now_ms: int) -> bool:
        if not self._sender.is_under_way and transaction.unsent and transaction.error is None:
            self._sender.take(transaction, now_ms)
        if self._sender.is_under_way:
            self._sender.send(transaction, now_ms)
        elif (reading := transaction.offsets_to_commit) is not None:
            self._offsets.commit(transaction, reading, now_ms)
        elif transaction.has_begun:
            self._manager.ask_for_end(transaction, now_ms)
        else:
            self._finish(OperationType.FAIL)
            return False
        return True

    def _begin(self, offered: steps.TransactionOffered | steps.ConsumptionOffered) -> None:
        if isinstance(offered, steps.ConsumptionOffered):
            self._current = Consumption(offered)
            return
        self._current = Transaction(offered)
        if offered.source is None:
            self._fill(self._current, [offered.records] * len(offered.partitions))
        self._manager.transaction_begins()
        self._record(OperationType.INVOKE, self._current)

    def _fill(self, transaction: Transaction, counts: Sequence[int]) -> None:
        """Adds a batch for each count of records to the transaction, for its partitions in turn."""
        for count, partition in zip(counts, cycle(transaction.destinations), strict=False):
            first = self._next_record_id
            self._next_record_id += count
            transaction.unsent.append(
                steps.RecordsOffered(
                    cause_id=steps.operation_id(self._name, first),
                    partition=partition,
                    first_record_id=first,
                    record_count=count,
                )
            )

    # --- Answers --------------------------------------------------------------------------------------------------

    def _answered(self, incoming: inputs.ResponseReceived, now_ms: int) -> None:
        request = self._network.answered(incoming.correlation_id)
        match incoming.response:
            case messages.MetadataResponse() as response:
                self._network.learn(response, now_ms)
            case InitTransactionResponse() as response:
                self._manager.session_answered(response, now_ms)
            case AddPartitionsToTxnResponse(error=error, transactions=transactions) if isinstance(
                request, AddPartitionsToTxnRequest
            ):
                self._added(request.transactions[0].partitions, error or transactions[0].errors[0], now_ms)
            case OffsetFetchResponse() as response:
                self._read(self._reading.positioned(response), now_ms)
            case messages.ListOffsetsResponse(partitions=partitions):
                self._read(self._reading.listed(partitions[0]), now_ms)
            case OffsetCommitResponse(errors=errors):
                self._committed(errors[0], now_ms)
            case messages.ProduceResponse(partitions=partitions):
                fatal = self._sender.answered(self._transaction, partitions[0], now_ms)
                if fatal is not None:
                    self._fail(fatal.name)
            case EndTxnResponse() as response if isinstance(request, EndTxnRequest):
                self._ended(response, now_ms)
            case other:
                raise InvariantError(f"a transactional producer was answered {other!r}")

    def _added(self, partitions: tuple[TopicPartition, ...], error: ErrorCode, now_ms: int) -> None:
        if error is ErrorCode.NONE:
            self._transaction.partitions.update(partitions)
        elif self._network.asks_again(error, now_ms):
            pass
        elif error is ErrorCode.TRANSACTION_ABORTABLE:
            self._sender.give_up(self._transaction, error.name)
        else:
            self._fail(error.name)

    def _read(self, error: ErrorCode, now_ms: int) -> None:
        """Continues after the answer to a read; after the last one, plans the transaction's batches."""
        if error is not ErrorCode.NONE:
            self._network.retry(now_ms, wants_metadata=True)
            return
        current, reading = self._operation, self._reading
        if not reading.is_over:
            return
        self._effects.append(reading.recorded(current.operation_id))
        if isinstance(current, Transaction):
            current.error = None if reading.batches else _NOTHING_READ
            self._fill(current, [batch.record_count for batch in reading.batches])

    def _committed(self, error: ErrorCode, now_ms: int) -> None:
        """Continues after the answer to a commit of a position."""
        current = self._operation
        if not self._offsets.is_settled(current, error, now_ms):
            return
        if isinstance(current, Consumption):
            self._current = None
        elif error is ErrorCode.NONE:
            current.has_committed_offsets = True
        elif error in OFFSETS_ABORTABLE:
            current.abort(error.name)
        else:
            self._fail(error.name)

    def _ended(self, response: EndTxnResponse, now_ms: int) -> None:
        transaction, error = self._transaction, response.error
        is_commit = transaction.result is TransactionResult.COMMIT
        if error is ErrorCode.NONE:
            self._manager.transaction_ended(transaction, response)
            self._finish(OperationType.OK)
        elif self._network.asks_again(error, now_ms):
            transaction.may_be_committed |= is_commit and error in SEEK_COORDINATOR
        elif error is ErrorCode.TRANSACTION_ABORTABLE and is_commit:
            transaction.abort(error.name)
        else:
            self._fail(error.name)

    def _unanswered(self, correlation_id: CorrelationId, failure: str, now_ms: int) -> None:
        request = self._network.unanswered(correlation_id, now_ms)
        if isinstance(request, messages.MetadataRequest):
            return
        self._network.retry(now_ms, wants_metadata=True)
        match request:
            case messages.ProduceRequest():
                self._sender.unanswered(failure)
            case EndTxnRequest(result=TransactionResult.COMMIT):
                self._transaction.may_be_committed = True
            case OffsetCommitRequest() if isinstance(self._current, Consumption):
                self._current.may_be_committed = True
            case _:
                pass

    # --- Endings --------------------------------------------------------------------------------------------------

    @property
    def _transaction(self) -> Transaction:
        if not isinstance(self._current, Transaction):
            raise InvariantError("no transaction is under way")
        return self._current

    @property
    def _operation(self) -> Transaction | Consumption:
        if self._current is None:
            raise InvariantError("nothing is under way")
        return self._current

    @property
    def _reading(self) -> GroupReading:
        if self._operation.reading is None:
            raise InvariantError("nothing is read")
        return self._operation.reading

    def _fail(self, error: str) -> None:
        """Ends the transaction after a fatal error: the next session aborts it, if it is still open."""
        self._sender.end(error)
        transaction = self._transaction
        transaction.error = error
        self._manager.fenced()
        self._finish(OperationType.INFO if transaction.may_be_committed else OperationType.FAIL)

    def _abandon(self) -> None:
        self._is_abandoned = True
        self._offered.clear()
        if not isinstance(self._current, Transaction):
            self._abandon_consumption()
            return
        if self._network.has_asked(messages.ProduceRequest):
            self._sender.unanswered("UNANSWERED")
        self._sender.end("ABANDONED")
        self._current.error = self._current.error or "ABANDONED"
        is_asked = self._network.has_asked(EndTxnRequest)
        is_open = self._current.may_be_committed or (is_asked and self._current.result is TransactionResult.COMMIT)
        self._finish(OperationType.INFO if is_open else OperationType.FAIL)

    def _abandon_consumption(self) -> None:
        is_asked = self._network.has_asked(OffsetCommitRequest)
        if isinstance(self._current, Consumption) and (is_asked or self._current.may_be_committed):
            self._offsets.record(self._current, OperationType.INFO, "ABANDONED")
        self._current = None

    def _finish(self, type_: OperationType) -> None:
        self._record(type_, self._transaction)
        self._current = None

    def _record(self, type_: OperationType, transaction: Transaction) -> None:
        self._effects.append(
            steps.TransactionRecorded(
                type=type_,
                operation_id=transaction.operation_id,
                transactional_id=self._transactional_id,
                result=transaction.result,
                sends=tuple(transaction.sends),
                error=transaction.error,
            )
        )
