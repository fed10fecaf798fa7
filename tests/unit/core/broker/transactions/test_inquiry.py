"""Ends that a leader chooses for a transaction that is open in its log, by what coordinators know of it."""

import msgspec
import pytest

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.broker.transactions.inquiry import RETRY_MS, TransactionInquiry
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    KnownTransaction,
    TransactionsOfProducersRequest,
    TransactionsOfProducersResponse,
)
from laststand.emulator.core.transaction_records import TransactionEnded, TransactionState
from laststand.emulator.core.types import ProducerEpoch, ProducerId, TopicPartition
from tests.unit.core.broker.hosting import FIRST, NAME, OWN, SECOND, Hosting, batch

COMMIT, ABORT = TransactionResult.COMMIT, TransactionResult.ABORT
PRODUCER = ProducerId(7)
EPOCH = ProducerEpoch(2)


class Asking:
    """A leader with an open transaction, and two coordinators, in leader epochs 4 and 5."""

    def __init__(self) -> None:
        self.hosting = Hosting(records=5)
        self.hosting.partition.become_leader(
            self.hosting.turn(), self.hosting.state(leader=OWN, isr=(OWN,), leader_epoch=1, partition_epoch=1)
        )
        opened = msgspec.structs.replace(
            batch(5, 1), producer_id=PRODUCER, producer_epoch=EPOCH, base_sequence=0, is_transactional=True
        )
        self.append(opened)
        for number, leader in enumerate((FIRST, SECOND)):
            state = self.hosting.state(leader=leader, isr=(leader,), leader_epoch=4 + number, partition_epoch=9)
            self.hosting.image.partitions[TopicPartition(TRANSACTIONS_TOPIC, number)] = state
        self.hosting.image.partition_counts[TRANSACTIONS_TOPIC] = 2
        self.inquiry = TransactionInquiry(self.hosting.config, self.hosting.image)
        self.ends: list[TransactionEnded] | None = None
        self.inquiry.ask(self.hosting.turn(), self.hosting.partition, self.told)
        self.requests = [request for _, request in self.inquiry.pop_due()]

    def append(self, appended: object) -> None:
        self.hosting.partition.log.append(appended, now_ms=self.hosting.now_ms)  # type: ignore[arg-type]

    def told(self, _turn: Turn, ends: object) -> None:
        self.ends = list(ends)  # type: ignore[call-overload]

    def answer(
        self,
        request: TransactionsOfProducersRequest,
        *transactions: KnownTransaction,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        response = TransactionsOfProducersResponse(error=error, transactions=transactions)
        self.inquiry.handle_response(self.hosting.turn(), request, response)

    def end(self) -> tuple[TransactionResult, int, int] | None:
        """Returns result, producer epoch and coordinator epoch of the end."""
        assert self.ends is not None
        if not self.ends:
            return None
        (ended,) = self.ends
        return (ended.marker.result, ended.producer_epoch, ended.marker.coordinator_epoch)


def known(state: TransactionState, epoch: int, *, client_version: int = 2) -> KnownTransaction:
    return KnownTransaction(
        producer_id=PRODUCER, producer_epoch=ProducerEpoch(epoch), state=state, client_version=client_version
    )


@pytest.mark.parametrize(
    ("transaction", "end"),
    [
        (None, (ABORT, 3, 0)),
        (known(TransactionState.ONGOING, 2), None),
        (known(TransactionState.ONGOING, 3), (ABORT, 3, 5)),
        (known(TransactionState.ONGOING, 1), (ABORT, 3, 5)),
        (known(TransactionState.PREPARE_COMMIT, 3), (COMMIT, 3, 5)),
        (known(TransactionState.COMPLETE_COMMIT, 3), (COMMIT, 3, 5)),
        (known(TransactionState.COMPLETE_ABORT, 3), (ABORT, 3, 5)),
        (known(TransactionState.COMPLETE_COMMIT, 2), (ABORT, 3, 5)),
        (known(TransactionState.COMPLETE_COMMIT, 4), (ABORT, 3, 5)),
        (known(TransactionState.EMPTY, 2), (ABORT, 3, 5)),
        (known(TransactionState.ONGOING, 3, client_version=0), None),
        (known(TransactionState.COMPLETE_COMMIT, 2, client_version=0), (COMMIT, 2, 5)),
        (known(TransactionState.PREPARE_ABORT, 3, client_version=0), (ABORT, 3, 5)),
    ],
)
def test_decided_transactions_are_written_ongoing_ones_left_and_unknown_ones_aborted(
    transaction: KnownTransaction | None, end: tuple[TransactionResult, int, int] | None
) -> None:
    asking = Asking()
    first, second = asking.requests
    asking.answer(first)
    assert asking.ends is None, "the other coordinator may know it"
    asking.answer(second, *(() if transaction is None else (transaction,)))
    assert asking.end() == end


def test_a_recovery_does_not_wait_for_a_leaderless_coordinator_if_another_knows_the_producer() -> None:
    asking = Asking()
    first, second = asking.requests
    asking.inquiry.handle_failure(second)
    asking.answer(first, known(TransactionState.COMPLETE_COMMIT, 3))
    assert asking.end() == (COMMIT, 3, 4)
    assert asking.inquiry.timers.earliest_ms is None, "nobody is asked again"


def test_a_coordinator_that_does_not_answer_is_asked_again() -> None:
    asking = Asking()
    first, second = asking.requests
    asking.answer(first, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    asking.inquiry.handle_failure(second)
    asking.hosting.now_ms += RETRY_MS
    asking.inquiry.handle_timer(asking.hosting.turn())
    again = [request for _, request in asking.inquiry.pop_due()]
    assert again == [first, second]
    for request in again:
        asking.answer(request)
    assert asking.end() == (ABORT, 3, 0)


def test_what_ended_meanwhile_is_left_alone() -> None:
    asking = Asking()
    entry = asking.hosting.partition.log.producers.get(PRODUCER)
    assert entry is not None
    entry.transaction_first_offset = None
    for request in asking.requests:
        asking.answer(request)
    assert asking.end() is None


def test_a_leader_of_another_epoch_gets_no_result() -> None:
    asking = Asking()
    state = asking.hosting.state(leader=OWN, isr=(OWN,), leader_epoch=2, partition_epoch=2)
    asking.hosting.partition.become_leader(asking.hosting.turn(), state)
    for request in asking.requests:
        asking.answer(request)
    assert asking.ends is None
    assert asking.hosting.partition.name == NAME
