"""The coordinator of the groups of one partition, from the broker's election until it is no longer the leader.

Requests that change something are decided by the written records; requests that only read are answered from the
committed records. After a failover both views are built from the same records.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from laststand.emulator.core.broker.coordination.caller import Caller
from laststand.emulator.core.broker.coordination.coordinator_log import CoordinatorLog, Done
from laststand.emulator.core.broker.groups.group import Group, GroupState
from laststand.emulator.core.broker.groups.membership import Membership
from laststand.emulator.core.broker.groups.offsets import Offsets
from laststand.emulator.core.broker.replicas.delayed_produce import VerifyTransaction
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.producer_state import Verification
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import EncodeRecords, LoadedRecord
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import (
    DeleteGroupRequest,
    DeleteGroupResponse,
    DescribedMember,
    DescribeGroupRequest,
    DescribeGroupResponse,
    GroupRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListedGroup,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from laststand.emulator.core.group_records import (
    GroupMetadata,
    GroupRecord,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
)
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.timers import earliest_of
from laststand.emulator.core.transaction_messages import AddPartitions
from laststand.emulator.core.transaction_records import TransactionEnded
from laststand.emulator.core.types import LeaderEpoch, ProducerIdentity, TopicPartition


class GroupShard:
    """Coordinates the groups of a partition in one leader epoch.

    Args:
        turn: the step in which it was loaded.
        partition: led by this broker.
        encode: makes batches.
        properties: of the node.
        records: of the log.
        verify: verifies the transactions in which positions are committed; ``None`` where they are not verified.
        fences_generations: whether positions of transactions are refused from former generations.
    """

    def __init__(
        self,
        turn: Turn,
        partition: Partition,
        encode: EncodeRecords,
        properties: NodeProperties,
        records: Sequence[LoadedRecord],
        *,
        verify: VerifyTransaction | None = None,
        fences_generations: bool = True,
    ) -> None:
        self.partition = partition
        self.leader_epoch: LeaderEpoch = partition.leader_epoch
        self.log = CoordinatorLog(
            partition,
            encode,
            commit_timeout_ms=properties.offsets_commit_timeout_ms,
            on_committed=self._take_committed,
        )
        self.membership = Membership(self.log, properties)
        self.offsets = Offsets(
            self.log,
            self.membership,
            metadata_bytes_max=properties.offset_metadata_max_bytes,
            retention_ms=properties.offsets_retention_minutes * 60_000,
            fences_generations=fences_generations,
        )
        self._expiry_interval_ms = properties.offsets_retention_check_interval_ms
        self._expiry_due_ms = turn.now_ms + self._expiry_interval_ms
        self._verify = verify
        self._committed_groups: set[str] = set()
        for loaded in records:
            self._replay(loaded)
        self.log.load(records)
        self.membership.start_sessions(turn)
        self.log.settle(turn)

    def _replay(self, loaded: LoadedRecord) -> None:
        self.membership.replay(loaded.record)
        self.offsets.written.replay(loaded)

    def _take_committed(self, loaded: LoadedRecord) -> None:
        self.offsets.committed.replay(loaded)
        match loaded.record:
            case GroupMetadata(group_id=group_id) | OffsetCommitted(group_id=group_id):
                self._committed_groups.add(group_id)
            case GroupRemoved(group_id=group_id):
                self._committed_groups.discard(group_id)
            case _:
                pass

    # --- Time and the log -----------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timer`` is due."""
        return earliest_of((self.membership.timers.earliest_ms, self.log.next_deadline_ms, self._expiry_due_ms))

    def handle_timer(self, turn: Turn) -> None:
        """Handles each timer that is due."""
        self.log.time_out(turn)
        self.membership.handle_timer(turn)
        if turn.now_ms >= self._expiry_due_ms:
            self._expiry_due_ms = turn.now_ms + self._expiry_interval_ms
            self._expire(turn)

    def settle(self, turn: Turn) -> None:
        """Answers requests that waited for the high watermark."""
        self.log.settle(turn)

    def resign(self, turn: Turn) -> None:
        """Ends the shard: waiting requests get an error, although written records may still commit."""
        self.membership.unload(turn)
        self.log.fail(turn, ErrorCode.NOT_COORDINATOR)

    # --- Requests -------------------------------------------------------------------------------------------------

    def handle_request(self, turn: Turn, caller: Caller, request: GroupRequest) -> None:
        """Answers a request, at once or later."""
        match request:
            case HeartbeatRequest():
                self.membership.heartbeat(turn, caller, request)
            case OffsetCommitRequest(producer=ProducerIdentity() as producer):
                self._commit_in_transaction(turn, caller, request, producer)
            case OffsetCommitRequest():
                self.offsets.commit(turn, caller, request)
            case OffsetFetchRequest():
                self.offsets.fetch(turn, caller, request)
            case JoinGroupRequest():
                self.membership.join(turn, caller, request)
            case SyncGroupRequest():
                self.membership.sync(turn, caller, request)
            case LeaveGroupRequest():
                self.membership.leave(turn, caller, request)
            case OffsetDeleteRequest():
                self.offsets.delete(turn, caller, request)
            case DeleteGroupRequest():
                self._delete(turn, caller, request)
            case DescribeGroupRequest(group_id=group_id):
                caller.answer(turn, self._described(group_id))
            case _:
                assert_never(request)

    def _commit_in_transaction(
        self, turn: Turn, caller: Caller, request: OffsetCommitRequest, producer: ProducerIdentity
    ) -> None:
        """Commits positions with a producer's transaction, which is verified as for records (KIP-447, KIP-890)."""
        producers = self.partition.log.producers

        def commit(turn: Turn, guard: Verification | None) -> None:
            error = producers.check_own(producer, guard=guard, is_guarded=self._verify is not None)
            if error is ErrorCode.NONE:
                self.offsets.commit(turn, caller, request)
                self.log.settle(turn)
            else:
                caller.answer(turn, OffsetCommitResponse(errors=(error,) * len(request.offsets)))

        outcome: Verification | ErrorCode = ErrorCode.NONE
        if self._verify is not None:
            outcome = producers.verify(producer, sequence=0, adds_partition=request.adds_partition, now_ms=turn.now_ms)
        if self._verify is None or isinstance(outcome, ErrorCode):
            commit(turn, None)
            return
        guard = outcome

        def verified(turn: Turn, errors: Mapping[TopicPartition, ErrorCode]) -> None:
            turn.cause_id = caller.cause_id
            error = errors.get(self.partition.name)
            if error is None:
                commit(turn, guard)
                return
            is_retriable = error is ErrorCode.NOT_ENOUGH_REPLICAS
            sent = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_retriable else error
            caller.answer(turn, OffsetCommitResponse(errors=(sent,) * len(request.offsets)))

        question = AddPartitions(
            transactional_id=request.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            partitions=(self.partition.name,),
            is_verify_only=not request.adds_partition,
            client_version=2 if request.adds_partition else 0,
        )
        self._verify(turn, question, knows_abortable=request.adds_partition, done=verified)

    def end_transaction(self, turn: Turn, ended: TransactionEnded, *, raises_epoch: bool, done: Done) -> None:
        """Writes a transaction's marker if the log accepts it; arguments as for ``ProducerStates.check_marker``."""
        error = self.partition.log.producers.check_marker(ended, raises_epoch=raises_epoch)
        if error is ErrorCode.NONE:
            self.offsets.end_transaction(turn, ended, done)
            self.log.settle(turn)
        else:
            done(turn, error)

    def forget_partitions(self, turn: Turn, partitions: Sequence[TopicPartition]) -> None:
        """Removes all groups' positions in deleted partitions."""
        self.offsets.forget_partitions(turn, partitions)
        self.log.settle(turn)

    def _delete(self, turn: Turn, caller: Caller, request: DeleteGroupRequest) -> None:
        group_id = request.group_id
        group = self.membership.groups.get(group_id)
        if group is None or group.state is not GroupState.EMPTY:
            error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP
            caller.answer(turn, DeleteGroupResponse(error=error))
            return
        positions = self.offsets.written.of_group(group_id)
        records: list[GroupRecord] = [OffsetRemoved(group_id=group_id, partition=name) for name in positions]

        def done(turn: Turn, error: ErrorCode) -> None:
            caller.answer(turn, DeleteGroupResponse(error=error))

        self._write(turn, (*records, GroupRemoved(group_id=group_id)), done)

    def _expire(self, turn: Turn) -> None:
        """Removes expired positions, and empty groups without positions."""
        for group_id, group in list(self.membership.groups.items()):
            if self.offsets.expire(turn, group) and group.state is GroupState.EMPTY:
                self._write(turn, (GroupRemoved(group_id=group_id),), lambda _turn, _error: None)

    def _write(self, turn: Turn, records: Sequence[GroupRecord], done: Done) -> None:
        for appended in self.log.append(turn, records, done):
            self._replay(appended)

    def _committed(self, group_id: str) -> Group | None:
        return self.membership.groups.get(group_id) if group_id in self._committed_groups else None

    def listed(self) -> list[ListedGroup]:
        """Returns the groups of this shard, as ListGroups shows them."""
        return [
            ListedGroup(group_id=group.group_id, protocol_type=group.protocol_type or "", state=group.state.value)
            for group_id in self._committed_groups
            if (group := self.membership.groups.get(group_id)) is not None
        ]

    def _described(self, group_id: str) -> DescribeGroupResponse:
        group = self._committed(group_id)
        if group is None:
            return DescribeGroupResponse(error=ErrorCode.GROUP_ID_NOT_FOUND, state=GroupState.DEAD.value)
        protocol_name = group.protocol_name if group.state is GroupState.STABLE else None
        return DescribeGroupResponse(
            error=ErrorCode.NONE,
            state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_name=protocol_name or "",
            members=tuple(
                DescribedMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    metadata=b"" if protocol is None else protocol.metadata,
                    assignment=member.assignment,
                )
                for member in group.members.values()
                for protocol in (member.protocol(protocol_name),)
            ),
        )
