r"""A transactional producer: transactions go in, each comes out as ``ok``, ``fail`` or ``info``.

One request is out at a time: what a transaction reads comes first, then its batches in order, each to its partition,
then the position behind what it read, and its end after that::

    (new session) -> READY -> [READING ->] SENDING -> [COMMITTING OFFSETS ->] ENDING -> READY
                                  \\________/\
                              abortable error  fatal error -> (new session)

An abortable error turns the transaction into one that is to be aborted (KIP-98, ``TransactionManager``); after a fatal
one the application is taken to start again with the same transactional id, which fences what went before. An end that
nobody answered is asked for again until somebody does: its outcome is unknown till then. With transaction version 1
the producer itself adds partitions to its transaction, and asks for another epoch after an abortable error (KIP-360);
with version 2 leaders add them, and each end brings the next epoch (KIP-890).

The application may also read for a group without a transaction: then it commits the position behind that by itself.
"""

from collections import deque
from collections.abc import Sequence
from itertools import cycle
from typing import Final, TypeAlias, assert_never

from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.group_reading import GroupReading
from laststand.emulator.core.client.metadata import ClientMetadata
from laststand.emulator.core.client.outcomes import Verdict, judge
from laststand.emulator.core.client.producer_queue import Flight, PendingBatch
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.client.steps import (
    Abandoned,
    BatchContent,
    BatchEncoder,
    ConsumptionOffered,
    GroupCommitRecorded,
    RecordsOffered,
    RecordsReceived,
    SessionRecorded,
    TransactionalProducerEffect,
    TransactionalProducerInput,
    TransactionOffered,
    TransactionRecorded,
    operation_id,
)
from laststand.emulator.core.coordinator_partitions import partition_of
from laststand.emulator.core.errors import ErrorCode, InvariantError
from laststand.emulator.core.group_messages import (
    CommittedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    AddPartitions,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitTransactionRequest,
    InitTransactionResponse,
)
from laststand.emulator.core.types import (
    Acks,
    BrokerId,
    CauseId,
    CorrelationId,
    NodeId,
    Offset,
    ProducerIdentity,
    TopicPartition,
)

_ToCoordinator: TypeAlias = InitTransactionRequest | AddPartitionsToTxnRequest | EndTxnRequest

_METADATA: Final = "metadata"
_RETRY: Final = "retry"
_DELIVERY: Final = "delivery"

_SEEK_COORDINATOR: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_AGAIN: Final = frozenset(
    {*_SEEK_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS}
)
"""Answers of coordinators after which the same request is sent again."""

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

_OFFSETS_ABORTABLE: Final = frozenset(
    {ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}
)
"""Answers to a position after which its transaction can only be aborted."""

_OFFSET_COMMIT_VERSION: Final = 9
_NOTHING_READ: Final = "NOTHING_READ"


class _Transaction:
    """The transaction that is under way.

    Attributes:
        result: the end that is wanted by now.
        reading: what it reads, if it does.
        unsent: batches that are not finished, in order; none of a transaction that still reads.
        sends: operations of all batches that were sent.
        partitions: that the producer has added itself.
        has_begun: a coordinator may know of it.
        may_be_committed: a request to commit it may have been carried out, though nobody said so.
        error: why it is aborted.
    """

    def __init__(self, offered: TransactionOffered) -> None:
        self.operation_id = offered.cause_id
        self.result = offered.result
        self.reading = None if offered.source is None else GroupReading(offered.source)
        self.destinations = offered.partitions
        self.unsent: deque[RecordsOffered] = deque()
        self.sends: list[CauseId] = []
        self.partitions: set[TopicPartition] = set()
        self.has_begun = False
        self.has_committed_offsets = False
        self.may_be_committed = False
        self.error: str | None = None

    @property
    def offsets_to_commit(self) -> GroupReading | None:
        """The reading whose position is not part of the transaction yet, and has to be; ``None`` if there is none."""
        is_due = self.error is None and not self.has_committed_offsets
        return self.reading if is_due and self.reading is not None and self.reading.batches else None


class _Consumption:
    """A reading for a group without a transaction; ``may_be_committed`` is as of a transaction."""

    def __init__(self, offered: ConsumptionOffered) -> None:
        self.operation_id = offered.cause_id
        self.reading = GroupReading(offered.source)
        self.may_be_committed = False


class TransactionalProducer:
    """State machine of one transactional producer.

    Args:
        transactional_id: of the producer.
        settings: of the producer; it is idempotent, and sends one batch at a time.
        bootstrap: any of them is asked for metadata.
        topics: those that it will write to.
        version: of transactions, 1 or 2.
        encode: makes a batch.

    Attributes:
        metadata: what it knows of the cluster.
    """

    def __init__(
        self,
        *,
        transactional_id: str,
        settings: ProducerSettings,
        bootstrap: tuple[BrokerId, ...],
        topics: tuple[str, ...],
        version: int,
        encode: BatchEncoder,
    ) -> None:
        self.metadata = ClientMetadata(bootstrap=bootstrap)
        self._transactional_id = transactional_id
        self._settings = settings
        self._topics = (*topics, TRANSACTIONS_TOPIC, OFFSETS_TOPIC)
        self._version = version
        self._encode = encode
        self._offered: deque[TransactionOffered | ConsumptionOffered] = deque()
        self._current: _Transaction | _Consumption | None = None
        self._next_record_id = 0
        self._identity: ProducerIdentity | None = None
        self._needs_session = True
        self._sequences: dict[TopicPartition, int] = {}
        self._batch: PendingBatch | None = None
        self._flight: Flight | None = None
        self._asked: dict[CorrelationId, tuple[messages.Request, BrokerId]] = {}
        self._next_correlation = 0
        self._timers: TimerQueue[str] = TimerQueue()
        self._retry_at_ms = 0
        self._metadata_not_before_ms = 0
        self._is_abandoned = False
        self._effects: list[TransactionalProducerEffect] = []

    @property
    def unfinished(self) -> int:
        """Transactions and consumptions that were offered and are not over."""
        return len(self._offered) + (self._current is not None)

    def next_deadline_ms(self) -> int | None:
        """Returns when ``TimerFired`` is due, or ``None``."""
        return self._timers.earliest_ms

    def step(self, incoming: TransactionalProducerInput, *, now_ms: int) -> list[TransactionalProducerEffect]:
        """Takes in one thing that happened and returns what to do about it, in order."""
        match incoming:
            case inputs.Started():
                self._want_metadata(now_ms)
            case TransactionOffered() | ConsumptionOffered():
                self._offered.append(incoming)
            case inputs.ResponseReceived():
                self._answered(incoming, now_ms)
            case RecordsReceived(correlation_id=correlation_id):
                del self._asked[correlation_id]
                self._read(self._reading.fetched(incoming), now_ms)
            case inputs.RequestFailed(correlation_id=correlation_id, failure=failure):
                self._unanswered(correlation_id, failure.name, now_ms)
            case inputs.TimerFired():
                for key in self._timers.pop_due(now_ms=now_ms):
                    if key == _METADATA:
                        self._want_metadata(now_ms)
            case Abandoned():
                self._abandon()
            case _:
                assert_never(incoming)
        self._pump(now_ms)
        effects, self._effects = self._effects, []
        return effects

    # --- What is next ---------------------------------------------------------------------------------------------

    def _pump(self, now_ms: int) -> None:
        """Sends the next request, unless one is out or has to wait."""
        if self._is_abandoned or any(not _is_about_metadata(request) for request, _ in self._asked.values()):
            return
        self._expire_batch(now_ms)
        if now_ms < self._retry_at_ms:
            self._timers.set(_RETRY, at_ms=self._retry_at_ms)
            return
        while not self._needs_session:
            if self._current is None and self._offered:
                self._begin(self._offered.popleft())
            if self._current is None or self._asked_anything(self._current, now_ms):
                return
        self._ask_coordinator(self._session_request(), now_ms)

    def _asked_anything(self, current: _Transaction | _Consumption, now_ms: int) -> bool:
        """Sends what is needed next; returns false where the operation came to its end without that."""
        if current.reading is not None and not current.reading.is_over:
            self._send_reading(current.reading, now_ms)
            return True
        if isinstance(current, _Transaction):
            return self._continued(current, now_ms)
        if not current.reading.batches:
            self._current = None
            return False
        self._commit_offsets(current.reading, None, now_ms)
        return True

    def _continued(self, transaction: _Transaction, now_ms: int) -> bool:
        if self._batch is None and transaction.unsent and transaction.error is None:
            self._take_batch(transaction, transaction.unsent.popleft(), now_ms)
        if self._batch is not None:
            self._send_batch(transaction, self._batch, now_ms)
        elif (reading := transaction.offsets_to_commit) is not None:
            self._send_offsets(transaction, reading, now_ms)
        elif transaction.has_begun:
            self._ask_coordinator(self._end_request(transaction), now_ms)
        else:
            self._finish(OperationType.FAIL)
            return False
        return True

    def _begin(self, offered: TransactionOffered | ConsumptionOffered) -> None:
        if isinstance(offered, ConsumptionOffered):
            self._current = _Consumption(offered)
            return
        self._current = _Transaction(offered)
        if offered.source is None:
            self._fill(self._current, [offered.records] * len(offered.partitions))
        if self._version == 2:
            self._sequences.clear()
        self._record(OperationType.INVOKE, self._current)

    def _fill(self, transaction: _Transaction, counts: Sequence[int]) -> None:
        """Gives a transaction a batch of each of these numbers of records, the partitions in turn."""
        for count, partition in zip(counts, cycle(transaction.destinations), strict=False):
            first = self._next_record_id
            self._next_record_id += count
            transaction.unsent.append(
                RecordsOffered(
                    cause_id=operation_id(self._transactional_id, first),
                    partition=partition,
                    first_record_id=first,
                    record_count=count,
                )
            )

    def _take_batch(self, transaction: _Transaction, offered: RecordsOffered, now_ms: int) -> None:
        self._batch = PendingBatch(offered, deadline_ms=now_ms + self._settings.delivery_timeout_ms)
        transaction.sends.append(offered.cause_id)
        self._timers.set(_DELIVERY, at_ms=self._batch.deadline_ms)
        self._effects.append(self._batch.recorded(OperationType.INVOKE, self.metadata))

    def _send_batch(self, transaction: _Transaction, batch: PendingBatch, now_ms: int) -> None:
        partition = batch.partition
        if self._has_to_add(transaction, partition, now_ms):
            return
        leadership = self.metadata.leader_of(partition)
        if leadership is None or leadership.leader is None:
            self._retry(now_ms, wants_metadata=True)
            return
        assert self._identity is not None, "a session has begun"
        if batch.descriptor is None:
            batch.base_sequence = self._sequences.get(partition, 0)
            batch.descriptor = self._encode(
                BatchContent(
                    partition=partition,
                    first_record_id=batch.first_record_id,
                    record_count=batch.record_count,
                    producer_id=self._identity.producer_id,
                    producer_epoch=self._identity.producer_epoch,
                    base_sequence=batch.base_sequence,
                    is_transactional=True,
                )
            )
        transaction.has_begun = True
        self._flight = batch.fly(leadership.leader, leadership)
        request = messages.ProduceRequest(
            acks=Acks.ALL,
            timeout_ms=self._settings.request_timeout_ms,
            partitions=(self._flight.content,),
            transactional_id=self._transactional_id,
            transaction_version=self._version,
            knows_abortable=self._version == 2,
        )
        self._send(leadership.leader, request, batch.operation_id)

    # --- Requests to the coordinator ------------------------------------------------------------------------------

    def _session_request(self) -> InitTransactionRequest:
        identity = self._identity
        return InitTransactionRequest(
            transactional_id=self._transactional_id,
            timeout_ms=self._settings.transaction_timeout_ms,
            producer_id=None if identity is None else identity.producer_id,
            producer_epoch=None if identity is None else identity.producer_epoch,
        )

    def _addition(self, partition: TopicPartition) -> AddPartitionsToTxnRequest:
        assert self._identity is not None, "a session has begun"
        asked = AddPartitions(
            transactional_id=self._transactional_id,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            partitions=(partition,),
        )
        return AddPartitionsToTxnRequest(transactions=(asked,))

    def _end_request(self, transaction: _Transaction) -> EndTxnRequest:
        assert self._identity is not None, "a session has begun"
        return EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            result=transaction.result,
            client_version=2 if self._version == 2 else 0,
        )

    def _has_to_add(self, transaction: _Transaction, partition: TopicPartition, now_ms: int) -> bool:
        """Has a partition added to a transaction, where the producer does that itself; returns whether it was asked."""
        if self._version == 2 or partition in transaction.partitions:
            return False
        transaction.has_begun = True
        self._ask_coordinator(self._addition(partition), now_ms)
        return True

    def _ask_coordinator(self, request: _ToCoordinator, now_ms: int) -> None:
        self._ask_leader(self._partition_of(self._transactional_id, TRANSACTIONS_TOPIC), request, now_ms)

    def _partition_of(self, key: str, topic: str) -> TopicPartition | None:
        """Returns the partition of an internal topic that a key belongs to, if the topic is known."""
        count = self.metadata.partition_counts.get(topic, 0)
        return partition_of(key, topic, count) if count else None

    def _ask_leader(self, partition: TopicPartition | None, request: messages.Request, now_ms: int) -> None:
        leadership = None if partition is None else self.metadata.leader_of(partition)
        if leadership is None or leadership.leader is None:
            self._retry(now_ms, wants_metadata=True)
            return
        cause_id = CauseId(self._transactional_id) if self._current is None else self._current.operation_id
        self._send(leadership.leader, request, cause_id)

    # --- What is read for a group ---------------------------------------------------------------------------------

    def _send_reading(self, reading: GroupReading, now_ms: int) -> None:
        source = reading.source
        if reading.wants_position:
            group = self._partition_of(source.group_id, OFFSETS_TOPIC)
            self._ask_leader(group, reading.position_request(), now_ms)
            return
        leadership = self.metadata.leader_of(source.partition)
        if leadership is None or leadership.leader is None:
            self._retry(now_ms, wants_metadata=True)
            return
        assert self._current is not None, "it reads"
        self._send(leadership.leader, reading.request(leadership.leader, leadership), self._current.operation_id)

    def _send_offsets(self, transaction: _Transaction, reading: GroupReading, now_ms: int) -> None:
        group = self._partition_of(reading.source.group_id, OFFSETS_TOPIC)
        if group is not None and self._has_to_add(transaction, group, now_ms):
            return
        transaction.has_begun = True
        self._commit_offsets(reading, self._identity, now_ms)

    def _commit_offsets(self, reading: GroupReading, producer: ProducerIdentity | None, now_ms: int) -> None:
        source = reading.source
        offset = CommittedOffset(
            partition=source.partition,
            offset=reading.next_position,
            leader_epoch=reading.batches[-1].leader_epoch,
        )
        request = OffsetCommitRequest(
            api_version=_OFFSET_COMMIT_VERSION,
            group_id=source.group_id,
            member_id="",
            instance_id=None,
            generation_id=-1,
            offsets=(offset,),
            producer=producer,
            transactional_id="" if producer is None else self._transactional_id,
            adds_partition=producer is not None and self._version == 2,
        )
        self._ask_leader(self._partition_of(source.group_id, OFFSETS_TOPIC), request, now_ms)

    @property
    def _reading(self) -> GroupReading:
        if self._current is None or self._current.reading is None:
            raise InvariantError("nothing is read")
        return self._current.reading

    def _read(self, error: ErrorCode, now_ms: int) -> None:
        """Goes on after an answer to a reading; once it is over, its batches become those of the transaction."""
        if error is not ErrorCode.NONE:
            self._retry(now_ms, wants_metadata=True)
            return
        current, reading = self._current, self._reading
        if current is None or not reading.is_over:
            return
        self._effects.append(reading.recorded(current.operation_id))
        if isinstance(current, _Transaction):
            current.error = None if reading.batches else _NOTHING_READ
            self._fill(current, [batch.record_count for batch in reading.batches])

    def _offsets_answered(self, error: ErrorCode, now_ms: int) -> None:
        current = self._current
        if error in _AGAIN:
            if isinstance(current, _Consumption):
                current.may_be_committed |= error in _SEEK_COORDINATOR
            self._retry(now_ms, wants_metadata=error in _SEEK_COORDINATOR)
            return
        is_ok = error is ErrorCode.NONE
        self._record_offsets(OperationType.OK if is_ok else OperationType.FAIL, None if is_ok else error.name)
        if isinstance(current, _Consumption):
            self._current = None
        elif current is not None and is_ok:
            current.has_committed_offsets = True
        elif error in _OFFSETS_ABORTABLE:
            self._abort(error.name)
        else:
            self._fail(error.name)

    def _record_offsets(self, type_: OperationType, error: str | None) -> None:
        assert self._current is not None, "it reads"
        if isinstance(self._current, _Consumption) and type_ is OperationType.FAIL and self._current.may_be_committed:
            type_ = OperationType.INFO
        self._effects.append(
            GroupCommitRecorded(
                type=type_,
                operation_id=self._current.operation_id,
                group_id=self._reading.source.group_id,
                partition=self._reading.source.partition,
                offset=self._reading.next_position,
                error=error,
            )
        )

    def _send(self, destination: BrokerId, request: messages.Request, cause_id: CauseId) -> None:
        self._next_correlation += 1
        correlation_id = CorrelationId(self._next_correlation)
        self._asked[correlation_id] = (request, destination)
        self._effects.append(
            effects.SendRequest(
                destination=NodeId(destination),
                correlation_id=correlation_id,
                request=request,
                timeout_ms=self._settings.request_timeout_ms,
                cause_id=cause_id,
            )
        )

    # --- Answers --------------------------------------------------------------------------------------------------

    def _answered(self, incoming: inputs.ResponseReceived, now_ms: int) -> None:
        request, _ = self._asked.pop(incoming.correlation_id)
        match incoming.response:
            case messages.MetadataResponse() as response:
                self._learn(response, now_ms)
            case InitTransactionResponse() as response:
                self._begin_session(response, now_ms)
            case AddPartitionsToTxnResponse(error=error, transactions=transactions) if isinstance(
                request, AddPartitionsToTxnRequest
            ):
                self._added(request.transactions[0].partitions, error or transactions[0].errors[0], now_ms)
            case OffsetFetchResponse() as response:
                self._read(self._reading.positioned(response), now_ms)
            case messages.ListOffsetsResponse(partitions=partitions):
                self._read(self._reading.listed(partitions[0]), now_ms)
            case OffsetCommitResponse(errors=errors):
                self._offsets_answered(errors[0], now_ms)
            case messages.ProduceResponse(partitions=partitions):
                self._produced(partitions[0], now_ms)
            case EndTxnResponse() as response if isinstance(request, EndTxnRequest):
                self._ended(response, now_ms)
            case other:
                raise InvariantError(f"a transactional producer was answered {other!r}")

    def _begin_session(self, response: InitTransactionResponse, now_ms: int) -> None:
        if response.error in _AGAIN:
            self._retry(now_ms, wants_metadata=response.error in _SEEK_COORDINATOR)
        elif response.error is not ErrorCode.NONE:
            self._identity = None
            self._retry(now_ms)
        else:
            self._identity = ProducerIdentity(response.producer_id, response.producer_epoch)
            self._needs_session = False
            self._sequences.clear()
            self._effects.append(
                SessionRecorded(
                    transactional_id=self._transactional_id,
                    producer_id=response.producer_id,
                    producer_epoch=response.producer_epoch,
                )
            )

    def _added(self, partitions: tuple[TopicPartition, ...], error: ErrorCode, now_ms: int) -> None:
        transaction = self._transaction
        if error is ErrorCode.NONE:
            transaction.partitions.update(partitions)
        elif error in _AGAIN:
            self._retry(now_ms, wants_metadata=error in _SEEK_COORDINATOR)
        elif error is ErrorCode.TRANSACTION_ABORTABLE and self._batch is not None:
            self._give_up_batch(error.name)
        elif error is ErrorCode.TRANSACTION_ABORTABLE:
            self._abort(error.name)
        else:
            self._fail(error.name)

    def _produced(self, answer: messages.ProducePartitionResponse, now_ms: int) -> None:
        batch, flight, error = self._batch, self._flight, answer.error
        assert batch is not None, "its batch is under way"
        assert flight is not None, "it was sent"
        flight.answered(error)
        if error is ErrorCode.NONE:
            self._sequences[batch.partition] = (flight.descriptor.last_sequence + 1) & 0x7FFFFFFF
            self._finish_batch(OperationType.OK, base_offset=answer.base_offset)
        elif error in _ABORTABLE:
            self._give_up_batch(error.name)
        elif error in _PRODUCED_AGAIN or judge(error) in (Verdict.RETRY, Verdict.RETRY_ELSEWHERE):
            self._retry(now_ms, wants_metadata=judge(error) is Verdict.RETRY_ELSEWHERE)
        else:
            self._fail(error.name)

    def _ended(self, response: EndTxnResponse, now_ms: int) -> None:
        transaction, error = self._transaction, response.error
        is_commit = transaction.result is TransactionResult.COMMIT
        if error is ErrorCode.NONE:
            if response.producer_id >= 0:
                self._identity = ProducerIdentity(response.producer_id, response.producer_epoch)
            elif transaction.error is not None:
                self._needs_session = True  # with another epoch, whatever of it is still under way (KIP-360)
            self._finish(OperationType.OK)
        elif error in _AGAIN:
            transaction.may_be_committed |= is_commit and error in _SEEK_COORDINATOR
            self._retry(now_ms, wants_metadata=error in _SEEK_COORDINATOR)
        elif error is ErrorCode.TRANSACTION_ABORTABLE and is_commit:
            self._abort(error.name)
        else:
            self._fail(error.name)

    def _unanswered(self, correlation_id: CorrelationId, failure: str, now_ms: int) -> None:
        request, broker = self._asked.pop(correlation_id)
        self.metadata.broker_failed(broker, now_ms=now_ms)
        match request:
            case messages.MetadataRequest():
                self._metadata_not_before_ms = now_ms + self._settings.retry_backoff_ms
                self._timers.set(_METADATA, at_ms=self._metadata_not_before_ms)
                return
            case messages.ProduceRequest() if self._batch is not None and self._flight is not None:
                self._flight.unanswered(failure)
            case EndTxnRequest(result=TransactionResult.COMMIT):
                self._transaction.may_be_committed = True
            case OffsetCommitRequest() if isinstance(self._current, _Consumption):
                self._current.may_be_committed = True
            case _:
                pass
        self._retry(now_ms, wants_metadata=True)

    # --- Metadata and waiting -------------------------------------------------------------------------------------

    def _retry(self, now_ms: int, *, wants_metadata: bool = False) -> None:
        self._retry_at_ms = now_ms + self._settings.retry_backoff_ms
        self._timers.set(_RETRY, at_ms=self._retry_at_ms)
        if wants_metadata:
            self._want_metadata(now_ms)

    def _want_metadata(self, now_ms: int) -> None:
        if any(_is_about_metadata(request) for request, _ in self._asked.values()):
            return
        if now_ms < self._metadata_not_before_ms:
            self._timers.set(_METADATA, at_ms=self._metadata_not_before_ms)
            return
        broker = self.metadata.next_broker(now_ms=now_ms)
        self._send(broker, messages.MetadataRequest(topics=self._topics), CauseId(_METADATA))

    def _learn(self, response: messages.MetadataResponse, now_ms: int) -> None:
        self.metadata.learn(response)
        self._metadata_not_before_ms = now_ms + self._settings.retry_backoff_ms
        self._timers.set(_METADATA, at_ms=now_ms + self._settings.metadata_max_age_ms)

    # --- Endings --------------------------------------------------------------------------------------------------

    @property
    def _transaction(self) -> _Transaction:
        if not isinstance(self._current, _Transaction):
            raise InvariantError("no transaction is under way")
        return self._current

    def _expire_batch(self, now_ms: int) -> None:
        if self._batch is not None and self._batch.deadline_ms <= now_ms:
            self._give_up_batch("DELIVERY_TIMED_OUT")

    def _give_up_batch(self, error: str) -> None:
        """Ends a batch that cannot be written, and has its transaction aborted."""
        assert self._batch is not None, "its batch is under way"
        self._finish_batch(self._batch.given_up, error=error)
        self._abort(error)

    def _abort(self, error: str) -> None:
        transaction = self._transaction
        transaction.error = error
        transaction.result = TransactionResult.ABORT

    def _fail(self, error: str) -> None:
        """Ends the transaction as it is: this producer is fenced, and the next session aborts what is left of it."""
        if self._batch is not None:
            self._finish_batch(self._batch.given_up, error=error)
        transaction = self._transaction
        transaction.error = error
        self._identity = None
        self._needs_session = True
        self._finish(OperationType.INFO if transaction.may_be_committed else OperationType.FAIL)

    def _abandon(self) -> None:
        self._is_abandoned = True
        self._offered.clear()
        if not isinstance(self._current, _Transaction):
            self._abandon_consumption()
            return
        if self._batch is not None:
            is_under_way = any(isinstance(request, messages.ProduceRequest) for request, _ in self._asked.values())
            if is_under_way and self._flight is not None:
                self._flight.unanswered("UNANSWERED")
            self._finish_batch(self._batch.given_up, error="ABANDONED")
        self._current.error = self._current.error or "ABANDONED"
        is_asked = any(isinstance(request, EndTxnRequest) for request, _ in self._asked.values())
        is_open = self._current.may_be_committed or (is_asked and self._current.result is TransactionResult.COMMIT)
        self._finish(OperationType.INFO if is_open else OperationType.FAIL)

    def _abandon_consumption(self) -> None:
        is_asked = any(isinstance(request, OffsetCommitRequest) for request, _ in self._asked.values())
        if isinstance(self._current, _Consumption) and (is_asked or self._current.may_be_committed):
            self._record_offsets(OperationType.INFO, "ABANDONED")
        self._current = None

    def _finish(self, type_: OperationType) -> None:
        transaction = self._transaction
        self._record(type_, transaction)
        self._current = None

    def _finish_batch(
        self, type_: OperationType, *, base_offset: Offset | None = None, error: str | None = None
    ) -> None:
        assert self._batch is not None, "its batch is under way"
        self._effects.append(self._batch.recorded(type_, self.metadata, base_offset=base_offset, error=error))
        self._batch = self._flight = None
        self._timers.cancel(_DELIVERY)

    # --- History --------------------------------------------------------------------------------------------------

    def _record(self, type_: OperationType, transaction: _Transaction) -> None:
        self._effects.append(
            TransactionRecorded(
                type=type_,
                operation_id=transaction.operation_id,
                transactional_id=self._transactional_id,
                result=transaction.result,
                sends=tuple(transaction.sends),
                error=transaction.error,
            )
        )


def _is_about_metadata(request: messages.Request) -> bool:
    return isinstance(request, messages.MetadataRequest)
