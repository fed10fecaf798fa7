"""OffsetForLeaderEpoch: where an epoch ends on the leader (KIP-101, KIP-279).

An undefined result is no error: epoch and end are then both ``None``.
"""

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions, check_leader_epoch
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import TopicPartition


def offsets_for_leader_epochs(
    hosted: HostedPartitions, request: messages.OffsetForLeaderEpochRequest
) -> messages.OffsetForLeaderEpochResponse:
    """Answers each position of a request."""
    return messages.OffsetForLeaderEpochResponse(
        partitions=tuple(_look_up(hosted, asked) for asked in request.partitions)
    )


def _look_up(hosted: HostedPartitions, asked: messages.EpochPosition) -> messages.EpochPositionResult:
    found = hosted.find(TopicPartition(asked.topic, asked.partition))
    if isinstance(found, ErrorCode):
        return messages.EpochPositionResult(topic=asked.topic, partition=asked.partition, error=found)
    error = check_leader_epoch(found, asked.current_leader_epoch)
    if error is ErrorCode.NONE and not found.is_leader:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    end = None
    if error is ErrorCode.NONE:
        end = found.log.epochs.end_offset_for(asked.leader_epoch, log_end_offset=found.log.log_end_offset)
    return messages.EpochPositionResult(
        topic=asked.topic,
        partition=asked.partition,
        error=error,
        leader_epoch=None if end is None else end.leader_epoch,
        end_offset=None if end is None else end.end_offset,
    )
