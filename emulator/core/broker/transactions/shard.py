"""The coordinator of the transactional ids of one partition, in one leader epoch (Kafka's ``TransactionCoordinator``).

A request leads to a transition, whose record is appended. Once the record is committed, the transition takes effect and
the request is answered. Until then the id is pending, and most other requests get CONCURRENT_TRANSACTIONS. After a
decision is committed, its markers are written, by a new coordinator if need be; the id stays pending until then.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias, assert_never

from msgspec.structs import replace

from laststand.emulator.core import events
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.broker.coordination.caller import Answerable
from laststand.emulator.core.broker.coordination.coordinator_log import CoordinatorLog, Done
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.producer_id_blocks import Allocated
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions import metadata as transitions
from laststand.emulator.core.coordinator_records import EncodeRecords, LoadedRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.timers import TimerQueue, earliest_of
from laststand.emulator.core.transaction_messages import (
    AddPartitions,
    AddPartitionsOutcome,
    DescribeTransactionRequest,
    DescribeTransactionResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitTransactionRequest,
    InitTransactionResponse,
    KnownTransaction,
    ListedTransaction,
    TransactionalIdRequest,
    TransactionalIdResponse,
)
from laststand.emulator.core.transaction_records import (
    NO_EPOCH,
    SessionsEnded,
    TransactionMetadata,
    TransactionRemoved,
    TransactionState,
)
from laststand.emulator.core.types import (
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    TopicPartition,
)

TIMEOUT_CHECK_MS: Final = 10_000
"""Interval of the search for transactions that take too long
(``transaction.abort.timed.out.transaction.cleanup.interval.ms``)."""

EXPIRATION_CHECK_MS: Final = 3_600_000
"""Interval of the search for unused ids (``transaction.remove.expired.transaction.cleanup.interval.ms``)."""

_TOMBSTONE_TIMEOUT_MS: Final = 30_000
_NOWHERE: Final = Offset(-1)

AllocateProducerId: TypeAlias = Callable[[Turn, Allocated], None]
"""Gives out a producer id, now or later."""

OnOutcome: TypeAlias = Callable[[Turn, AddPartitionsOutcome], None]
"""Receives the outcome for each partition."""


class Transaction:
    """A transactional id in memory.

    Attributes:
        metadata: as of the last transition that took effect; of a decided transaction, ``partitions`` are those whose
            markers are still to be written.
        pending: the state after the transition under way.
        has_failed_fence: its epoch was raised to fence a producer, but the write of the record failed (version 1).
        written_at: offset of the record of the last transition that took effect; -1 before there is one.
    """

    __slots__ = ("has_failed_fence", "metadata", "pending", "written_at")

    def __init__(self, metadata: TransactionMetadata, written_at: Offset = _NOWHERE) -> None:
        self.metadata = metadata
        self.written_at = written_at
        self.pending: TransactionState | None = None
        self.has_failed_fence = False


class TransactionShard:
    """Coordinates the transactional ids of a partition in one leader epoch.

    Args:
        turn: the step in which it was loaded.
        partition: led by this broker.
        encode: makes batches.
        config: of the broker.
        records: of the log.
        allocate: of producer ids.
        send_markers: sends the markers of a decided transaction.

    Attributes:
        transactions: by id.
    """

    def __init__(
        self,
        turn: Turn,
        partition: Partition,
        encode: EncodeRecords,
        config: BrokerConfig,
        records: Sequence[LoadedRecord],
        *,
        allocate: AllocateProducerId,
        send_markers: "Callable[[Turn, TransactionShard, Transaction], None]",
    ) -> None:
        self.partition = partition
        self.leader_epoch: LeaderEpoch = partition.leader_epoch
        self.transactions: dict[str, Transaction] = {}
        self._ended_sessions: dict[str, ProducerId] = {}
        self._properties = config.properties
        self._raises_epoch = config.transaction_version >= 2
        self._allocate = allocate
        self._send_markers = send_markers
        self.has_resigned = False
        self.log = CoordinatorLog(
            partition,
            encode,
            commit_timeout_ms=_TOMBSTONE_TIMEOUT_MS,
            on_committed=lambda _record: None,
            needs_min_isr=True,
        )
        self._checks: TimerQueue[Callable[[Turn], None]] = TimerQueue()
        for loaded in records:
            self._replay(loaded)
        if self.transactions:
            self._start_checks(turn)
        for transaction in list(self.transactions.values()):
            after = transitions.COMPLETED.get(transaction.metadata.state)
            if after is not None:
                transaction.pending = after
                self._have_markers_sent(turn, transaction)

    def _replay(self, loaded: LoadedRecord) -> None:
        match loaded.record:
            case TransactionMetadata(transactional_id=transactional_id) as metadata:
                self.transactions[transactional_id] = Transaction(metadata, Offset(loaded.next_offset - 1))
            case TransactionRemoved(transactional_id=transactional_id):
                self.transactions.pop(transactional_id, None)
            case SessionsEnded(transactional_id=transactional_id, producer_id=producer_id):
                self._ended_sessions[transactional_id] = producer_id
            case _:
                pass

    def _has_ended_sessions(self, metadata: TransactionMetadata) -> bool:
        """Returns whether an id still has the producer id that a recovery has retired."""
        return self._ended_sessions.get(metadata.transactional_id) == metadata.producer_id

    # --- Time and the log -----------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timer`` is due."""
        return earliest_of((self.log.next_deadline_ms, self._checks.earliest_ms))

    def handle_timer(self, turn: Turn) -> None:
        """Handles each timer that is due."""
        self.log.time_out(turn)
        for check in self._checks.pop_due(now_ms=turn.now_ms):
            check(turn)
            self._start_checks(turn)

    def _start_checks(self, turn: Turn) -> None:
        for check, interval_ms in ((self.abort_late, TIMEOUT_CHECK_MS), (self.expire, EXPIRATION_CHECK_MS)):
            if not self._checks.is_set(check):
                self._checks.set(check, at_ms=turn.now_ms + interval_ms)

    def settle(self, turn: Turn) -> None:
        """Applies the transitions whose records are committed by now."""
        self.log.settle(turn)

    def resign(self, turn: Turn) -> None:
        """Ends the shard: waiting requests get an error, although written records may still commit."""
        self.has_resigned = True
        self.log.fail(turn, ErrorCode.NOT_COORDINATOR)

    def _transition(
        self, turn: Turn, transaction: Transaction, after: TransactionMetadata, done: Done | None = None
    ) -> None:
        """Writes a transition, which takes effect once committed; calls ``done`` then, or with the error."""
        transaction.pending = after.state
        self._record_begun(turn, transaction.metadata.state, after)
        written_at = self.log.end_offset

        def committed(turn: Turn, error: ErrorCode) -> None:
            if self.has_resigned:
                error = ErrorCode.NOT_COORDINATOR
            else:
                transaction.pending = None
                if error is ErrorCode.NONE:
                    transaction.metadata = after
                    transaction.written_at = written_at
                    transaction.has_failed_fence = False
                    self._start_checks(turn)
            self._record_ended(turn, after.transactional_id, error)
            if done is not None:
                done(turn, error)

        self.log.append(turn, (after,), committed, timeout_ms=after.timeout_ms)

    def _record_begun(self, turn: Turn, old: TransactionState, after: TransactionMetadata) -> None:
        name = self.partition.name
        turn.record(
            events.TransitionBegun(
                cause_id=turn.cause_id,
                topic=name.topic,
                partition=name.partition,
                topic_id=self.partition.log.topic_id,
                leader_epoch=self.leader_epoch,
                transactional_id=after.transactional_id,
                producer_id=after.producer_id,
                producer_epoch=after.producer_epoch,
                old=old.title,
                new=after.state.title,
                partitions=_names(after.partitions),
                offset=self.log.end_offset,
            )
        )

    def _record_ended(self, turn: Turn, transactional_id: str, error: ErrorCode) -> None:
        name = self.partition.name
        turn.record(
            events.TransitionEnded(
                cause_id=turn.cause_id,
                topic=name.topic,
                partition=name.partition,
                topic_id=self.partition.log.topic_id,
                leader_epoch=self.leader_epoch,
                transactional_id=transactional_id,
                error=error.name,
            )
        )

    # --- Requests -------------------------------------------------------------------------------------------------

    def handle_request(self, turn: Turn, caller: Answerable, request: TransactionalIdRequest) -> None:
        """Answers a request, at once or later."""
        match request:
            case InitTransactionRequest():
                self._init(turn, caller, request)
            case EndTxnRequest():
                self._end(turn, caller, request)
            case DescribeTransactionRequest(transactional_id=transactional_id):
                caller.answer(turn, self._described(transactional_id))
            case _:
                assert_never(request)

    def _init(self, turn: Turn, caller: Answerable, request: InitTransactionRequest) -> None:
        if not 0 < request.timeout_ms <= self._properties.transaction_max_timeout_ms:
            caller.answer(turn, InitTransactionResponse(error=ErrorCode.INVALID_TRANSACTION_TIMEOUT))
            return
        transaction = self.transactions.get(request.transactional_id)
        if transaction is not None:
            self._begin_session(turn, caller, request, transaction)
            return

        def allocated(turn: Turn, producer_id: ProducerId | None) -> None:
            if producer_id is None or self.has_resigned:
                caller.answer(turn, InitTransactionResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
                return
            new = TransactionMetadata(
                transactional_id=request.transactional_id,
                producer_id=producer_id,
                producer_epoch=NO_EPOCH,
                timeout_ms=request.timeout_ms,
                update_ms=turn.now_ms,
            )
            known = self.transactions.setdefault(request.transactional_id, Transaction(new))
            self._begin_session(turn, caller, request, known)

        self._allocate(turn, allocated)

    def _begin_session(
        self, turn: Turn, caller: Answerable, request: InitTransactionRequest, transaction: Transaction
    ) -> None:
        metadata = transaction.metadata
        error = self._session_error(request, transaction)
        if error is not ErrorCode.NONE:
            caller.answer(turn, InitTransactionResponse(error=error))
        elif metadata.state is TransactionState.ONGOING:
            # The producer retries, and then gets another epoch: this one is for the markers.
            def done(turn: Turn, error: ErrorCode) -> None:
                caller.answer(turn, InitTransactionResponse(error=error or ErrorCode.CONCURRENT_TRANSACTIONS))

            self._abort(turn, transaction, done)
        elif self._has_ended_sessions(metadata) or (
            transitions.is_exhausted(metadata.producer_epoch)
            and request.producer_epoch in (None, metadata.producer_epoch)
        ):
            self._replace_producer(turn, caller, request, transaction)
        else:
            after = transitions.next_epoch(
                metadata, timeout_ms=request.timeout_ms, expected=request.producer_epoch, now_ms=turn.now_ms
            )
            self._write_session(turn, caller, transaction, after)

    def _session_error(self, request: InitTransactionRequest, transaction: Transaction) -> ErrorCode:
        metadata = transaction.metadata
        if transaction.pending is not None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        is_known = request.producer_id in (None, metadata.producer_id) or metadata.producer_epoch == NO_EPOCH
        is_of_former = (
            request.producer_id == metadata.previous_producer_id
            and request.producer_epoch is not None
            and transitions.is_exhausted(request.producer_epoch)
        )
        if (not is_known and not is_of_former) or (
            request.producer_id is not None and self._has_ended_sessions(metadata)
        ):
            return ErrorCode.PRODUCER_FENCED
        is_decided = metadata.state in transitions.PREPARED
        return ErrorCode.CONCURRENT_TRANSACTIONS if is_decided else ErrorCode.NONE

    def _replace_producer(
        self, turn: Turn, caller: Answerable, request: InitTransactionRequest, transaction: Transaction
    ) -> None:
        transaction.pending = TransactionState.EMPTY

        def allocated(turn: Turn, producer_id: ProducerId | None) -> None:
            transaction.pending = None
            if producer_id is None or self.has_resigned:
                caller.answer(turn, InitTransactionResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
                return
            after = transitions.next_producer(
                transaction.metadata,
                producer_id,
                timeout_ms=request.timeout_ms,
                is_expected=request.producer_epoch is not None,
                now_ms=turn.now_ms,
            )
            self._write_session(turn, caller, transaction, after)

        self._allocate(turn, allocated)

    def _write_session(
        self, turn: Turn, caller: Answerable, transaction: Transaction, after: TransactionMetadata | ErrorCode
    ) -> None:
        if isinstance(after, ErrorCode):
            caller.answer(turn, InitTransactionResponse(error=after))
            return

        def done(turn: Turn, error: ErrorCode) -> None:
            response = InitTransactionResponse(error=error)
            if error is ErrorCode.NONE:
                response = InitTransactionResponse(
                    error=error, producer_id=after.producer_id, producer_epoch=after.producer_epoch
                )
            caller.answer(turn, response)

        self._transition(turn, transaction, after, done)

    def _identity_error(self, request: AddPartitions, transaction: Transaction) -> ErrorCode:
        metadata = transaction.metadata
        if request.producer_id != metadata.producer_id or self._has_ended_sessions(metadata):
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if request.producer_epoch != metadata.producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        is_decided = metadata.state in transitions.PREPARED
        return ErrorCode.CONCURRENT_TRANSACTIONS if is_decided else ErrorCode.NONE

    def add_partitions(self, turn: Turn, request: AddPartitions, on_outcome: OnOutcome) -> None:
        """Adds partitions to a transaction, or verifies them; calls ``on_outcome`` at once or later."""
        if request.is_verify_only:
            on_outcome(turn, self._verified(request))
            return
        transaction = self.transactions.get(request.transactional_id)
        partitions = frozenset(request.partitions)

        def done(turn: Turn, error: ErrorCode) -> None:
            on_outcome(turn, refused_partitions(request, error))

        if transaction is None:
            done(turn, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            return
        is_pending = transaction.pending is not None
        error = ErrorCode.CONCURRENT_TRANSACTIONS if is_pending else self._identity_error(request, transaction)
        metadata = transaction.metadata
        is_known = metadata.state is TransactionState.ONGOING and partitions <= metadata.partitions
        if error is not ErrorCode.NONE or is_known:
            done(turn, error)
            return
        after = transitions.with_partitions(
            metadata, partitions, client_version=request.client_version, now_ms=turn.now_ms
        )
        self._transition(turn, transaction, after, done)

    def _verified(self, request: AddPartitions) -> AddPartitionsOutcome:
        transaction = self.transactions.get(request.transactional_id)
        if transaction is None:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        else:
            error = self._identity_error(request, transaction)
        if error is not ErrorCode.NONE or transaction is None:
            return refused_partitions(request, error)
        known = transaction.metadata.partitions
        return AddPartitionsOutcome(
            errors=tuple(
                ErrorCode.NONE if partition in known else ErrorCode.TRANSACTION_ABORTABLE
                for partition in request.partitions
            )
        )

    # --- Ends -----------------------------------------------------------------------------------------------------

    def _end(self, turn: Turn, caller: Answerable, request: EndTxnRequest) -> None:
        transaction = self.transactions.get(request.transactional_id)
        if transaction is None or self._has_ended_sessions(transaction.metadata):
            caller.answer(turn, EndTxnResponse(error=ErrorCode.INVALID_PRODUCER_ID_MAPPING))
            return
        raises_epoch = request.client_version == 2
        error = end_error(request, transaction) if raises_epoch else end_error_of_version_1(request, transaction)
        metadata = transaction.metadata
        if error is not None:
            response = EndTxnResponse(error=error)
            if error is ErrorCode.NONE and raises_epoch:
                response = EndTxnResponse(
                    error=error, producer_id=metadata.producer_id, producer_epoch=metadata.producer_epoch
                )
            caller.answer(turn, response)
        elif raises_epoch and transitions.is_exhausted(metadata.producer_epoch):
            self._end_with_successor(turn, caller, request, transaction)
        else:
            self._decide(turn, caller, request, transaction, None)

    def _end_with_successor(
        self, turn: Turn, caller: Answerable, request: EndTxnRequest, transaction: Transaction
    ) -> None:
        state = transaction.metadata.state
        transaction.pending = state

        def allocated(turn: Turn, producer_id: ProducerId | None) -> None:
            transaction.pending = None
            if producer_id is None or self.has_resigned:
                caller.answer(turn, EndTxnResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
            else:
                self._decide(turn, caller, request, transaction, producer_id)

        self._allocate(turn, allocated)

    def _decide(
        self,
        turn: Turn,
        caller: Answerable,
        request: EndTxnRequest,
        transaction: Transaction,
        next_producer_id: ProducerId | None,
    ) -> None:
        raises_epoch = request.client_version == 2
        try:
            after = transitions.prepared(
                transaction.metadata,
                request.result,
                raises_epoch=raises_epoch,
                next_producer_id=next_producer_id,
                now_ms=turn.now_ms,
            )
        except transitions.TransitionError:
            caller.answer(turn, EndTxnResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        successor = ProducerIdentity(after.producer_id, after.producer_epoch)
        if next_producer_id is not None:
            successor = ProducerIdentity(next_producer_id, ProducerEpoch(0))

        def done(turn: Turn, error: ErrorCode) -> None:
            response = EndTxnResponse(error=error)
            if error is ErrorCode.NONE and raises_epoch:
                response = EndTxnResponse(
                    error=error, producer_id=successor.producer_id, producer_epoch=successor.producer_epoch
                )
            caller.answer(turn, response)
            if error is ErrorCode.NONE:
                self._carry_out(turn, transaction)

        self._transition(turn, transaction, after, done)

    def _carry_out(self, turn: Turn, transaction: Transaction) -> None:
        transaction.pending = transitions.COMPLETED[transaction.metadata.state]
        self._have_markers_sent(turn, transaction)

    def _have_markers_sent(self, turn: Turn, transaction: Transaction) -> None:
        name, metadata = self.partition.name, transaction.metadata
        turn.record(
            events.MarkersSent(
                cause_id=turn.cause_id,
                topic=name.topic,
                partition=name.partition,
                topic_id=self.partition.log.topic_id,
                leader_epoch=self.leader_epoch,
                transactional_id=metadata.transactional_id,
                producer_id=metadata.producer_id,
                producer_epoch=metadata.producer_epoch,
                result="commit" if metadata.state is TransactionState.PREPARE_COMMIT else "abort",
                partitions=_names(metadata.partitions),
                decided_at=transaction.written_at,
            )
        )
        self._send_markers(turn, self, transaction)

    def _abort(self, turn: Turn, transaction: Transaction, done: Done) -> None:
        """Aborts an ongoing transaction whose producer is fenced or late; its markers have the next epoch.

        With version 1, the epoch is raised in memory first, and stays raised if the write of the record fails.
        """
        try:
            after = transitions.aborted(
                transaction.metadata,
                raises_epoch=self._raises_epoch,
                has_failed=transaction.has_failed_fence,
                now_ms=turn.now_ms,
            )
        except transitions.TransitionError:
            done(turn, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        if not self._raises_epoch:
            transaction.metadata = replace(
                transaction.metadata,
                producer_epoch=after.producer_epoch,
                last_producer_epoch=after.last_producer_epoch,
            )

        def prepared(turn: Turn, error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                transaction.has_failed_fence = not self._raises_epoch
            done(turn, error)
            if error is ErrorCode.NONE:
                self._carry_out(turn, transaction)

        self._transition(turn, transaction, after, prepared)

    def abort_late(self, turn: Turn) -> None:
        """Aborts the transactions that have taken longer than their producers allowed."""
        for transaction in list(self.transactions.values()):
            metadata = transaction.metadata
            is_late = metadata.start_ms is not None and metadata.start_ms + metadata.timeout_ms < turn.now_ms
            if is_late and metadata.state is TransactionState.ONGOING and transaction.pending is None:
                self._abort(turn, transaction, lambda _turn, _error: None)

    def note_markers(self, transaction: Transaction, written: frozenset[TopicPartition]) -> None:
        """Records partitions that have their markers, or that no longer need one."""
        metadata = transaction.metadata
        transaction.metadata = replace(metadata, partitions=metadata.partitions - written)

    def complete(self, turn: Turn, transaction: Transaction, done: Done) -> None:
        """Completes a transaction whose markers are all written; calls ``done`` with the outcome."""
        after = transitions.completed(transaction.metadata, now_ms=turn.now_ms)

        def completed(turn: Turn, error: ErrorCode) -> None:
            if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                transaction.pending = after.state
            done(turn, error)

        self._transition(turn, transaction, after, completed)

    # --- Old ids, and questions -----------------------------------------------------------------------------------

    def expire(self, turn: Turn) -> None:
        """Removes the ids that were unused for ``transactional.id.expiration.ms``."""
        limit_ms = turn.now_ms - self._properties.transactional_id_expiration_ms
        for transactional_id, transaction in list(self.transactions.items()):
            metadata = transaction.metadata
            is_idle = metadata.state in transitions.RESTING and metadata.update_ms <= limit_ms
            if is_idle and transaction.pending is None:
                self._remove(turn, transactional_id, transaction)

    def _remove(self, turn: Turn, transactional_id: str, transaction: Transaction) -> None:
        after = transitions.expired(transaction.metadata)
        transaction.pending = after.state
        self._record_begun(turn, transaction.metadata.state, after)

        def done(turn: Turn, error: ErrorCode) -> None:
            transaction.pending = None
            self._record_ended(turn, transactional_id, error)
            if error is ErrorCode.NONE:
                self.transactions.pop(transactional_id, None)

        self.log.append(turn, (TransactionRemoved(transactional_id=transactional_id),), done)

    def _described(self, transactional_id: str) -> DescribeTransactionResponse:
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.pending is TransactionState.DEAD:
            return DescribeTransactionResponse(error=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        metadata = transaction.metadata
        return DescribeTransactionResponse(
            error=ErrorCode.NONE,
            state=metadata.state.title,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            timeout_ms=metadata.timeout_ms,
            start_ms=metadata.start_ms,
            partitions=tuple(sorted(metadata.partitions)),
        )

    def of_producers(self, producer_ids: Collection[ProducerId]) -> tuple[KnownTransaction, ...]:
        """Returns the last transactions of producers, by producer id."""
        return tuple(
            KnownTransaction(
                producer_id=metadata.producer_id,
                producer_epoch=metadata.producer_epoch,
                state=metadata.state,
                client_version=metadata.client_version,
            )
            for _, transaction in sorted(self.transactions.items())
            for metadata in (transaction.metadata,)
            if metadata.producer_id in producer_ids
        )

    def listed(self, now_ms: int) -> list[ListedTransaction]:
        """Returns the transactional ids, as ListTransactions shows them."""
        return [
            ListedTransaction(
                transactional_id=transactional_id,
                producer_id=transaction.metadata.producer_id,
                state=transaction.metadata.state.title,
                duration_ms=now_ms - (transaction.metadata.start_ms or now_ms),
            )
            for transactional_id, transaction in self.transactions.items()
            if transaction.pending is not TransactionState.DEAD
        ]


def _names(partitions: frozenset[TopicPartition]) -> tuple[str, ...]:
    return tuple([str(partition) for partition in sorted(partitions)])


def end_error_of_version_1(request: EndTxnRequest, transaction: Transaction) -> ErrorCode | None:
    """Checks EndTxn of a client whose epoch stays: the answer, or ``None`` if a transaction has to be decided."""
    metadata = transaction.metadata
    if request.producer_id != metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if request.producer_epoch != metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_commit = request.result is TransactionResult.COMMIT
    match metadata.state:
        case TransactionState.ONGOING:
            return None
        case TransactionState.COMPLETE_COMMIT:
            return ErrorCode.NONE if is_commit else ErrorCode.INVALID_TXN_STATE
        case TransactionState.COMPLETE_ABORT:
            return ErrorCode.INVALID_TXN_STATE if is_commit else ErrorCode.NONE
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
            is_same = is_commit == (metadata.state is TransactionState.PREPARE_COMMIT)
            return ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE
        case _:
            return ErrorCode.INVALID_TXN_STATE


def end_error(request: EndTxnRequest, transaction: Transaction) -> ErrorCode | None:
    """Like ``end_error_of_version_1``, for a client whose epoch rises with each transaction (KIP-890).

    A retry has the previous epoch, which distinguishes it from the end of the next transaction.
    """
    metadata = transaction.metadata
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_version_2 = metadata.client_version == 2
    is_over_successor = (
        is_version_2
        and request.producer_id == metadata.previous_producer_id
        and transitions.is_exhausted(request.producer_epoch)
        and metadata.producer_epoch == 0
    )
    if request.producer_id != metadata.producer_id and not is_over_successor:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_retry = is_over_successor or (is_version_2 and request.producer_epoch + 1 == metadata.producer_epoch)
    if not is_retry and request.producer_epoch != metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    is_commit = request.result is TransactionResult.COMMIT
    match metadata.state:
        case TransactionState.ONGOING:
            return ErrorCode.PRODUCER_FENCED if is_retry else None
        case TransactionState.EMPTY if is_retry:
            return ErrorCode.PRODUCER_FENCED
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
            is_same = is_commit == (metadata.state is TransactionState.PREPARE_COMMIT)
            if not is_retry:
                return ErrorCode.PRODUCER_FENCED
            return ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT if is_retry:
            is_same = is_commit == (metadata.state is TransactionState.COMPLETE_COMMIT)
            return ErrorCode.NONE if is_same else ErrorCode.INVALID_TXN_STATE
        case _:
            return ErrorCode.INVALID_TXN_STATE if is_commit else None


def refused_partitions(request: AddPartitions, error: ErrorCode) -> AddPartitionsOutcome:
    """Returns the outcome of partitions that all have the same error, or all none."""
    return AddPartitionsOutcome(errors=(error,) * len(request.partitions))


def refusal(request: TransactionalIdRequest, error: ErrorCode) -> TransactionalIdResponse:
    """Returns the answer that refuses a request."""
    match request:
        case DescribeTransactionRequest():
            return DescribeTransactionResponse(error=error)
        case EndTxnRequest():
            return EndTxnResponse(error=error)
        case InitTransactionRequest():
            return InitTransactionResponse(error=error)
