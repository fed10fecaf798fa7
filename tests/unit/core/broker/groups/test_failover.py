"""A group whose coordinator fails: another broker goes on with what its log holds, in virtual time."""

from collections.abc import Sequence
from typing import TypeVar

import pytest

from laststand.emulator.core import effects
from laststand.emulator.core import group_messages as asked
from laststand.emulator.core.batch import Marker, TransactionResult
from laststand.emulator.core.broker.coordination.caller import Caller
from laststand.emulator.core.broker.groups.recovery import GENERATION_JUMP, fences
from laststand.emulator.core.broker.groups.shard import GroupShard
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import CoordinatorRecord, EncodedBatch, LoadedRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_records import GroupRemoved
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.message import Message
from laststand.emulator.core.properties import NodeProperties, topic_properties
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import (
    BrokerId,
    CauseId,
    GroupRecovery,
    IncarnationId,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    RequestId,
    TopicId,
    TopicPartition,
)
from laststand.emulator.storage.coordinator_records import encode_records

NAME = TopicPartition(OFFSETS_TOPIC, 0)
TOPIC_ID = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")
ORDERS = TopicPartition("orders", 0)
PROPERTIES = NodeProperties(group_initial_rebalance_delay_ms=0)
RETENTION_MS = PROPERTIES.offsets_retention_minutes * 60_000
CHECK_MS = PROPERTIES.offsets_retention_check_interval_ms
SESSION_MS = 10_000

ResponseT = TypeVar("ResponseT", bound=Message)


class Coordinator:
    """A broker that leads the partition from a moment on, with the records that its log holds then."""

    def __init__(
        self,
        broker: int,
        records: Sequence[CoordinatorRecord],
        *,
        now_ms: int,
        properties: NodeProperties = PROPERTIES,
    ) -> None:
        self.records = [*records]
        self.now_ms = now_ms
        own = BrokerId(NodeId(broker))
        config = BrokerConfig(
            broker_id=own,
            controller_ids=(NodeId(100),),
            cluster_id="c",
            incarnation_id=IncarnationId("i"),
            properties=properties,
        )
        self.partition = Partition(
            ReplicaLog(NAME, TOPIC_ID),
            config=config,
            registrations={},
            topic_properties=topic_properties(properties, {}),
        )
        brokers = (own, BrokerId(NodeId(broker + 1)))
        state = PartitionState(
            topic_id=TOPIC_ID,
            replicas=brokers,
            isr=brokers,
            leader=own,
            leader_epoch=LeaderEpoch(broker),
            partition_epoch=PartitionEpoch(broker),
        )
        turn = self.turn()
        self.partition.become_leader(turn, state)
        loaded = [LoadedRecord(record, Offset(number)) for number, record in enumerate(records, start=-len(records))]
        self.shard = GroupShard(turn, self.partition, self.encode, properties, loaded)
        self.responses: list[object] = []

    def encode(self, records: Sequence[CoordinatorRecord]) -> EncodedBatch:
        self.records += records
        return encode_records(records, timestamp_ms=self.now_ms)

    def turn(self) -> Turn:
        return Turn(now_ms=self.now_ms, cause_id=CauseId("test"))

    def ask(self, request: asked.GroupRequest, answer: type[ResponseT]) -> ResponseT:
        """Returns the answer, once all that is written is committed."""
        turn = self.turn()
        self.shard.handle_request(turn, Caller(RequestId(0), turn.cause_id), request)
        self.collect(turn)
        self.commit()
        response = self.responses.pop()
        assert isinstance(response, answer)
        return response

    def commit(self) -> None:
        turn = self.turn()
        self.partition.log.high_watermark = self.partition.log.log_end_offset
        self.shard.settle(turn)
        self.collect(turn)

    def sleep(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        turn = self.turn()
        self.shard.handle_timer(turn)
        self.collect(turn)

    def collect(self, turn: Turn) -> None:
        self.responses += [each.response for each in turn.effects() if isinstance(each, effects.SendResponse)]

    def heartbeat(self, member_id: str, generation_id: int) -> ErrorCode:
        request = asked.HeartbeatRequest(
            group_id="g", member_id=member_id, instance_id=None, generation_id=generation_id
        )
        return self.ask(request, asked.HeartbeatResponse).error

    def commit_position(self, member_id: str, generation_id: int, offset: int) -> None:
        request = asked.OffsetCommitRequest(
            api_version=9,
            group_id="g",
            member_id=member_id,
            instance_id=None,
            generation_id=generation_id,
            offsets=(asked.CommittedOffset(partition=ORDERS, offset=offset),),
        )
        assert self.ask(request, asked.OffsetCommitResponse).errors == (ErrorCode.NONE,)

    def append_position(self, offset: int, producer: ProducerIdentity | None = None) -> None:
        """Appends a position of the group ``g`` for an administrator, or in a transaction; nothing is committed."""
        request = asked.OffsetCommitRequest(
            api_version=9,
            group_id="g",
            member_id="",
            instance_id=None,
            generation_id=-1,
            offsets=(asked.CommittedOffset(partition=ORDERS, offset=offset),),
            producer=producer,
        )
        turn = self.turn()
        self.shard.handle_request(turn, Caller(RequestId(0), turn.cause_id), request)
        self.collect(turn)

    def position(self) -> int:
        request = asked.OffsetFetchRequest(group_id="g", partitions=(ORDERS,), require_stable=True)
        (found,) = self.ask(request, asked.OffsetFetchResponse).offsets
        return found.offset

    def positions(self) -> int:
        request = asked.OffsetFetchRequest(group_id="g", partitions=None, require_stable=True)
        return len(self.ask(request, asked.OffsetFetchResponse).offsets)

    def leave(self) -> None:
        members = (asked.LeavingMember(member_id="m", instance_id=None),)
        self.ask(asked.LeaveGroupRequest(group_id="g", members=members), asked.LeaveGroupResponse)
        self.sleep(1)


def with_a_stable_group() -> tuple[Coordinator, int]:
    """Returns a coordinator, and the generation of its group of one member, ``m``."""
    coordinator = Coordinator(0, (), now_ms=0)
    join = asked.JoinGroupRequest(
        api_version=3,
        group_id="g",
        member_id="",
        drawn_member_id="m",
        instance_id=None,
        client_id="app",
        client_host="/127.0.0.1",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=(asked.GroupProtocol(name="range", metadata=b"", topics=("orders",)),),
    )
    turn = coordinator.turn()
    coordinator.shard.handle_request(turn, Caller(RequestId(0), turn.cause_id), join)
    coordinator.collect(turn)
    coordinator.sleep(1)
    joined = coordinator.responses.pop()
    assert isinstance(joined, asked.JoinGroupResponse)
    sync = asked.SyncGroupRequest(
        group_id="g",
        member_id="m",
        instance_id=None,
        generation_id=joined.generation_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(("m", b"all"),),
    )
    assert coordinator.ask(sync, asked.SyncGroupResponse).assignment == b"all"
    return coordinator, joined.generation_id


def test_the_next_coordinator_goes_on_with_the_group_and_its_positions() -> None:
    first, generation = with_a_stable_group()
    first.commit_position("m", generation, 7)
    second = Coordinator(1, first.records, now_ms=first.now_ms)
    second.commit()
    assert second.position() == 7
    assert second.heartbeat("m", generation) is ErrorCode.NONE
    second.commit_position("m", generation, 8)
    assert second.position() == 8


def test_a_position_that_the_next_coordinators_log_lacks_is_gone() -> None:
    first, generation = with_a_stable_group()
    first.commit_position("m", generation, 7)
    replicated = [*first.records]
    first.commit_position("m", generation, 9)
    second = Coordinator(1, replicated, now_ms=first.now_ms)
    second.commit()
    assert second.position() == 7


def test_members_have_a_whole_session_from_the_failover_on() -> None:
    first, generation = with_a_stable_group()
    second = Coordinator(1, first.records, now_ms=first.now_ms + SESSION_MS)
    second.commit()
    second.sleep(SESSION_MS - 1)
    assert second.heartbeat("m", generation) is ErrorCode.NONE
    second.sleep(SESSION_MS - 1)
    assert second.heartbeat("m", generation) is ErrorCode.NONE
    second.sleep(SESSION_MS)
    assert second.heartbeat("m", generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_positions_expire_under_any_coordinator_when_the_group_was_empty_for_the_retention() -> None:
    first, generation = with_a_stable_group()
    first.commit_position("m", generation, 7)
    first.now_ms += RETENTION_MS
    assert first.heartbeat("m", generation) is ErrorCode.NONE
    first.leave()
    second = Coordinator(1, first.records, now_ms=first.now_ms + RETENTION_MS - CHECK_MS - 2)
    second.commit()
    second.sleep(CHECK_MS)
    assert second.positions() == 1
    second.sleep(CHECK_MS)
    assert second.positions() == 0
    assert second.records[-1] == GroupRemoved(group_id="g")
    assert second.shard.listed() == []


def test_members_keep_the_positions_of_the_topics_that_they_subscribe_to() -> None:
    coordinator, generation = with_a_stable_group()
    coordinator.commit_position("m", generation, 7)
    coordinator.now_ms += RETENTION_MS
    assert coordinator.heartbeat("m", generation) is ErrorCode.NONE
    coordinator.sleep(1)
    assert coordinator.positions() == 1


def recovered(
    records: Sequence[CoordinatorRecord], recovery: GroupRecovery, properties: NodeProperties = PROPERTIES
) -> Coordinator:
    """Returns a coordinator that was elected uncleanly."""
    loaded = [LoadedRecord(record, Offset(number)) for number, record in enumerate(records, start=1)]
    mended = [] if recovery is GroupRecovery.OFF else fences(loaded, recovery, now_ms=1)
    coordinator = Coordinator(1, [*records, *mended], now_ms=1, properties=properties)
    coordinator.commit()
    return coordinator


def test_a_lost_generation_is_not_used_again() -> None:
    first, generation = with_a_stable_group()
    second = recovered(first.records, GroupRecovery.REBALANCE)
    assert second.heartbeat("m", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    third = Coordinator(2, second.records, now_ms=1)
    third.commit()
    assert third.heartbeat("m", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    (group,) = third.shard.membership.groups.values()
    assert group.generation_id == generation + GENERATION_JUMP
    assert recovered(first.records, GroupRecovery.OFF).heartbeat("m", generation) is ErrorCode.NONE


@pytest.mark.parametrize("require_stable", [True, False])
def test_positions_that_may_be_too_old_are_held_until_one_is_committed(require_stable: bool) -> None:  # noqa: FBT001
    first, generation = with_a_stable_group()
    first.commit_position("m", generation, 7)
    first.leave()
    held = recovered(first.records, GroupRecovery.HOLD)
    ask = asked.OffsetFetchRequest(group_id="g", partitions=(ORDERS,), require_stable=require_stable)
    answer = held.ask(ask, asked.OffsetFetchResponse)
    assert (answer.offsets, answer.unstable) == ((), (ORDERS,))
    next_one = Coordinator(2, held.records, now_ms=1)
    next_one.commit()
    assert next_one.ask(ask, asked.OffsetFetchResponse).unstable == (ORDERS,), "it is in the log"
    held.commit_position("", -1, 5)
    assert held.position() == 5
    assert recovered(first.records, GroupRecovery.REBALANCE).position() == 7


def test_a_held_position_waits_for_the_commit_of_another_and_for_the_end_of_its_transaction() -> None:
    first, generation = with_a_stable_group()
    first.commit_position("m", generation, 7)
    first.leave()
    held = recovered(first.records, GroupRecovery.HOLD)
    producer = ProducerIdentity(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0))
    ask = asked.OffsetFetchRequest(group_id="g", partitions=(ORDERS,), require_stable=False)

    def answered() -> asked.OffsetFetchResponse:
        turn = held.turn()
        held.shard.handle_request(turn, Caller(RequestId(1), turn.cause_id), ask)
        held.collect(turn)
        response = held.responses.pop()
        assert isinstance(response, asked.OffsetFetchResponse)
        return response

    def end(result: TransactionResult) -> None:
        marker = Marker(result=result, coordinator_epoch=0)
        ended = TransactionEnded(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), marker=marker)
        held.shard.offsets.end_transaction(held.turn(), ended, lambda _turn, _error: None)
        held.commit()

    held.append_position(20, producer)
    held.commit()
    end(TransactionResult.ABORT)
    assert answered().unstable == (ORDERS,), "the transaction is aborted"
    held.append_position(21)
    assert answered().unstable == (ORDERS,), "it is appended, and not committed"
    held.commit()
    assert [each.offset for each in answered().offsets] == [21]


def test_a_position_whose_commit_was_given_up_is_returned_only_once_it_is_committed() -> None:
    coordinator = Coordinator(1, (), now_ms=0)
    coordinator.append_position(7)
    coordinator.sleep(5000)
    (given_up,) = coordinator.responses
    assert given_up == asked.OffsetCommitResponse(errors=(ErrorCode.COORDINATOR_NOT_AVAILABLE,))
    coordinator.responses.clear()
    turn = coordinator.turn()
    ask = asked.OffsetFetchRequest(group_id="g", partitions=(ORDERS,), require_stable=True)
    coordinator.shard.handle_request(turn, Caller(RequestId(1), turn.cause_id), ask)
    coordinator.collect(turn)
    assert coordinator.responses == [], "the record may be lost with its leader"
    coordinator.commit()
    (told,) = coordinator.responses
    assert isinstance(told, asked.OffsetFetchResponse)
    assert [each.offset for each in told.offsets] == [7]
