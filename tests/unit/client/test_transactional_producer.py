"""A transactional producer: what it asks whom, what it repeats, and what it says of each transaction."""

from collections.abc import Sequence

import pytest

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.batch import BatchDescriptor, TransactionResult
from laststand.emulator.core.client.settings import ProducerSettings
from laststand.emulator.core.client.steps import (
    Abandoned,
    BatchContent,
    ConsumptionOffered,
    GroupCommitRecorded,
    RecordsReceived,
    SendRecorded,
    Source,
    TransactionalProducerEffect,
    TransactionalProducerInput,
    TransactionalProducerRecord,
    TransactionOffered,
    TransactionRecorded,
)
from laststand.emulator.core.client.transactional_producer import TransactionalProducer
from laststand.emulator.core.effects import SendRequest
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import (
    CommittedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
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
    ProducerIdentity,
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
            name="payments",
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
            for name, count in (("orders", 2), (TRANSACTIONS_TOPIC, 1), (OFFSETS_TOPIC, 1))
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

    def position(self, offset: int | None) -> None:
        """Answers a question for a group's position."""
        assert isinstance(self.request, OffsetFetchRequest)
        found = () if offset is None else (CommittedOffset(partition=ORDERS[0], offset=offset),)
        self.answer(OffsetFetchResponse(error=ErrorCode.NONE, offsets=found))

    def log_begins(self, offset: int) -> None:
        assert isinstance(self.request, messages.ListOffsetsRequest)
        topic, partition = ORDERS[0]
        found = messages.ListOffsetsResult(
            topic=topic, partition=partition, error=ErrorCode.NONE, offset=Offset(offset), leader_epoch=LeaderEpoch(0)
        )
        self.answer(messages.ListOffsetsResponse(partitions=(found,)))

    def fetch(self, records: int, error: ErrorCode = ErrorCode.NONE) -> int:
        """Answers a fetch with a batch of so many records; returns where it asked for them."""
        sent = self._pop(is_metadata=False)
        assert isinstance(sent.request, messages.FetchRequest)
        position = sent.request.partitions[0].fetch_offset
        topic, partition = ORDERS[0]
        batch = PolledBatch(
            base_offset=position,
            last_offset=Offset(position + records - 1),
            leader_epoch=LeaderEpoch(0),
            crc=1,
            producer="producer-0",
            first_record_id=0,
            record_count=records,
        )
        received = RecordsReceived(
            cause_id=CAUSE,
            correlation_id=sent.correlation_id,
            response=messages.FetchPartitionResponse(topic=topic, partition=partition, error=error),
            polled=(batch,) if records else (),
            next_position=Offset(position + records) if records else None,
        )
        self.step(received)
        return position

    def commit_position(self, error: ErrorCode = ErrorCode.NONE) -> OffsetCommitRequest:
        request = self.request
        assert isinstance(request, OffsetCommitRequest)
        self.answer(OffsetCommitResponse(errors=(error,)))
        return request

    @property
    def commits(self) -> list[tuple[OperationType, int]]:
        """The positions that were to be committed, with their outcomes."""
        return [(line.type, line.offset) for line in self.history if isinstance(line, GroupCommitRecorded)]

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


def test_records_that_no_broker_accepts_are_given_up() -> None:
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


SOURCE = Source(group_id="readers", partition=ORDERS[0], records=2)
READ = ConsumptionOffered(cause_id=CauseId("consumption"), source=SOURCE)
WRITE_OF_IT = TransactionOffered(
    cause_id=CauseId("transaction"), partitions=(ORDERS[1],), records=2, result=COMMIT, source=SOURCE
)


def test_a_group_goes_on_at_its_position_and_commits_the_next() -> None:
    world = World()
    world.step(READ)
    world.position(4)
    assert world.fetch(3) == 4
    request = world.commit_position()
    assert (request.producer, request.offsets[0].offset) == (None, 7)
    assert world.commits == [(OperationType.OK, 7)]
    assert world.producer.unfinished == 0


def test_without_a_position_it_begins_where_the_log_does_also_if_that_has_moved() -> None:
    world = World()
    world.step(READ)
    world.position(None)
    world.log_begins(1)
    assert world.fetch(0, ErrorCode.OFFSET_OUT_OF_RANGE) == 1
    world.wait(20)
    world.log_begins(5)
    assert world.fetch(2) == 5


def test_nothing_to_read_is_no_commit_and_what_is_next_begins() -> None:
    world = World()
    world.step(READ)
    world.step(WRITE_OF_IT)
    world.position(4)
    world.fetch(0)
    assert world.commits == []
    world.position(4)
    world.fetch(0)
    assert world.outcome == (OperationType.FAIL, COMMIT)


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_written_of_it_is_in_one_transaction_with_the_position(version: int) -> None:
    world = World(version=version)
    world.step(WRITE_OF_IT)
    world.position(0)
    world.fetch(2)
    if version == 1:
        world.add()
    assert world.produce().record_count == 2
    if version == 1:
        world.add()
    request = world.commit_position()
    assert (request.producer, request.adds_partition) == (ProducerIdentity(ProducerId(7), epoch(0)), version == 2)
    world.end(next_epoch=1 if version == 2 else None)
    assert world.outcome == (OperationType.OK, COMMIT)


def test_a_position_that_is_refused_aborts_its_transaction() -> None:
    world = World()
    world.step(WRITE_OF_IT)
    world.position(0)
    world.fetch(2)
    world.produce()
    world.commit_position(ErrorCode.TRANSACTION_ABORTABLE)
    assert world.commits == [(OperationType.FAIL, 2)]
    assert world.end(next_epoch=1).result is ABORT


def test_a_commit_without_an_answer_may_have_taken_effect() -> None:
    world = World()
    world.step(READ)
    world.position(0)
    world.fetch(2)
    world.lose()
    world.step(Abandoned(cause_id=CAUSE))
    assert world.commits == [(OperationType.INFO, 2)]
