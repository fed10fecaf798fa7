"""A broker as the coordinator of groups: one shard for each partition of ``__consumer_offsets`` that it leads.

::

    elected --(all that the log holds is committed)--> reading --RecordsRead--> coordinating --another leader--> (gone)

Nothing else makes a coordinator: whoever leads the partition is it, by what it knows itself. One that was deposed and
does not know goes on to answer, as a leader does, and what it appends never commits. A leader that recovers (KIP-704)
coordinates nothing yet.
"""

from collections.abc import Iterable
from typing import NamedTuple

from laststand.emulator.core import effects, inputs
from laststand.emulator.core.broker.groups.caller import Caller
from laststand.emulator.core.broker.groups.shard import GroupShard
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.group_messages import (
    CoordinatorRequest,
    DeleteGroupRequest,
    DeleteGroupResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    GroupRequest,
    GroupResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from laststand.emulator.core.group_records import EncodeRecords
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.types import LeaderEpoch, Offset, RequestId, TopicPartition


def partition_of(group_id: str, partition_count: int) -> TopicPartition:
    """Returns the partition whose leader coordinates a group, by the hash of Java's strings (Kafka's ``Utils.abs``)."""
    code = 0
    units = group_id.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[index : index + 2], "big")) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    magnitude = 0 if signed == -(1 << 31) else abs(signed)
    return TopicPartition(OFFSETS_TOPIC, magnitude % partition_count)


class _Loading(NamedTuple):
    """A partition that is led and not coordinated yet: ``end_offset`` is where its log ended when that began."""

    partition: Partition
    leader_epoch: LeaderEpoch
    end_offset: Offset
    is_reading: bool


class GroupCoordinator:
    """Routes requests to the shards of this broker, and makes and drops shards as leaderships change."""

    def __init__(self, config: BrokerConfig, hosted: HostedPartitions, encode: EncodeRecords) -> None:
        self._config = config
        self._hosted = hosted
        self._encode = encode
        self._shards: dict[TopicPartition, GroupShard | _Loading] = {}
        self._gone: list[TopicPartition] = []

    # --- Requests -------------------------------------------------------------------------------------------------

    def handle_request(self, turn: Turn, request_id: RequestId, request: CoordinatorRequest) -> None:
        """Answers a request, at once or later."""
        caller = Caller(request_id, turn.cause_id)
        if isinstance(request, ListGroupsRequest):
            caller.answer(turn, self._listed())
            return
        partition_count = self._hosted.image.partition_counts.get(OFFSETS_TOPIC, 0)
        shard = self._shards.get(partition_of(request.group_id, partition_count)) if partition_count else None
        if isinstance(shard, GroupShard):
            shard.handle_request(turn, caller, request)
        else:
            error = ErrorCode.NOT_COORDINATOR if shard is None else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            caller.answer(turn, _refusal(request, error))

    def _listed(self) -> ListGroupsResponse:
        groups = []
        for shard in self._shards.values():
            if isinstance(shard, _Loading):
                return ListGroupsResponse(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            groups += shard.listed()
        return ListGroupsResponse(error=ErrorCode.NONE, groups=tuple(sorted(groups, key=lambda group: group.group_id)))

    def forget_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Has the positions in partitions that exist no more removed at the end of the step."""
        self._gone += partitions

    # --- Leaderships ----------------------------------------------------------------------------------------------

    def handle_read(self, turn: Turn, read: inputs.RecordsRead) -> None:
        """Begins to coordinate, unless what was read is of an earlier epoch or the partition is led no more."""
        loading = self._shards.get(read.partition)
        if isinstance(loading, _Loading) and loading.leader_epoch == read.leader_epoch:
            self._shards[read.partition] = GroupShard(
                turn, loading.partition, self._encode, self._config.properties, read.records
            )

    def settle(self, turn: Turn) -> None:
        """Follows the leaderships and high watermarks that this step changed."""
        for name in (*turn.turned, *turn.advanced):
            if name.topic == OFFSETS_TOPIC:
                self._check(turn, name)
        gone, self._gone = self._gone, []
        if gone:
            for shard in self._active():
                shard.forget_partitions(turn, gone)

    def _check(self, turn: Turn, name: TopicPartition) -> None:
        partition = self._hosted.get(name)
        is_led = partition is not None and partition.is_leader and not partition.is_recovering
        shard = self._shards.get(name)
        if shard is not None and not (
            is_led and shard.partition is partition and shard.leader_epoch == shard.partition.leader_epoch
        ):
            del self._shards[name]
            if isinstance(shard, GroupShard):
                shard.resign(turn)
            shard = None
        if shard is None and partition is not None and is_led:
            end_offset = partition.log.log_end_offset
            shard = self._shards[name] = _Loading(partition, partition.leader_epoch, end_offset, is_reading=False)
        if isinstance(shard, GroupShard):
            shard.settle(turn)
        elif shard is not None and not shard.is_reading:
            self._read_if_due(turn, name, shard)

    def _read_if_due(self, turn: Turn, name: TopicPartition, loading: _Loading) -> None:
        log = loading.partition.log
        if self._config.switches.coordinator_awaits_commit and log.high_watermark < loading.end_offset:
            return
        self._shards[name] = loading._replace(is_reading=True)
        size = log.size_between(log.log_start_offset, loading.end_offset)
        span = log.read(log.log_start_offset, upper_bound=loading.end_offset, max_bytes=size)
        turn.write(effects.ReadRecords(partition=name, leader_epoch=loading.leader_epoch, span=span))

    # --- Time -----------------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """Returns when ``handle_timer`` is due, or ``None`` if nothing waits for the time."""
        deadlines = (shard.next_deadline_ms() for shard in self._active())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def handle_timer(self, turn: Turn) -> None:
        """Does what is due."""
        for shard in self._active():
            shard.handle_timer(turn)

    def _active(self) -> list[GroupShard]:
        return [shard for shard in self._shards.values() if isinstance(shard, GroupShard)]


def _refusal(request: GroupRequest, error: ErrorCode) -> GroupResponse:
    """Returns the answer of a broker that does not coordinate the group, or not yet."""
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error=error)
        case SyncGroupRequest():
            return SyncGroupResponse(error=error)
        case HeartbeatRequest():
            # Kafka lets members live on while it loads: they hear what there is to hear from what was loaded.
            is_loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return HeartbeatResponse(error=ErrorCode.NONE if is_loading else error)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error=error)
        case OffsetCommitRequest(offsets=offsets):
            return OffsetCommitResponse(errors=(error,) * len(offsets))
        case OffsetFetchRequest():
            return OffsetFetchResponse(error=error)
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error=error)
        case DeleteGroupRequest():
            return DeleteGroupResponse(error=error)
        case DescribeGroupRequest():
            return DescribeGroupResponse(error=error)
