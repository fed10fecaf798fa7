"""The consumer's state machine: where it starts, how it goes on, what makes it jump, and when it is through."""

from collections.abc import Sequence

import pytest

from laststand.emulator.core import inputs, messages
from laststand.emulator.core.client.consumer import Consumer, Phase
from laststand.emulator.core.client.settings import ConsumerSettings, OffsetReset
from laststand.emulator.core.client.steps import (
    Abandoned,
    ConsumerEffect,
    FinalReadRecorded,
    PollRecorded,
    RecordsReceived,
)
from laststand.emulator.core.effects import SendRequest
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.history import OperationType, PolledBatch
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    LeaderEpoch,
    NodeId,
    Offset,
    RequestFailure,
    TopicId,
    TopicPartition,
)

ORDERS = TopicPartition("orders", 0)
CAUSE = CauseId("test")
BROKERS = tuple(BrokerId(NodeId(number)) for number in range(3))


def batch(base_offset: int, count: int) -> PolledBatch:
    return PolledBatch(
        base_offset=Offset(base_offset),
        last_offset=Offset(base_offset + count - 1),
        leader_epoch=LeaderEpoch(0),
        crc=1,
        producer="producer-0",
        first_record_id=base_offset,
        record_count=count,
    )


class World:
    """A consumer, its last request, and its history."""

    def __init__(
        self,
        phase: Phase = Phase.LIVE,
        *,
        reset: OffsetReset = OffsetReset.EARLIEST,
        position: Offset | None = None,
    ) -> None:
        self.now_ms = 0
        self.consumer = Consumer(
            name="consumer-0",
            phase=phase,
            settings=ConsumerSettings(auto_offset_reset=reset),
            bootstrap=BROKERS,
            partitions=(ORDERS,),
            positions={} if position is None else {ORDERS: position},
        )
        self.out: list[SendRequest] = []
        self.polls: list[PollRecorded] = []
        self.ends: list[FinalReadRecorded] = []
        self.take(self.consumer.step(inputs.Started(cause_id=CAUSE), now_ms=0))
        self.answer_metadata(leader=0, leader_epoch=3)

    def take(self, effects: Sequence[ConsumerEffect]) -> None:
        for effect in effects:
            match effect:
                case SendRequest():
                    self.out.append(effect)
                case PollRecorded():
                    self.polls.append(effect)
                case FinalReadRecorded():
                    self.ends.append(effect)

    def request(self, kind: type) -> SendRequest:
        return next(request for request in self.out if isinstance(request.request, kind))

    def answer(self, kind: type, response: messages.MetadataResponse | messages.ListOffsetsResponse) -> None:
        request = self.request(kind)
        self.out.remove(request)
        received = inputs.ResponseReceived(cause_id=CAUSE, correlation_id=request.correlation_id, response=response)
        self.take(self.consumer.step(received, now_ms=self.now_ms))

    def answer_metadata(self, *, leader: int | None, leader_epoch: int) -> None:
        partition = messages.MetadataPartition(
            partition=0,
            error=ErrorCode.NONE,
            leader=None if leader is None else BROKERS[leader],
            leader_epoch=LeaderEpoch(leader_epoch),
            replicas=BROKERS,
            isr=BROKERS,
        )
        topic = messages.MetadataTopic(
            name="orders", error=ErrorCode.NONE, topic_id=TopicId("T" * 22), partitions=(partition,)
        )
        self.answer(
            messages.MetadataRequest,
            messages.MetadataResponse(brokers=BROKERS, controller_id=NodeId(100), topics=(topic,)),
        )

    def answer_start(self, offset: int | None, error: ErrorCode = ErrorCode.NONE) -> None:
        result = messages.ListOffsetsResult(
            topic="orders", partition=0, error=error, offset=None if offset is None else Offset(offset)
        )
        self.answer(messages.ListOffsetsRequest, messages.ListOffsetsResponse(partitions=(result,)))

    def answer_fetch(
        self,
        *batches: PolledBatch,
        high_watermark: int | None = 100,
        error: ErrorCode = ErrorCode.NONE,
        preferred: int | None = None,
    ) -> None:
        request = self.request(messages.FetchRequest)
        self.out.remove(request)
        response = messages.FetchPartitionResponse(
            topic="orders",
            partition=0,
            error=error,
            high_watermark=None if high_watermark is None else Offset(high_watermark),
            preferred_read_replica=None if preferred is None else BROKERS[preferred],
        )
        received = RecordsReceived(
            cause_id=CAUSE,
            correlation_id=request.correlation_id,
            response=response,
            polled=batches,
            next_position=Offset(batches[-1].last_offset + 1) if batches else None,
        )
        self.take(self.consumer.step(received, now_ms=self.now_ms))

    def reads_from(self) -> int:
        return self.request(messages.FetchRequest).destination

    def position(self) -> int:
        fetch = self.request(messages.FetchRequest).request
        assert isinstance(fetch, messages.FetchRequest)
        return fetch.partitions[0].fetch_offset

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.take(self.consumer.step(inputs.TimerFired(cause_id=CAUSE), now_ms=self.now_ms))


def test_it_starts_at_the_log_start_and_goes_on_where_it_stopped() -> None:
    world = World()
    world.answer_start(5)
    assert world.position() == 5
    world.answer_fetch(batch(5, 3), batch(8, 2))
    assert world.position() == 10
    world.answer_fetch()
    assert world.position() == 10
    assert [(poll.position, poll.seek) for poll in world.polls] == [(5, True), (10, False)]
    assert [poll.leader_epoch for poll in world.polls] == [3, 3]


def test_out_of_range_makes_it_jump_to_the_log_start_and_say_so() -> None:
    world = World()
    world.answer_start(0)
    world.answer_fetch(batch(0, 10))
    world.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=None)
    world.pass_time(100)
    world.answer_start(2)
    world.answer_fetch(batch(2, 1))
    assert [(poll.position, poll.seek, poll.error) for poll in world.polls] == [
        (0, True, None),
        (10, False, "OFFSET_OUT_OF_RANGE"),
        (2, True, None),
    ]


@pytest.mark.parametrize(
    "error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER]
)
def test_a_change_of_leader_keeps_the_position(error: ErrorCode) -> None:
    world = World()
    world.answer_start(0)
    world.answer_fetch(batch(0, 10))
    world.pass_time(100)
    world.answer_fetch(error=error, high_watermark=None)
    world.answer_metadata(leader=2, leader_epoch=4)
    assert world.request(messages.FetchRequest).destination == 2
    assert world.position() == 10
    assert world.polls[-1].type is OperationType.INFO


def test_a_broken_connection_is_on_record_and_the_position_stays() -> None:
    world = World()
    world.answer_start(0)
    request = world.request(messages.FetchRequest)
    world.out.remove(request)
    failed = inputs.RequestFailed(
        cause_id=CAUSE, correlation_id=request.correlation_id, failure=RequestFailure.DISCONNECTED
    )
    world.take(world.consumer.step(failed, now_ms=0))
    world.pass_time(100)
    assert world.position() == 0
    assert (world.polls[0].type, world.polls[0].error) == (OperationType.INFO, "DISCONNECTED")


def test_a_final_consumer_ends_at_the_high_watermark() -> None:
    world = World(Phase.FINAL)
    world.answer_start(0)
    world.answer_fetch(batch(0, 6), high_watermark=10)
    assert not world.consumer.is_finished
    world.answer_fetch(batch(6, 4), high_watermark=10)
    assert world.consumer.is_finished
    assert [(end.type, end.start_offset, end.end_offset) for end in world.ends] == [(OperationType.OK, 0, 10)]
    assert world.out == []


def test_a_final_consumer_that_is_given_up_says_why() -> None:
    world = World(Phase.FINAL)
    world.answer_start(None, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.take(world.consumer.step(Abandoned(cause_id=CAUSE), now_ms=0))
    assert [(end.type, end.end_offset, end.error) for end in world.ends] == [
        (OperationType.INFO, None, "NOT_LEADER_OR_FOLLOWER")
    ]
    assert world.consumer.is_finished


def test_an_empty_partition_is_read_to_its_end() -> None:
    world = World(Phase.FINAL)
    world.answer_start(7)
    world.answer_fetch(high_watermark=7)
    assert [(end.start_offset, end.end_offset) for end in world.ends] == [(7, 7)]


def reading_from_follower() -> World:
    """A live consumer whose leader, broker 0, has sent it to broker 2 (KIP-392)."""
    world = World()
    world.answer_start(0)
    assert world.reads_from() == 0
    world.answer_fetch(preferred=2)
    return world


def test_it_reads_where_the_leader_sends_it_at_once() -> None:
    world = reading_from_follower()
    assert (world.reads_from(), world.position()) == (2, 0)
    world.answer_fetch(batch(0, 3))
    assert (world.reads_from(), world.position()) == (2, 3)
    assert [poll.node for poll in world.polls] == [0, 2]


def test_out_of_range_on_a_follower_only_sends_it_back_to_the_leader() -> None:
    world = reading_from_follower()
    world.answer_fetch(batch(0, 3))
    world.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=None)
    world.pass_time(100)
    assert (world.reads_from(), world.position()) == (0, 3)


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
def test_any_error_sends_it_back_to_the_leader(error: ErrorCode) -> None:
    world = reading_from_follower()
    world.answer_fetch(error=error, high_watermark=None)
    world.pass_time(100)
    assert world.reads_from() == 0


def test_a_follower_is_read_from_until_its_lease_is_over() -> None:
    world = reading_from_follower()
    world.now_ms += ConsumerSettings().metadata_max_age_ms - 1
    world.answer_fetch(batch(0, 1))
    assert world.reads_from() == 2
    world.now_ms += 1
    world.answer_fetch(batch(1, 1))
    assert world.reads_from() == 0


def test_a_new_leader_is_asked_before_a_follower_is_read_from_again() -> None:
    world = reading_from_follower()
    world.now_ms += 1000
    world.answer_fetch(error=ErrorCode.UNKNOWN_LEADER_EPOCH, high_watermark=None)
    world.answer_metadata(leader=1, leader_epoch=4)
    assert world.reads_from() == 1


def test_the_final_consumer_reads_from_leaders_alone() -> None:
    racks = {}
    for phase in Phase:
        world = World(phase)
        world.answer_start(0)
        fetch = world.request(messages.FetchRequest).request
        assert isinstance(fetch, messages.FetchRequest)
        racks[phase] = fetch.client_rack
    assert racks == {Phase.LIVE: "", Phase.FINAL: None}


@pytest.mark.parametrize(("reset", "timestamp"), [(OffsetReset.EARLIEST, -2), (OffsetReset.LATEST, -1)])
def test_a_consumer_without_a_position_resets_as_it_is_configured(reset: OffsetReset, timestamp: int) -> None:
    world = World(reset=reset)
    asked = world.request(messages.ListOffsetsRequest).request
    assert isinstance(asked, messages.ListOffsetsRequest)
    assert [each.timestamp for each in asked.partitions] == [timestamp]
    world.answer_start(42)
    assert world.position() == 42


def test_a_consumer_with_a_position_begins_there() -> None:
    world = World(position=Offset(40))
    request = world.request(messages.FetchRequest).request
    assert isinstance(request, messages.FetchRequest)
    assert request.partitions[0].fetch_offset == 40
    assert not any(isinstance(each.request, messages.ListOffsetsRequest) for each in world.out)
