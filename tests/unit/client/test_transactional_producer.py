"""A transactional producer: what it asks whom, what it repeats, and what it says of each transaction."""

from collections.abc import Sequence

import pytest

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.client.steps import (
    Abandoned,
    BatchContent,
    SendRecorded,
    TransactionalProducerEffect,
    TransactionalProducerInput,
    TransactionalProducerRecord,
    TransactionOffered,
    TransactionRecorded,
)
from laststand.emulator.core.client.transactional_producer import TransactionalProducer
from laststand.emulator.core.effects import SendRequest
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.topic_names import TRANSACTIONS_TOPIC
from laststand.emulator.core.transaction_messages import (
    AddPartitionsOutcome,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitTransactionRequest,
    InitTransactionResponse,
)
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    RequestFailure,
    TopicId,
    TopicPartition,
)

CAUSE = CauseId("test")
ORDERS = (TopicPartition("orders", 0), TopicPartition("orders", 1))
COMMIT, ABORT = TransactionResult.COMMIT, TransactionResult.ABORT


def encode(content: BatchContent) -> BatchDescriptor:
    assert content.is_transactional
    assert content.base_sequence is not None
    return BatchDescriptor(
        base_offset=Offset(0),
        last_offset=Offset(content.record_count - 1),
        leader_epoch=LeaderEpoch(0),
        crc=content.first_record_id,
        size=100,
        record_count=content.record_count,
        producer_id=content.producer_id,
        producer_epoch=content.producer_epoch or ProducerEpoch(0),
        base_sequence=content.base_sequence,
        is_transactional=True,
    )


class World:
    """A producer of one transaction version whose requests the test answers, one after the other."""

    def __init__(self, version: int = 2) -> None:
        settings = ProducerSettings(request_timeout_ms=300, delivery_timeout_ms=1000, retry_backoff_ms=20)
        self.producer = TransactionalProducer(
            transactional_id="payments",
            settings=settings,
            bootstrap=(BrokerId(NodeId(0)),),
            topics=("orders",),
            version=version,
            encode=encode,
        )
        self.now_ms = 0
        self.out: list[SendRequest] = []
        self.history: list[TransactionalProducerRecord] = []
        self.step(inputs.Started(cause_id=CAUSE))
        topics = tuple(
            messages.MetadataTopic(
                name=name,
                error=ErrorCode.NONE,
                topic_id=TopicId(name),
                partitions=tuple(
                    messages.MetadataPartition(
                        partition=index,
                        error=ErrorCode.NONE,
                        leader=BrokerId(NodeId(index)),
                        leader_epoch=LeaderEpoch(0),
                        replicas=(),
                        isr=(),
                    )
                    for index in range(count)
                ),
            )
            for name, count in (("orders", 2), (TRANSACTIONS_TOPIC, 1))
        )
        self.answer(messages.MetadataResponse(brokers=(), controller_id=None, topics=topics))
        self.wait(20)
        assert isinstance(self.request, InitTransactionRequest)
        self.answer(InitTransactionResponse(error=ErrorCode.NONE, producer_id=ProducerId(7), producer_epoch=epoch(0)))

    def step(self, incoming: TransactionalProducerInput) -> None:
        self.take(self.producer.step(incoming, now_ms=self.now_ms))

    def take(self, effects: Sequence[TransactionalProducerEffect]) -> None:
        for effect in effects:
            if isinstance(effect, SendRequest):
                self.out.append(effect)
            else:
                self.history.append(effect)

    @property
    def request(self) -> messages.Request:
        """The request that is out, other than those for metadata."""
        [found] = [sent for sent in self.out if not isinstance(sent.request, messages.MetadataRequest)]
        return found.request

    def _pop(self, *, is_metadata: bool) -> SendRequest:
        found = next(sent for sent in self.out if isinstance(sent.request, messages.MetadataRequest) == is_metadata)
        self.out.remove(found)
        return found

    def answer(self, response: messages.Response) -> None:
        sent = self._pop(is_metadata=isinstance(response, messages.MetadataResponse))
        self.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=sent.correlation_id, response=response))

    def lose(self) -> None:
        """The request that is out gets no answer, and the time comes to ask again."""
        sent = self._pop(is_metadata=False)
        failed = inputs.RequestFailed(
            cause_id=CAUSE, correlation_id=sent.correlation_id, failure=RequestFailure.TIMED_OUT
        )
        self.step(failed)
        self.wait(20)

    def wait(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.step(inputs.TimerFired(cause_id=CAUSE))

    def offer(self, result: TransactionResult = COMMIT, partitions: tuple[TopicPartition, ...] = ORDERS) -> None:
        self.step(TransactionOffered(cause_id=CauseId("transaction"), partitions=partitions, records=1, result=result))

    def add(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answers that a partition is part of the transaction, or not."""
        assert isinstance(self.request, AddPartitionsToTxnRequest)
        outcome = AddPartitionsOutcome(errors=(error,))
        self.answer(AddPartitionsToTxnResponse(transactions=(outcome,)))

    def produce(self, error: ErrorCode = ErrorCode.NONE) -> BatchDescriptor:
        """Answers a produce request; returns its batch."""
        request = self.request
        assert isinstance(request, messages.ProduceRequest)
        asked = request.partitions[0]
        assert isinstance(asked.batch, BatchDescriptor)
        offset = Offset(0) if error is ErrorCode.NONE else None
        answer = messages.ProducePartitionResponse(
            topic=asked.topic, partition=asked.partition, error=error, base_offset=offset
        )
        self.answer(messages.ProduceResponse(partitions=(answer,)))
        return asked.batch

    def end(self, error: ErrorCode = ErrorCode.NONE, *, next_epoch: int | None = None) -> EndTxnRequest:
        """Answers a request for the end; returns it."""
        request = self.request
        assert isinstance(request, EndTxnRequest)
        answer = EndTxnResponse(error=error)
        if next_epoch is not None:
            answer = EndTxnResponse(error=error, producer_id=ProducerId(7), producer_epoch=epoch(next_epoch))
        self.answer(answer)
        return request

    @property
    def outcome(self) -> tuple[OperationType, TransactionResult]:
        """The last line about a transaction."""
        ended = [line for line in self.history if isinstance(line, TransactionRecorded)][-1]
        return ended.type, ended.result


def epoch(number: int) -> ProducerEpoch:
    return ProducerEpoch(number)


def test_version_2_has_leaders_add_partitions_and_goes_on_with_the_next_epoch() -> None:
    world = World()
    world.offer()
    assert [world.produce().base_sequence for _ in ORDERS] == [0, 0]
    assert world.end(next_epoch=1).result is COMMIT
    assert world.outcome == (OperationType.OK, COMMIT)
    world.offer(ABORT)
    batch = world.produce()
    assert (batch.producer_epoch, batch.base_sequence) == (1, 0)
    world.produce()
    world.end(next_epoch=2)
    assert world.outcome == (OperationType.OK, ABORT)


def test_version_1_adds_partitions_itself_and_numbers_on() -> None:
    world = World(version=1)
    for sequence in (0, 1):
        world.offer()
        for _ in ORDERS:
            world.add()
            assert world.produce().base_sequence == sequence
        world.end()
        assert world.outcome == (OperationType.OK, COMMIT)


def test_an_end_that_nobody_answered_is_asked_for_again() -> None:
    world = World()
    world.offer()
    for _ in ORDERS:
        world.produce()
    world.lose()
    world.end(ErrorCode.CONCURRENT_TRANSACTIONS)
    world.wait(20)
    world.end(next_epoch=1)
    assert world.outcome == (OperationType.OK, COMMIT)


def test_a_commit_that_nobody_answered_may_have_taken_place() -> None:
    world = World()
    world.offer()
    for _ in ORDERS:
        world.produce()
    world.lose()
    world.end(ErrorCode.PRODUCER_FENCED)
    assert world.outcome == (OperationType.INFO, COMMIT)


def test_a_commit_that_was_refused_has_not_taken_place() -> None:
    world = World()
    world.offer()
    for _ in ORDERS:
        world.produce()
    world.end(ErrorCode.PRODUCER_FENCED)
    assert world.outcome == (OperationType.FAIL, COMMIT)
    world.wait(20)
    assert world.request == InitTransactionRequest(transactional_id="payments", timeout_ms=60_000)


@pytest.mark.parametrize("version", [1, 2])
def test_a_batch_that_cannot_be_written_has_its_transaction_aborted(version: int) -> None:
    world = World(version)
    world.offer()
    if version == 1:
        world.add()
    world.produce(ErrorCode.INVALID_TXN_STATE)
    assert world.end(next_epoch=1 if version == 2 else None).result is ABORT
    assert world.outcome == (OperationType.OK, ABORT)
    if version == 1:  # it asks for another epoch (KIP-360)
        request = world.request
        assert isinstance(request, InitTransactionRequest)
        assert (request.producer_id, request.producer_epoch) == (7, 0)


def test_a_transaction_of_which_no_coordinator_can_know_needs_no_end() -> None:
    world = World(version=1)
    world.offer()
    world.add(ErrorCode.TRANSACTION_ABORTABLE)
    assert isinstance(world.request, EndTxnRequest)


def test_records_that_nobody_takes_are_given_up() -> None:
    world = World()
    world.offer()
    for _ in range(4):
        world.now_ms += 280
        world.lose()
    assert world.end(next_epoch=1).result is ABORT
    [ended] = [line for line in world.history if isinstance(line, SendRecorded) and line.type is OperationType.INFO]
    assert ended.error == "DELIVERY_TIMED_OUT"


def test_what_is_abandoned_may_be_committed_only_if_that_was_asked_for() -> None:
    for produces, expected in ((1, OperationType.FAIL), (2, OperationType.INFO)):
        world = World()
        world.offer()
        for _ in range(produces):
            world.produce()
        world.step(Abandoned(cause_id=CAUSE))
        assert world.outcome == (expected, COMMIT)
        assert world.producer.unfinished == 0
