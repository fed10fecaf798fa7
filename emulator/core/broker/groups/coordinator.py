"""A broker as the coordinator of groups: one shard for each partition of ``__consumer_offsets`` that it leads."""

from collections.abc import Iterable, Mapping

from laststand.emulator.core.broker.coordination.caller import Caller
from laststand.emulator.core.broker.coordination.hosted_shards import HostedShards, Loaded
from laststand.emulator.core.broker.groups.position_check import CheckedCaller, PositionCheck
from laststand.emulator.core.broker.groups.shard import GroupShard
from laststand.emulator.core.broker.replicas.config import BrokerConfig
from laststand.emulator.core.broker.replicas.delayed_produce import VerifyTransaction
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.in_flight_requests import InFlightRequests
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.coordinator_records import EncodeRecords
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
from laststand.emulator.core.topic_names import OFFSETS_TOPIC
from laststand.emulator.core.types import Offset, RequestId, TopicPartition


class GroupCoordinator:
    """Routes requests to the shards of this broker, and makes and drops shards as leaderships change."""

    def __init__(
        self,
        config: BrokerConfig,
        hosted: HostedPartitions,
        in_flight: InFlightRequests,
        encode: EncodeRecords,
        verify: VerifyTransaction | None,
    ) -> None:
        def make(turn: Turn, loaded: Loaded) -> GroupShard:
            return GroupShard(
                turn,
                loaded.partition,
                encode,
                config.properties,
                loaded.records,
                verify=verify,
                fences_generations=config.switches.generation_fencing,
            )

        self.shards = HostedShards(OFFSETS_TOPIC, config, hosted, make)
        self.positions = PositionCheck(config, hosted, in_flight)
        self._gone: list[TopicPartition] = []

    def handle_request(self, turn: Turn, request_id: RequestId, request: CoordinatorRequest) -> None:
        """Answers a request, at once or later."""
        caller = Caller(request_id, turn.cause_id)
        if isinstance(request, ListGroupsRequest):
            caller.answer(turn, self._listed())
            return
        shard = self.shards.of_key(request.group_id)
        if isinstance(shard, GroupShard) and isinstance(request, OffsetFetchRequest) and self.positions.is_on:
            shard.offsets.fetch(turn, CheckedCaller(self.positions, caller), request)
        elif isinstance(shard, GroupShard):
            shard.handle_request(turn, caller, request)
        else:
            caller.answer(turn, refusal(request, shard))

    def _listed(self) -> ListGroupsResponse:
        if self.shards.is_loading:
            return ListGroupsResponse(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        groups = [group for shard in self.shards.active() for group in shard.listed()]
        return ListGroupsResponse(error=ErrorCode.NONE, groups=tuple(sorted(groups, key=lambda group: group.group_id)))

    def committed_positions(self, name: TopicPartition) -> Mapping[tuple[str, TopicPartition], Offset] | None:
        """Returns the committed offsets of a partition's groups; ``None`` if this broker does not coordinate them."""
        shard = self.shards.of_partition(name)
        return shard.offsets.committed.positions() if isinstance(shard, GroupShard) else None

    def forget_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Removes the positions in deleted partitions at the end of the step."""
        if self.shards.active():
            self._gone += partitions

    def settle(self, turn: Turn) -> None:
        """Follows the leaderships and high watermarks that this step changed."""
        self.shards.settle(turn)
        gone, self._gone = self._gone, []
        if gone:
            for shard in self.shards.active():
                shard.forget_partitions(turn, gone)


def refusal(request: GroupRequest, error: ErrorCode) -> GroupResponse:
    """Returns the answer of a broker that does not coordinate the group, or not yet."""
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error=error)
        case SyncGroupRequest():
            return SyncGroupResponse(error=error)
        case HeartbeatRequest():
            # Like Kafka, keeps members alive while the group loads; later answers come from the loaded group.
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
