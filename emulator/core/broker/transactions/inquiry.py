"""A leader asks the transaction coordinators how the transactions ended that are open in its log.

A transaction's marker may be missing because an unclean election lost records of this log, or because one lost records
of the coordinator's own log. A log contains producer ids, not transactional ids, so all coordinators are asked, each as
leader of its partition of ``__transaction_state`` in the leader epoch that this broker knows: a deposed coordinator
does not answer. The inquiry is over once each of these producer ids is known to a coordinator, or all have answered. A
partition has records of a transaction only after a coordinator has committed that the partition takes part. So a
transaction that no coordinator knows will stay unknown.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from laststand.emulator.core.batch import Marker, TransactionResult
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.timers import TimerQueue
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    KnownTransaction,
    TransactionsOfProducersRequest,
    TransactionsOfProducersResponse,
)
from laststand.emulator.core.transaction_records import TransactionEnded, TransactionState
from laststand.emulator.core.types import BrokerId, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition

RETRY_MS: Final = 200
"""Time until a coordinator that did not answer is asked again."""

Ended: TypeAlias = Callable[[Turn, Sequence[TransactionEnded]], None]
"""Hears which transactions are to be ended, and how."""

_RESULT_OF: Final = {
    TransactionState.PREPARE_COMMIT: TransactionResult.COMMIT,
    TransactionState.COMPLETE_COMMIT: TransactionResult.COMMIT,
    TransactionState.PREPARE_ABORT: TransactionResult.ABORT,
    TransactionState.COMPLETE_ABORT: TransactionResult.ABORT,
}


class OpenTransaction(NamedTuple):
    """A transaction without a marker in a log, and the ``coordinator_epoch`` of its producer's last marker."""

    producer_epoch: ProducerEpoch
    first_offset: Offset
    coordinator_epoch: int


class _Known(NamedTuple):
    transaction: KnownTransaction
    coordinator_epoch: int


class _Question:
    """Transactions that are open in a partition, and the coordinators that have not answered about them."""

    __slots__ = ("done", "in_flight", "known", "leader_epoch", "open", "partition", "unanswered")

    def __init__(self, partition: Partition, found: dict[ProducerId, OpenTransaction], done: Ended) -> None:
        self.partition = partition
        self.leader_epoch: LeaderEpoch = partition.leader_epoch
        self.open = found
        self.known: dict[ProducerId, _Known] = {}
        self.unanswered: set[int] = set()
        self.in_flight: set[int] = set()
        self.done = done

    @property
    def is_current(self) -> bool:
        return self.partition.is_leader and self.partition.leader_epoch == self.leader_epoch

    @property
    def is_answered(self) -> bool:
        """All coordinators have answered, or each producer id is known: only one coordinator can know a producer id."""
        return not self.unanswered or self.open.keys() <= self.known.keys()


class TransactionInquiry:
    """The inquiries for all partitions that this broker leads.

    Args:
        config: of the broker.
        image: the broker's metadata, which has the coordinators.

    Attributes:
        timers: when coordinators are asked, or asked again.
    """

    def __init__(self, config: BrokerConfig, image: MetadataImage) -> None:
        self._image = image
        self._raises_epoch = config.transaction_version >= 2
        self._questions: dict[TopicPartition, _Question] = {}
        self._due: list[tuple[BrokerId, TransactionsOfProducersRequest, _Question]] = []
        self._in_flight: list[tuple[TransactionsOfProducersRequest, _Question]] = []
        self.timers: TimerQueue[TopicPartition] = TimerQueue()

    def ask(self, turn: Turn, partition: Partition, done: Ended) -> None:
        """Starts an inquiry about the open transactions of a log that this broker leads; replaces an earlier inquiry.

        Calls ``done`` with the answer, now or later, unless the leader or the leader epoch has changed by then.
        """
        found = open_transactions(partition)
        question = _Question(partition, found, done)
        self._questions.pop(partition.name, None)
        self.timers.cancel(partition.name)
        partition_count = self._image.partition_counts.get(TRANSACTIONS_TOPIC, 0)
        if not found or not partition_count:
            done(turn, self._ends(question))
            return
        question.unanswered = set(range(partition_count))
        self._questions[partition.name] = question
        self._send(turn, question)

    def guesses(self, partition: Partition) -> list[TransactionEnded]:
        """Returns markers for the transactions open in a log, without asking coordinators: aborts."""
        return self._ends(_Question(partition, open_transactions(partition), lambda _turn, _ends: None))

    def handle_timer(self, turn: Turn) -> None:
        """Asks again."""
        for name in self.timers.pop_due(now_ms=turn.now_ms):
            question = self._questions[name]
            if question.is_current:
                self._send(turn, question)
            else:
                del self._questions[name]

    def _send(self, turn: Turn, question: _Question) -> None:
        for number in sorted(question.unanswered - question.in_flight):
            state = self._image.partitions.get(TopicPartition(TRANSACTIONS_TOPIC, number))
            if state is not None and state.leader is not None:
                request = TransactionsOfProducersRequest(
                    partition=number, leader_epoch=state.leader_epoch, producer_ids=tuple(sorted(question.open))
                )
                question.in_flight.add(number)
                self._due.append((state.leader, request, question))
        self.timers.set(question.partition.name, at_ms=turn.now_ms + RETRY_MS)

    def pop_due(self) -> list[tuple[BrokerId, TransactionsOfProducersRequest]]:
        """Removes and returns the requests to be sent now, with their destinations."""
        due, self._due = self._due, []
        self._in_flight += [(request, question) for _, request, question in due]
        return [(broker_id, request) for broker_id, request, _ in due]

    def _pop_in_flight(self, request: TransactionsOfProducersRequest) -> _Question:
        place = next(place for place, (sent, _) in enumerate(self._in_flight) if sent is request)
        question = self._in_flight.pop(place)[1]
        question.in_flight.discard(request.partition)
        return question

    def handle_failure(self, request: TransactionsOfProducersRequest) -> None:
        """Schedules another request to a coordinator that did not answer."""
        self._pop_in_flight(request)

    def handle_response(
        self, turn: Turn, request: TransactionsOfProducersRequest, response: TransactionsOfProducersResponse
    ) -> None:
        """Handles a coordinator's answer; calls ``done`` once the inquiry is answered."""
        question = self._pop_in_flight(request)
        name = question.partition.name
        if response.error is not ErrorCode.NONE or self._questions.get(name) is not question:
            return
        question.unanswered.discard(request.partition)
        for known in response.transactions:
            question.known[known.producer_id] = _Known(known, request.leader_epoch)
        if question.is_answered:
            del self._questions[name]
            self.timers.cancel(name)
            if question.is_current:
                question.done(turn, self._ends(question))

    def _ends(self, question: _Question) -> list[TransactionEnded]:
        """Returns markers for the transactions that are still open and whose coordinators will not write one."""
        still = open_transactions(question.partition)
        ends: list[TransactionEnded] = []
        for producer_id, each in question.open.items():
            now = still.get(producer_id)
            if now is not None and now.first_offset == each.first_offset:
                end = end_of(producer_id, now, question.known.get(producer_id), raises_epoch=self._raises_epoch)
                ends += () if end is None else (end,)
        return ends


def open_transactions(partition: Partition) -> dict[ProducerId, OpenTransaction]:
    """Returns the transactions without a marker in a log, by producer id."""
    return {
        producer_id: OpenTransaction(entry.producer_epoch, entry.transaction_first_offset, entry.coordinator_epoch)
        for producer_id, entry in partition.log.producers.entries()
        if entry.transaction_first_offset is not None
    }


def end_of(
    producer_id: ProducerId, found: OpenTransaction, known: _Known | None, *, raises_epoch: bool
) -> TransactionEnded | None:
    """Returns the marker for an open transaction; ``None`` if its coordinator will write the marker.

    A known decision is written; a transaction that no coordinator knows is aborted. A client may have received another
    decision before it was lost, but that cannot be found out.

    Args:
        producer_id: of its producer.
        found: the transaction's state in the log.
        known: what coordinators know of the producer.
        raises_epoch: the marker of a transaction that no coordinator knows gets the next epoch (transaction version 2).
    """
    result, epoch = TransactionResult.ABORT, ProducerEpoch(found.producer_epoch + raises_epoch)
    coordinator_epoch = max(found.coordinator_epoch, 0)
    if known is not None:
        transaction = known.transaction
        coordinator_epoch = max(coordinator_epoch, known.coordinator_epoch)
        distance = transaction.producer_epoch - found.producer_epoch
        # Every end raises the epoch of version 2; of version 1 only a fence does.
        is_version_2 = transaction.client_version == 2
        if transaction.state is TransactionState.ONGOING and distance in ((0,) if is_version_2 else (0, 1)):
            return None
        decided = _RESULT_OF.get(transaction.state)
        if decided is not None and distance in ((1,) if is_version_2 else (0, 1)):
            result, epoch = decided, transaction.producer_epoch
    marker = Marker(result=result, coordinator_epoch=coordinator_epoch)
    return TransactionEnded(producer_id=producer_id, producer_epoch=epoch, marker=marker)
