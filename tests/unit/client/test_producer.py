"""The producer's state machine: order, sequences, retries, the epoch bump, and what may be called a failure."""

from collections.abc import Sequence

import pytest

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.client.metadata import PartitionLeader
from laststand.emulator.core.client.producer import Producer
from laststand.emulator.core.client.settings import ProducerSettings, producer_settings
from laststand.emulator.core.client.steps import Abandoned, BatchContent, ProducerEffect, RecordsOffered, SendRecorded
from laststand.emulator.core.effects import SendRequest
from laststand.emulator.core.errors import ConfigError, ErrorCode
from laststand.emulator.core.history import OperationType
from laststand.emulator.core.types import (
    Acks,
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

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = TopicId("T" * 22)
NEW_ID = TopicId("U" * 22)
CAUSE = CauseId("test")
BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))


def encode(content: BatchContent) -> BatchDescriptor:
    return BatchDescriptor(
        base_offset=Offset(0),
        last_offset=Offset(content.record_count - 1),
        leader_epoch=LeaderEpoch(0),
        crc=hash((content.first_record_id, content.producer_epoch, content.base_sequence)) & 0xFFFFFFFF,
        size=100,
        record_count=content.record_count,
        producer_id=content.producer_id,
        producer_epoch=ProducerEpoch(-1) if content.producer_epoch is None else content.producer_epoch,
        base_sequence=-1 if content.base_sequence is None else content.base_sequence,
    )


class World:
    """A producer, the requests that are out, and its history."""

    def __init__(self, settings: ProducerSettings | None = None, *, awaited: frozenset[str] = frozenset()) -> None:
        self.now_ms = 0
        self.producer = Producer(
            settings=settings or ProducerSettings(),
            bootstrap=BROKERS,
            topics=("orders",),
            awaited=awaited,
            encode=encode,
        )
        self.out: list[SendRequest] = []
        self.history: list[SendRecorded] = []
        self._offered = 0

    def start(self, *, leader: int | None = 0, leader_epoch: int = 0) -> "World":
        self.take(self.producer.step(inputs.Started(cause_id=CAUSE), now_ms=0))
        self.answer_metadata(leader=leader, leader_epoch=leader_epoch)
        for request in self.requests(messages.InitProducerIdRequest):
            self.answer(
                request,
                messages.InitProducerIdResponse(
                    error=ErrorCode.NONE, producer_id=ProducerId(7), producer_epoch=ProducerEpoch(0)
                ),
            )
        return self

    def take(self, effects: Sequence[ProducerEffect]) -> None:
        for effect in effects:
            if isinstance(effect, SendRequest):
                self.out.append(effect)
            else:
                self.history.append(effect)

    def requests(self, kind: type) -> list[SendRequest]:
        return [request for request in self.out if isinstance(request.request, kind)]

    def batches(self) -> list[tuple[int, int, int]]:
        """Destination, producer epoch and sequence of every produce request that is out."""
        found = []
        for request in self.requests(messages.ProduceRequest):
            assert isinstance(request.request, messages.ProduceRequest)
            batch = request.request.partitions[0].batch
            assert isinstance(batch, BatchDescriptor)
            found.append((int(request.destination), int(batch.producer_epoch), batch.base_sequence))
        return found

    def offer(self, count: int = 10) -> None:
        offered = RecordsOffered(
            cause_id=CauseId(f"p:{self._offered}"),
            partition=ORDERS,
            first_record_id=self._offered,
            record_count=count,
        )
        self._offered += count
        self.take(self.producer.step(offered, now_ms=self.now_ms))

    def answer(
        self,
        request: SendRequest,
        response: messages.ProduceResponse | messages.MetadataResponse | messages.InitProducerIdResponse,
    ) -> None:
        self.out.remove(request)
        received = inputs.ResponseReceived(cause_id=CAUSE, correlation_id=request.correlation_id, response=response)
        self.take(self.producer.step(received, now_ms=self.now_ms))

    def answer_metadata(self, *, leader: int | None, leader_epoch: int, topic_id: TopicId = TOPIC_ID) -> None:
        partition = messages.MetadataPartition(
            partition=0,
            error=ErrorCode.NONE,
            leader=None if leader is None else BROKERS[leader],
            leader_epoch=LeaderEpoch(leader_epoch),
            replicas=BROKERS,
            isr=BROKERS,
        )
        topic = messages.MetadataTopic(name="orders", error=ErrorCode.NONE, topic_id=topic_id, partitions=(partition,))
        response = messages.MetadataResponse(brokers=BROKERS, controller_id=NodeId(100), topics=(topic,))
        self.answer(self.requests(messages.MetadataRequest)[0], response)

    def refuse_batch(self, *, leader: int, leader_epoch: int) -> None:
        """Answers the oldest produce request with whom to ask instead (KIP-951)."""
        result = messages.ProducePartitionResponse(
            topic="orders",
            partition=0,
            error=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            current_leader=BROKERS[leader],
            current_leader_epoch=LeaderEpoch(leader_epoch),
        )
        self.answer(self.requests(messages.ProduceRequest)[0], messages.ProduceResponse(partitions=(result,)))

    def answer_batch(self, position: int = 0, *, error: ErrorCode = ErrorCode.NONE, offset: int = 0) -> None:
        result = messages.ProducePartitionResponse(
            topic="orders",
            partition=0,
            error=error,
            base_offset=Offset(offset) if error is ErrorCode.NONE else None,
        )
        self.answer(self.requests(messages.ProduceRequest)[position], messages.ProduceResponse(partitions=(result,)))

    def fail(self, request: SendRequest, failure: RequestFailure = RequestFailure.DISCONNECTED) -> None:
        self.out.remove(request)
        failed = inputs.RequestFailed(cause_id=CAUSE, correlation_id=request.correlation_id, failure=failure)
        self.take(self.producer.step(failed, now_ms=self.now_ms))

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        deadline = self.producer.next_deadline_ms()
        if deadline is not None and deadline <= self.now_ms:
            self.take(self.producer.step(inputs.TimerFired(cause_id=CAUSE), now_ms=self.now_ms))

    def outcomes(self) -> list[tuple[str, str | None]]:
        return [(each.type.value, each.error) for each in self.history if each.type is not OperationType.INVOKE]


def test_batches_go_out_in_order_and_at_most_five_at_once() -> None:
    world = World().start()
    for _ in range(7):
        world.offer()
    assert world.batches() == [(0, 0, sequence) for sequence in (0, 10, 20, 30, 40)]
    world.answer_batch()
    assert world.batches()[-1] == (0, 0, 50)
    assert world.producer.unfinished_records == 60


def test_an_invocation_is_on_record_before_its_request() -> None:
    world = World().start()
    effects = world.producer.step(
        RecordsOffered(cause_id=CauseId("p:0"), partition=ORDERS, first_record_id=0, record_count=1), now_ms=0
    )
    assert [type(effect) for effect in effects] == [SendRecorded, SendRequest]


def test_an_acknowledged_batch_is_ok_with_its_offset_and_attempt() -> None:
    world = World().start()
    world.offer()
    world.answer_batch(offset=40)
    done = world.history[-1]
    assert (done.type, done.base_offset, done.error) == (OperationType.OK, 40, None)
    assert [(each.node, each.leader_epoch, each.outcome) for each in done.attempts] == [(0, 0, "NONE")]
    assert done.attempts[0].crc == encode_of(world, 0)


def encode_of(world: World, first_record_id: int) -> int:
    del world
    content = BatchContent(
        partition=ORDERS,
        first_record_id=first_record_id,
        record_count=10,
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(0),
        base_sequence=first_record_id,
    )
    return encode(content).crc


def test_a_batch_keeps_its_sequence_over_a_change_of_leader() -> None:
    world = World().start()
    world.offer()
    world.answer_batch(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.batches() == []
    world.pass_time(100)
    world.answer_batch(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.answer_metadata(leader=1, leader_epoch=1)
    assert world.batches() == [(1, 0, 0)]


def test_after_a_failure_the_oldest_batch_goes_out_alone_until_no_failed_one_is_left() -> None:
    world = World().start()
    for _ in range(3):
        world.offer()
    for _ in range(3):
        world.answer_batch(error=ErrorCode.NOT_ENOUGH_REPLICAS)
    world.pass_time(100)
    for sequence in (0, 10, 20):
        assert world.batches() == [(0, 0, sequence)]
        world.answer_batch()
    assert [outcome for outcome, _ in world.outcomes()] == ["ok", "ok", "ok"]


def test_a_retry_waits_for_the_backoff() -> None:
    world = World().start()
    world.offer()
    world.answer_batch(error=ErrorCode.REQUEST_TIMED_OUT)
    world.pass_time(99)
    assert world.batches() == []
    world.pass_time(1)
    assert world.batches() == [(0, 0, 0)]


def test_stale_metadata_is_not_believed() -> None:
    world = World().start(leader=1, leader_epoch=5)
    world.offer()
    world.answer_batch(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.pass_time(100)
    world.answer_metadata(leader=0, leader_epoch=4)
    assert [destination for destination, _, _ in world.batches()] == [1]


def test_metadata_is_asked_elsewhere_after_a_broker_failed() -> None:
    world = World()
    world.take(world.producer.step(inputs.Started(cause_id=CAUSE), now_ms=0))
    first = world.requests(messages.MetadataRequest)[0]
    world.fail(first)
    world.pass_time(100)
    assert world.requests(messages.MetadataRequest)[0].destination != first.destination


# --- Identity and the epoch bump (KIP-360) ------------------------------------------------------------------------


def test_nothing_is_sent_before_the_producer_has_an_identity() -> None:
    world = World()
    world.take(world.producer.step(inputs.Started(cause_id=CAUSE), now_ms=0))
    world.answer_metadata(leader=0, leader_epoch=0)
    world.offer()
    assert world.batches() == []


@pytest.mark.parametrize("error", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_a_lost_sequence_raises_the_epoch_and_numbers_from_zero(error: ErrorCode) -> None:
    world = World().start()
    for _ in range(3):
        world.offer()
    world.answer_batch(offset=0)
    world.answer_batch(error=error)
    world.pass_time(100)
    assert world.batches() == [(0, 0, 20)], "the bump waits until nothing is in flight"
    world.answer_batch(error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.pass_time(100)
    assert world.batches() == [(0, 1, 0)]
    world.answer_batch()
    assert world.batches() == [(0, 1, 10)]


def test_an_early_batch_is_retried_without_a_bump() -> None:
    world = World().start()
    world.offer()
    world.offer()
    world.answer_batch(1, error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.answer_batch(0, offset=0)
    world.pass_time(100)
    assert world.batches() == [(0, 0, 10)]


def test_a_numbered_batch_that_was_given_up_leaves_no_gap_behind() -> None:
    world = World(ProducerSettings(delivery_timeout_ms=1000)).start()
    world.offer()
    world.answer_batch(error=ErrorCode.NOT_ENOUGH_REPLICAS)
    world.pass_time(900)
    world.answer_batch(error=ErrorCode.NOT_ENOUGH_REPLICAS)
    world.offer()
    world.pass_time(100)
    assert world.outcomes() == [("fail", "DELIVERY_TIMED_OUT")]
    assert world.batches() == [(0, 1, 0)]


def test_without_idempotence_batches_have_no_identity() -> None:
    world = World(producer_settings(Acks.LEADER, {})).start()
    assert world.requests(messages.InitProducerIdRequest) == []
    world.offer()
    assert world.batches() == [(0, -1, -1)]


def test_idempotence_needs_acks_all() -> None:
    with pytest.raises(ConfigError, match="acks: all"):
        producer_settings(Acks.LEADER, {"enable.idempotence": "true"})


# --- What may be called a failure ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "last", "outcome"),
    [
        (None, ErrorCode.MESSAGE_TOO_LARGE, "fail"),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE, "fail"),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.MESSAGE_TOO_LARGE, "info"),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_PRODUCER_EPOCH, "info"),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.INVALID_RECORD, "info"),
        (None, ErrorCode.UNKNOWN_SERVER_ERROR, "info"),
    ],
)
def test_a_batch_fails_only_if_no_attempt_may_have_been_written(
    first: ErrorCode | None, last: ErrorCode, outcome: str
) -> None:
    world = World().start()
    world.offer()
    if first is not None:
        world.answer_batch(error=first)
        for _ in world.requests(messages.MetadataRequest):
            world.answer_metadata(leader=0, leader_epoch=0)
        world.pass_time(100)
    world.answer_batch(error=last)
    assert world.outcomes() == [(outcome, last.name)]


@pytest.mark.parametrize("failure", list(RequestFailure))
def test_a_request_without_an_answer_may_have_been_executed(failure: RequestFailure) -> None:
    world = World(ProducerSettings(delivery_timeout_ms=50)).start()
    world.offer()
    world.fail(world.requests(messages.ProduceRequest)[0], failure)
    world.pass_time(50)
    assert world.outcomes() == [("info", "DELIVERY_TIMED_OUT")]
    assert [attempt.outcome for attempt in world.history[-1].attempts] == [failure.name]


def test_a_batch_that_was_never_sent_has_failed() -> None:
    world = World(ProducerSettings(delivery_timeout_ms=500)).start(leader=None)
    world.offer()
    world.pass_time(500)
    assert world.outcomes() == [("fail", "DELIVERY_TIMED_OUT")]


def test_abandoning_ends_what_is_in_flight_as_unknown_and_what_was_not_sent_as_failed() -> None:
    world = World(ProducerSettings(max_in_flight=1)).start()
    world.offer()
    world.offer()
    world.take(world.producer.step(Abandoned(cause_id=CAUSE), now_ms=0))
    assert world.outcomes() == [("info", "ABANDONED"), ("fail", "ABANDONED")]
    assert world.history[-2].attempts[0].outcome == "UNANSWERED"
    assert world.producer.unfinished_records == 0


def test_a_late_answer_to_a_batch_that_was_given_up_changes_nothing() -> None:
    world = World(ProducerSettings(delivery_timeout_ms=500)).start()
    world.offer()
    world.pass_time(500)
    world.answer_batch()
    assert world.outcomes() == [("info", "DELIVERY_TIMED_OUT")]


def test_acks_0_is_done_when_it_is_sent() -> None:
    world = World(producer_settings(Acks.NONE, {})).start()
    world.offer()
    assert world.outcomes() == [("ok", None)]
    world.fail(world.requests(messages.ProduceRequest)[0])
    assert world.outcomes() == [("ok", None)]


@pytest.mark.parametrize(("failure", "asks"), [(RequestFailure.DISCONNECTED, 1), (RequestFailure.TIMED_OUT, 0)])
def test_a_connection_that_closes_on_acks_0_makes_the_producer_ask_who_leads(
    failure: RequestFailure, asks: int
) -> None:
    world = World(producer_settings(Acks.NONE, {})).start()
    world.pass_time(1_000)
    world.offer()
    world.fail(world.requests(messages.ProduceRequest)[0], failure)
    assert len(world.requests(messages.MetadataRequest)) == asks


def test_a_hint_beside_the_error_is_followed_at_once() -> None:
    world = World().start()
    world.offer()
    world.refuse_batch(leader=2, leader_epoch=3)
    assert world.batches() == [(2, 0, 0)]


def test_a_hint_about_the_topic_before_is_no_hint_about_the_one_made_anew() -> None:
    world = World(ProducerSettings(metadata_max_age_ms=1_000)).start(leader_epoch=1)
    world.offer()
    world.pass_time(1_000)
    world.answer_metadata(leader=1, leader_epoch=0, topic_id=NEW_ID)
    world.refuse_batch(leader=2, leader_epoch=3)
    assert world.producer.metadata.leader_of(ORDERS) == PartitionLeader(
        topic_id=NEW_ID, leader=BROKERS[1], leader_epoch=LeaderEpoch(0)
    )


def test_a_promise_is_about_the_topic_that_the_request_was_meant_for() -> None:
    world = World(ProducerSettings(metadata_max_age_ms=1_000)).start()
    world.offer()
    (sent,) = world.requests(messages.ProduceRequest)
    assert isinstance(sent.request, messages.ProduceRequest)
    assert sent.request.partitions[0].topic_id == TOPIC_ID
    world.pass_time(1_000)
    world.answer_metadata(leader=1, leader_epoch=0, topic_id=NEW_ID)
    world.answer_batch()
    assert [(line.type.value, line.topic_id) for line in world.history] == [("invoke", TOPIC_ID), ("ok", TOPIC_ID)]


def test_room_is_bounded() -> None:
    world = World(ProducerSettings(buffer_records_max=15)).start()
    world.offer()
    assert world.producer.has_room
    world.offer()
    assert not world.producer.has_room


def test_a_topic_that_is_not_there_yet_is_asked_for_until_it_is() -> None:
    world = World(awaited=frozenset({"orders"}))
    world.take(world.producer.step(inputs.Started(cause_id=CAUSE), now_ms=0))
    for _ in range(3):
        assert not world.producer.may_send_to(ORDERS)
        unknown = messages.MetadataTopic(
            name="orders", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic_id=None, partitions=()
        )
        response = messages.MetadataResponse(brokers=BROKERS, controller_id=NodeId(100), topics=(unknown,))
        world.answer(world.requests(messages.MetadataRequest)[0], response)
        assert world.requests(messages.MetadataRequest) == []
        world.pass_time(100)
    world.answer_metadata(leader=0, leader_epoch=0)
    assert world.producer.may_send_to(ORDERS)
    world.pass_time(10_000)
    assert world.requests(messages.MetadataRequest) == [], "asked again before metadata.max.age.ms"
