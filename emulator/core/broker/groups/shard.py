"""The coordinator of the groups of one partition, from its election until it leads the partition no more.

What is asked of it and changes something is decided by what is written; what is only asked for is answered by what is
committed. After a failover both are folds of the same records.
"""

from collections.abc import Sequence
from typing import assert_never

from laststand.emulator.core.broker.groups.caller import Caller
from laststand.emulator.core.broker.groups.coordinator_log import CoordinatorLog
from laststand.emulator.core.broker.groups.group import Group, GroupState
from laststand.emulator.core.broker.groups.membership import Membership
from laststand.emulator.core.broker.groups.offsets import Offsets
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
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
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from laststand.emulator.core.group_records import (
    EncodeRecords,
    GroupMetadata,
    GroupRecord,
    GroupRemoved,
    LoadedRecord,
    OffsetCommitted,
    OffsetRemoved,
)
from laststand.emulator.core.properties import NodeProperties
from laststand.emulator.core.types import LeaderEpoch, TopicPartition


class GroupShard:
    """Coordinates the groups of a partition in one leader epoch.

    Args:
        turn: the step in which it was loaded.
        partition: led by this broker.
        encode: makes batches.
        properties: of the node.
        records: of the log.
    """

    def __init__(
        self,
        turn: Turn,
        partition: Partition,
        encode: EncodeRecords,
        properties: NodeProperties,
        records: Sequence[LoadedRecord],
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
        self.offsets = Offsets(self.log, self.membership, metadata_bytes_max=properties.offset_metadata_max_bytes)
        self._committed_groups: set[str] = set()
        for record, _ in records:
            self.membership.replay(record)
            self.offsets.written.replay(record)
        self.log.load(records)
        self.membership.start_sessions(turn)
        self.log.settle(turn)

    def _take_committed(self, record: GroupRecord) -> None:
        self.offsets.committed.replay(record)
        match record:
            case GroupMetadata() | OffsetCommitted():
                self._committed_groups.add(record.group_id)
            case GroupRemoved():
                self._committed_groups.discard(record.group_id)
            case OffsetRemoved():
                pass

    # --- Time and the log -----------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timer`` is due."""
        deadlines = (self.membership.timers.earliest_ms, self.log.next_deadline_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def handle_timer(self, turn: Turn) -> None:
        """Does what is due."""
        self.log.time_out(turn)
        self.membership.handle_timer(turn)

    def settle(self, turn: Turn) -> None:
        """Answers those who waited for the high watermark."""
        self.log.settle(turn)

    def resign(self, turn: Turn) -> None:
        """Gives up everything: what was written may commit, and nobody hears of it."""
        self.membership.unload(turn)
        self.log.fail(turn, ErrorCode.NOT_COORDINATOR)

    # --- Requests -------------------------------------------------------------------------------------------------

    def handle_request(self, turn: Turn, caller: Caller, request: GroupRequest) -> None:
        """Answers a request, at once or later."""
        match request:
            case HeartbeatRequest():
                self.membership.heartbeat(turn, caller, request)
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

    def forget_partitions(self, turn: Turn, partitions: Sequence[TopicPartition]) -> None:
        """Removes all groups' positions in partitions that exist no more."""
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
        records.append(GroupRemoved(group_id=group_id))

        def done(turn: Turn, error: ErrorCode) -> None:
            caller.answer(turn, DeleteGroupResponse(error=error))

        if self.log.append(turn, records, done):
            for record in records:
                self.membership.replay(record)
                self.offsets.written.replay(record)

    def _committed(self, group_id: str) -> Group | None:
        return self.membership.groups.get(group_id) if group_id in self._committed_groups else None

    def listed(self) -> list[ListedGroup]:
        """Returns the groups that there are."""
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
