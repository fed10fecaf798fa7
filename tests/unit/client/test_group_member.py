"""A member of a group, asked and answered by hand."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

import pytest

from laststand.emulator.client.members import MemberMaker
from laststand.emulator.core import effects, inputs, messages
from laststand.emulator.core.client.group_member import GroupMember
from laststand.emulator.core.client.range_assignor import decode_assignment, encode_assignment, encode_subscription
from laststand.emulator.core.client.settings import MemberSettings
from laststand.emulator.core.client.steps import (
    Abandoned,
    GroupCommitRecorded,
    GroupMemberRecorded,
    GroupReadRecorded,
    LeaveOffered,
    MemberEffect,
    MemberInput,
    RecordsReceived,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from laststand.emulator.core.history import MemberStep, OperationType, PolledBatch
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
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

CAUSE = CauseId("test")
ORDERS = TopicPartition("orders", 0)
BATCH = PolledBatch(
    base_offset=Offset(0),
    last_offset=Offset(1),
    leader_epoch=LeaderEpoch(4),
    crc=7,
    producer="producer",
    first_record_id=0,
    record_count=2,
)
COUNTS = MappingProxyType({"orders": 2, OFFSETS_TOPIC: 1})
SETTINGS = MemberSettings(session_timeout_ms=10_000, heartbeat_interval_ms=3_000, retry_backoff_ms=100)

RequestT = TypeVar("RequestT", bound=messages.Request)


class Played:
    """A member, the requests that are out, and what it recorded."""

    def __init__(self, *, instance_id: str | None = None, counts: Mapping[str, int] = COUNTS) -> None:
        self.member = GroupMember(
            name="shop-0",
            group_id="shop",
            settings=SETTINGS,
            bootstrap=(BrokerId(NodeId(0)),),
            topics=("orders",),
            instance_id=instance_id,
        )
        self.now_ms = 1_000
        self.out: dict[type, effects.SendRequest] = {}
        self.recorded: list[MemberEffect] = []
        self.step(inputs.Started(cause_id=CAUSE))
        self.learn(counts)

    def step(self, incoming: MemberInput) -> None:
        for effect in self.member.step(incoming, now_ms=self.now_ms):
            if isinstance(effect, effects.SendRequest):
                self.out[type(effect.request)] = effect
            else:
                self.recorded.append(effect)

    def learn(self, counts: Mapping[str, int], *, leader: int | None = 0) -> None:
        topics = tuple(
            messages.MetadataTopic(
                name=name,
                error=ErrorCode.NONE,
                topic_id=TopicId(name),
                partitions=tuple(
                    messages.MetadataPartition(
                        partition=number,
                        error=ErrorCode.NONE,
                        leader=None if leader is None else BrokerId(NodeId(leader)),
                        leader_epoch=LeaderEpoch(4),
                        replicas=(),
                        isr=(),
                    )
                    for number in range(count)
                ),
            )
            for name, count in counts.items()
        )
        self.answer(messages.MetadataRequest, messages.MetadataResponse(brokers=(), controller_id=None, topics=topics))

    def asked(self, kind: type[RequestT]) -> RequestT:
        """Returns the request of a kind that is out."""
        request = self.out[kind].request
        assert isinstance(request, kind)
        return request

    def answer(self, kind: type, response: messages.Response) -> None:
        correlation_id = self.out.pop(kind).correlation_id
        self.step(inputs.ResponseReceived(cause_id=CAUSE, correlation_id=correlation_id, response=response))

    def fail(self, kind: type) -> None:
        correlation_id = self.out.pop(kind).correlation_id
        failure = RequestFailure.TIMED_OUT
        self.step(inputs.RequestFailed(cause_id=CAUSE, correlation_id=correlation_id, failure=failure))

    def wait(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.step(inputs.TimerFired(cause_id=CAUSE))

    def join(self, *, generation: int = 1, member_id: str = "m", leader: str = "other") -> None:
        """Answers its JoinGroup."""
        mine = JoinedMember(member_id=member_id, instance_id=None, metadata=encode_subscription(("orders",)))
        other = JoinedMember(member_id="other", instance_id=None, metadata=encode_subscription(("orders",)))
        response = JoinGroupResponse(
            error=ErrorCode.NONE,
            member_id=member_id,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
            leader=leader,
            members=(mine, other) if leader == member_id else (),
        )
        self.answer(JoinGroupRequest, response)

    def sync(self, *partitions: TopicPartition) -> None:
        """Answers its SyncGroup."""
        response = SyncGroupResponse(error=ErrorCode.NONE, assignment=encode_assignment(partitions))
        self.answer(SyncGroupRequest, response)

    def read(self) -> None:
        """Gives it a batch of its partition, from no position on."""
        self.answer(OffsetFetchRequest, OffsetFetchResponse(error=ErrorCode.NONE))
        listed = messages.ListOffsetsResult(topic="orders", partition=0, error=ErrorCode.NONE, offset=Offset(0))
        self.answer(messages.ListOffsetsRequest, messages.ListOffsetsResponse(partitions=(listed,)))
        self.fetched(BATCH)

    def fetched(self, *batches: PolledBatch, error: ErrorCode = ErrorCode.NONE) -> None:
        self.step(
            RecordsReceived(
                cause_id=CAUSE,
                correlation_id=self.out.pop(messages.FetchRequest).correlation_id,
                response=messages.FetchPartitionResponse(topic="orders", partition=0, error=error),
                polled=batches,
                next_position=Offset(batches[-1].last_offset + 1) if batches else None,
                next_leader_epoch=batches[-1].leader_epoch if batches else None,
            )
        )

    def commit(self, error: ErrorCode) -> None:
        """Answers its OffsetCommit."""
        self.answer(OffsetCommitRequest, OffsetCommitResponse(errors=(error,)))

    def steps(self) -> list[MemberStep]:
        return [each.step for each in self.recorded if isinstance(each, GroupMemberRecorded)]

    def commits(self) -> list[tuple[OperationType, str | None]]:
        return [(each.type, each.error) for each in self.recorded if isinstance(each, GroupCommitRecorded)]


def sizes(member: GroupMember) -> dict[str, int]:
    """Returns how much it remembers."""
    return {name: len(value) for name, value in vars(member).items() if isinstance(value, dict)}


@pytest.fixture
def played() -> Played:
    return Played()


@pytest.fixture
def reading(played: Played) -> Played:
    """A member that has a partition, and was given nothing yet."""
    played.join()
    played.sync(ORDERS)
    return played


def test_it_joins_again_with_the_id_that_it_is_given(played: Played) -> None:
    first = played.asked(JoinGroupRequest)
    required = JoinGroupResponse(error=ErrorCode.MEMBER_ID_REQUIRED, member_id="m")
    played.answer(JoinGroupRequest, required)
    assert (first.member_id, played.asked(JoinGroupRequest).member_id) == ("", "m")


def test_a_join_may_take_as_long_as_a_rebalance(played: Played) -> None:
    waits_ms = SETTINGS.rebalance_timeout_ms + SETTINGS.request_timeout_ms
    assert played.out[JoinGroupRequest].timeout_ms == waits_ms


def test_the_leader_assigns_ranges_to_everybody(played: Played) -> None:
    played.join(leader="m")
    assigned = {member: decode_assignment(data) for member, data in played.asked(SyncGroupRequest).assignments}
    assert assigned == {"m": (ORDERS,), "other": (TopicPartition("orders", 1),)}


def test_a_member_that_does_not_lead_assigns_nothing(played: Played) -> None:
    played.join()
    assert played.asked(SyncGroupRequest).assignments == ()


def test_it_reads_and_commits_as_a_member_of_its_generation(reading: Played) -> None:
    reading.read()
    request = reading.asked(OffsetCommitRequest)
    assert (request.member_id, request.generation_id, request.offsets[0].offset) == ("m", 1, 2)
    assert request.offsets[0].leader_epoch == 4
    reading.commit(ErrorCode.NONE)
    assert reading.commits() == [(OperationType.OK, None)]
    read = next(each for each in reading.recorded if isinstance(each, GroupReadRecorded))
    assert (read.member_id, read.generation_id, read.committed, read.next_position) == ("m", 1, None, 2)


def test_it_asks_for_its_position_once_for_each_assignment(reading: Played) -> None:
    reading.read()
    reading.commit(ErrorCode.NONE)
    assert OffsetFetchRequest not in reading.out
    assert reading.asked(messages.FetchRequest).partitions[0].fetch_offset == 2


def test_a_partition_without_a_leader_keeps_no_other_one_waiting(played: Played) -> None:
    played.join()
    played.sync(ORDERS, TopicPartition("orders", 1))
    played.answer(OffsetFetchRequest, OffsetFetchResponse(error=ErrorCode.NONE))
    assert played.asked(messages.ListOffsetsRequest).partitions[0].partition == 0
    failed = messages.ListOffsetsResult(
        topic="orders", partition=0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, offset=None
    )
    played.answer(messages.ListOffsetsRequest, messages.ListOffsetsResponse(partitions=(failed,)))
    played.wait(100)
    assert played.asked(OffsetFetchRequest).partitions == (TopicPartition("orders", 1),)


def test_heartbeats_keep_its_session(reading: Played) -> None:
    for _ in range(5):
        reading.wait(3_000)
        reading.answer(HeartbeatRequest, HeartbeatResponse(error=ErrorCode.NONE))
    assert reading.steps()[-1] is MemberStep.ASSIGNED


def test_its_session_ends_by_its_own_clock_and_it_joins_again(reading: Played) -> None:
    reading.wait(12_500)
    last = [each for each in reading.recorded if isinstance(each, GroupMemberRecorded)][-2:]
    assert [each.step for each in last] == [MemberStep.EXPIRED, MemberStep.JOINING]
    assert last[0].overdue_ms == 2_500
    assert reading.asked(JoinGroupRequest).member_id == "m"


def test_a_rebalance_waits_for_what_is_to_be_committed(reading: Played) -> None:
    reading.read()
    reading.wait(3_000)
    reading.answer(HeartbeatRequest, HeartbeatResponse(error=ErrorCode.REBALANCE_IN_PROGRESS))
    assert JoinGroupRequest not in reading.out
    reading.commit(ErrorCode.NONE)
    assert reading.asked(JoinGroupRequest).member_id == "m"
    assert reading.commits() == [(OperationType.OK, None)]


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(ErrorCode.ILLEGAL_GENERATION, "m"), (ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.REBALANCE_IN_PROGRESS, "m")],
)
def test_a_commit_that_is_refused_has_it_join_again(reading: Played, error: ErrorCode, member_id: str) -> None:
    reading.read()
    reading.commit(error)
    reading.wait(100)
    assert reading.asked(JoinGroupRequest).member_id == member_id
    assert reading.commits() == [(OperationType.FAIL, error.name)]
    assert reading.member.assigned == ()


@pytest.mark.parametrize(
    ("error", "member_id"), [(ErrorCode.ILLEGAL_GENERATION, "m"), (ErrorCode.UNKNOWN_MEMBER_ID, "")]
)
def test_a_heartbeat_that_is_refused_has_it_join_again(reading: Played, error: ErrorCode, member_id: str) -> None:
    reading.wait(3_000)
    reading.answer(HeartbeatRequest, HeartbeatResponse(error=error))
    reading.wait(100)
    assert reading.asked(JoinGroupRequest).member_id == member_id


def test_another_with_its_instance_id_ends_it() -> None:
    played = Played(instance_id="shop-0")
    played.join()
    played.sync(ORDERS)
    played.wait(3_000)
    assert played.asked(HeartbeatRequest).instance_id == "shop-0"
    played.answer(HeartbeatRequest, HeartbeatResponse(error=ErrorCode.FENCED_INSTANCE_ID))
    assert played.member.is_over
    assert played.steps()[-1] is MemberStep.LEFT
    assert played.member.next_deadline_ms() is None


def test_a_commit_without_an_answer_is_asked_for_again_and_may_have_been_carried_out(reading: Played) -> None:
    reading.read()
    reading.fail(OffsetCommitRequest)
    reading.wait(100)
    assert reading.asked(OffsetCommitRequest).offsets[0].offset == 2
    reading.commit(ErrorCode.ILLEGAL_GENERATION)
    assert reading.commits() == [(OperationType.INFO, "ILLEGAL_GENERATION")]


def test_a_coordinator_that_moved_is_looked_for(reading: Played) -> None:
    reading.wait(3_000)
    reading.answer(HeartbeatRequest, HeartbeatResponse(error=ErrorCode.NOT_COORDINATOR))
    assert messages.MetadataRequest in reading.out
    reading.wait(100)
    assert reading.asked(HeartbeatRequest).generation_id == 1


@pytest.mark.parametrize("error", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_sync_that_fails_begins_anew(played: Played, error: ErrorCode) -> None:
    played.join()
    played.answer(SyncGroupRequest, SyncGroupResponse(error=error))
    played.wait(100)
    assert played.asked(JoinGroupRequest).member_id == "m"


def test_an_assignment_that_comes_after_the_session_is_over_is_not_taken(played: Played) -> None:
    played.join()
    played.now_ms += SETTINGS.session_timeout_ms
    played.sync(ORDERS)
    assert played.member.assigned == ()
    assert MemberStep.ASSIGNED not in played.steps()
    assert played.asked(JoinGroupRequest).member_id == "m"


def test_the_leader_has_everybody_join_again_once_a_topic_has_more_partitions(played: Played) -> None:
    played.join(leader="m")
    played.sync(ORDERS)
    played.answer(OffsetFetchRequest, OffsetFetchResponse(error=ErrorCode.NOT_COORDINATOR))
    played.wait(SETTINGS.retry_backoff_ms)
    played.learn({"orders": 3, OFFSETS_TOPIC: 1})
    played.answer(OffsetFetchRequest, OffsetFetchResponse(error=ErrorCode.NONE))
    assert JoinGroupRequest in played.out


def test_a_topic_that_is_not_there_yet_is_asked_for_until_it_is() -> None:
    played = Played(counts={OFFSETS_TOPIC: 1})
    played.wait(SETTINGS.retry_backoff_ms)
    played.learn({"orders": 1, OFFSETS_TOPIC: 1})
    assert messages.MetadataRequest not in played.out
    played.wait(SETTINGS.retry_backoff_ms)
    assert messages.MetadataRequest not in played.out


def test_it_leaves_with_a_word(reading: Played) -> None:
    reading.step(LeaveOffered(cause_id=CAUSE))
    assert reading.asked(LeaveGroupRequest).members[0].member_id == "m"
    reading.answer(LeaveGroupRequest, LeaveGroupResponse(error=ErrorCode.NONE, members=(ErrorCode.NONE,)))
    assert reading.member.is_over
    assert reading.steps()[-1] is MemberStep.LEFT


def test_one_that_has_left_asks_for_nothing_more(reading: Played) -> None:
    reading.step(LeaveOffered(cause_id=CAUSE))
    reading.answer(LeaveGroupRequest, LeaveGroupResponse(error=ErrorCode.NONE, members=(ErrorCode.NONE,)))
    assert reading.member.next_deadline_ms() is None


def test_one_that_is_over_asks_for_nothing_more_where_its_last_request_fails(played: Played) -> None:
    played.wait(SETTINGS.metadata_max_age_ms)
    played.step(Abandoned(cause_id=CAUSE))
    played.fail(messages.MetadataRequest)
    assert played.member.next_deadline_ms() is None


def test_it_remembers_no_request_that_was_answered(reading: Played) -> None:
    reading.read()
    reading.commit(ErrorCode.NONE)
    before = sizes(reading.member)
    for _ in range(20):
        reading.fetched()
    assert sizes(reading.member) == before


def test_a_static_member_stays_away_without_a_word() -> None:
    played = Played(instance_id="shop-0")
    played.join()
    played.sync(ORDERS)
    played.step(LeaveOffered(cause_id=CAUSE))
    assert played.member.is_over
    assert LeaveGroupRequest not in played.out


def test_a_member_that_dies_may_have_committed(reading: Played) -> None:
    reading.read()
    reading.step(Abandoned(cause_id=CAUSE))
    assert reading.commits() == [(OperationType.INFO, "GIVEN_UP")]
    assert reading.steps()[-1] is MemberStep.DIED


def test_a_member_that_is_stopped_does_nothing_and_gets_all_answers_later() -> None:
    maker = MemberMaker((BrokerId(NodeId(0)),))
    name, process = maker.make("shop", 1, is_static=False, topics=("orders",), settings=SETTINGS)
    process.is_paused = True
    assert process.step(inputs.Started(cause_id=CAUSE), now_ms=0) == ()
    assert process.next_deadline_ms() is None
    process.is_paused = False
    (asked,) = process.step(inputs.TimerFired(cause_id=CAUSE), now_ms=9)
    assert isinstance(asked, effects.SendRequest)
    assert name == "shop-1"


def test_a_member_that_dies_while_it_is_stopped_gets_no_more_answers() -> None:
    process = MemberMaker((BrokerId(NodeId(0)),)).make(
        "shop", 1, is_static=False, topics=("orders",), settings=SETTINGS
    )[1]
    process.is_paused = True
    process.step(inputs.Started(cause_id=CAUSE), now_ms=0)
    process.is_paused = False
    (died,) = process.step(Abandoned(cause_id=CAUSE), now_ms=9)
    assert isinstance(died, GroupMemberRecorded)


def test_each_process_has_a_name_of_its_own() -> None:
    maker = MemberMaker((BrokerId(NodeId(0)),))
    names = [maker.make("shop", 1, is_static=True, topics=(), settings=SETTINGS)[0] for _ in range(2)]
    assert names == ["shop-1", "shop-1.1"]
