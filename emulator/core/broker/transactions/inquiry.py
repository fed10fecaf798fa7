"""A leader asks how the transactions ended that are open in its log.

The end of a transaction may have been lost here, with the records that an unclean election lost, or the coordinator's
own log may have lost what it knew. A log names producer ids only, so all coordinators are asked, each as the leader of
its partition of ``__transaction_state`` in the epoch that this broker knows: one that was deposed does not answer. The
question is over once each of those ids is known to one of them, or all have answered. A transaction is in a log only
after a coordinator has committed that it takes part, so that what all of them do not know is unknown for good.
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
    """A transaction without an end in a log; ``coordinator_epoch`` is that of its producer's last marker."""

    producer_epoch: ProducerEpoch
    first_offset: Offset
    coordinator_epoch: int


class _Known(NamedTuple):
    transaction: KnownTransaction
    coordinator_epoch: int


class _Question:
    """Transactions that are open in a partition, and the coordinators that have not said what they know of them."""

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
        """Nobody is left who may know more: a producer id is one transactional id's, which has one coordinator."""
        return not self.unanswered or self.open.keys() <= self.known.keys()


class TransactionInquiry:
    """The questions of all partitions that this broker leads.

    Args:
        config: of the broker.
        image: what it knows of coordinators.

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
        """Asks about what is open in a log that this broker leads, instead of what was asked about it before.

        ``done`` hears the answer now or later, unless the partition is led by another or in another epoch by then.
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
        """Returns the ends of what is open in a log by what the log alone knows: aborts."""
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
        """Returns what is to be sent now, and where."""
        due, self._due = self._due, []
        self._in_flight += [(request, question) for _, request, question in due]
        return [(broker_id, request) for broker_id, request, _ in due]

    def _pop_in_flight(self, request: TransactionsOfProducersRequest) -> _Question:
        place = next(place for place, (sent, _) in enumerate(self._in_flight) if sent is request)
        question = self._in_flight.pop(place)[1]
        question.in_flight.discard(request.partition)
        return question

    def handle_failure(self, request: TransactionsOfProducersRequest) -> None:
        """Has a coordinator that did not answer asked again."""
        self._pop_in_flight(request)

    def handle_response(
        self, turn: Turn, request: TransactionsOfProducersRequest, response: TransactionsOfProducersResponse
    ) -> None:
        """Takes what a coordinator knows; once that is all there is to know, the answer is told."""
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
        """Returns the ends of what is still open as it was, and what nobody else will end."""
        still = open_transactions(question.partition)
        ends: list[TransactionEnded] = []
        for producer_id, each in question.open.items():
            now = still.get(producer_id)
            if now is not None and now.first_offset == each.first_offset:
                end = end_of(producer_id, now, question.known.get(producer_id), raises_epoch=self._raises_epoch)
                ends += () if end is None else (end,)
        return ends


def open_transactions(partition: Partition) -> dict[ProducerId, OpenTransaction]:
    """Returns the transactions without an end in a log, by producer id."""
    return {
        producer_id: OpenTransaction(entry.producer_epoch, entry.transaction_first_offset, entry.coordinator_epoch)
        for producer_id, entry in partition.log.producers.entries()
        if entry.transaction_first_offset is not None
    }


def end_of(
    producer_id: ProducerId, found: OpenTransaction, known: _Known | None, *, raises_epoch: bool
) -> TransactionEnded | None:
    """Returns the end of an open transaction, ``None`` where its coordinator will write it.

    What was decided of it is written, and what nobody knows is aborted: a decision that was lost was perhaps told, but
    nobody can say which.

    Args:
        producer_id: of its producer.
        found: what the log has of it.
        known: what coordinators know of the producer.
        raises_epoch: a marker that nobody knows has the next epoch (transaction version 2).
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
