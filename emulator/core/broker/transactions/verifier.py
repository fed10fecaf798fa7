"""Leaders ask coordinators whether a transaction is ongoing, and whether a partition is part of it (KIP-890).

For a producer of transaction version 2, the coordinator adds the partitions; for version 1 it only verifies them. One
request per coordinator is in flight; later ones are merged into the next (Kafka's ``AddPartitionsToTxnManager``).
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from laststand.emulator.core.broker.replicas.delayed_produce import VerifyTransaction
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_partitions import partition_of
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    AddPartitions,
    AddPartitionsOutcome,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from laststand.emulator.core.types import BrokerId, TopicPartition

_RETRY_MS: Final = 20
_PATIENCE_MS: Final = 100
"""Time for which a partition is asked to be added while the transaction before is not complete yet
(``add.partitions.to.txn.retry.backoff.ms``, ``.max.ms``)."""

Verified: TypeAlias = Callable[[Turn, Mapping[TopicPartition, ErrorCode]], None]
"""Hears of the partitions that were refused."""


class _Question(NamedTuple):
    request: AddPartitions
    knows_abortable: bool
    done: Verified


class _Retry(NamedTuple):
    """A request that is sent again; compared by identity, so that equal requests stay distinct."""

    question: _Question
    until_ms: int


class Verifier:
    """Sends AddPartitionsToTxn requests to coordinators.

    Args:
        image: the broker's metadata, which has the partitions' leaders.

    Attributes:
        timers: when requests are sent again.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._queues: dict[BrokerId, dict[str, _Question]] = {}
        self._in_flight: dict[BrokerId, list[_Question]] = {}
        self._retries: dict[int, _Retry] = {}
        self._next_retry = 0
        self.timers: TimerQueue[int] = TimerQueue()

    def guard(self, switches: Switches) -> VerifyTransaction | None:
        """Returns the function that verifies transactions before an append; ``None`` if they are not verified."""
        return self.verify if switches.partition_verification else None

    def verify(self, turn: Turn, request: AddPartitions, *, knows_abortable: bool, done: Verified) -> None:
        """Asks the coordinator; retries an addition for a while if the last transaction is still being completed.

        Arguments are as in ``ask``; refusals have the error codes of Produce.
        """
        self._verify(turn, _Question(request, knows_abortable, done), until_ms=turn.now_ms + _PATIENCE_MS)

    def _verify(self, turn: Turn, question: _Question, *, until_ms: int) -> None:
        request = question.request
        cause_id = turn.cause_id

        def answered(turn: Turn, errors: Mapping[TopicPartition, ErrorCode]) -> None:
            turn.cause_id = cause_id
            is_busy = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
            if is_busy and not request.is_verify_only and turn.now_ms + _RETRY_MS <= until_ms:
                self._retries[self._next_retry] = _Retry(question, until_ms)
                self.timers.set(self._next_retry, at_ms=turn.now_ms + _RETRY_MS)
                self._next_retry += 1
            else:
                question.done(turn, {name: produce_error(request, error) for name, error in errors.items()})

        self.ask(turn, request, knows_abortable=question.knows_abortable, done=answered)

    def handle_timer(self, turn: Turn) -> None:
        """Asks again."""
        for number in self.timers.pop_due(now_ms=turn.now_ms):
            question, until_ms = self._retries.pop(number)
            self._verify(turn, question, until_ms=until_ms)

    def ask(self, turn: Turn, request: AddPartitions, *, knows_abortable: bool, done: Verified) -> None:
        """Asks the coordinator of a transactional id.

        Args:
            turn: the step.
            request: the request.
            knows_abortable: whether the client understands TRANSACTION_ABORTABLE.
            done: called with the answer, now or later.
        """
        coordinator = self._coordinator_of(request.transactional_id)
        question = _Question(request, knows_abortable, done)
        if coordinator is None:
            _refuse(turn, question, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        queue = self._queues.setdefault(coordinator, {})
        queued = queue.get(request.transactional_id)
        if queued is not None and request.producer_epoch < queued.request.producer_epoch:
            _refuse(turn, question, ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        queue[request.transactional_id] = question
        if queued is not None:
            is_newer = request.producer_epoch > queued.request.producer_epoch
            _refuse(turn, queued, ErrorCode.INVALID_PRODUCER_EPOCH if is_newer else ErrorCode.NETWORK_EXCEPTION)

    def _coordinator_of(self, transactional_id: str) -> BrokerId | None:
        partition_count = self._image.partition_counts.get(TRANSACTIONS_TOPIC, 0)
        if not partition_count:
            return None
        state = self._image.partitions.get(partition_of(transactional_id, TRANSACTIONS_TOPIC, partition_count))
        return None if state is None else state.leader

    def pop_due(self) -> list[tuple[BrokerId, AddPartitionsToTxnRequest]]:
        """Removes and returns the requests that can be sent now, with their destinations."""
        due: list[tuple[BrokerId, AddPartitionsToTxnRequest]] = []
        for broker_id in [broker_id for broker_id in self._queues if broker_id not in self._in_flight]:
            questions = self._in_flight[broker_id] = list(self._queues.pop(broker_id).values())
            requests = tuple([question.request for question in questions])
            due.append((broker_id, AddPartitionsToTxnRequest(transactions=requests)))
        return due

    def handle_response(self, turn: Turn, broker_id: BrokerId, response: AddPartitionsToTxnResponse) -> None:
        """Passes a coordinator's answers on to the callers."""
        questions = self._in_flight.pop(broker_id)
        if response.error is ErrorCode.UNSUPPORTED_VERSION:
            # A coordinator from before KIP-890 verifies nothing.
            for question in questions:
                question.done(turn, {})
            return
        if response.error is not ErrorCode.NONE:
            is_hidden = response.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            for question in questions:
                _refuse(turn, question, ErrorCode.INVALID_TXN_STATE if is_hidden else response.error)
            return
        for question, answer in zip(questions, response.transactions, strict=True):
            _pass_on(turn, question, answer)

    def handle_failure(self, turn: Turn, broker_id: BrokerId) -> None:
        """Answers the callers with the error for a missing answer."""
        for question in self._in_flight.pop(broker_id):
            _refuse(turn, question, ErrorCode.NETWORK_EXCEPTION)


def _pass_on(turn: Turn, question: _Question, answer: AddPartitionsOutcome) -> None:
    errors: dict[TopicPartition, ErrorCode] = {}
    for name, error in zip(question.request.partitions, answer.errors, strict=True):
        is_unknown = error is ErrorCode.TRANSACTION_ABORTABLE and not question.knows_abortable
        if error is not ErrorCode.NONE:
            errors[name] = ErrorCode.INVALID_TXN_STATE if is_unknown else error
    question.done(turn, errors)


def _refuse(turn: Turn, question: _Question, error: ErrorCode) -> None:
    question.done(turn, dict.fromkeys(question.request.partitions, error))


_RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


def produce_error(request: AddPartitions, error: ErrorCode) -> ErrorCode:
    """Returns the Produce error for a coordinator's error (``ReplicaManager.handleProduceAppend``)."""
    if error in _RETRIABLE or (error is ErrorCode.CONCURRENT_TRANSACTIONS and request.is_verify_only):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error
