"""ListOffsets: where a log starts, ends, or held a timestamp (``Partition.fetchOffsetForTimestamp``).

A client gets no offset at or above a new leader's high watermark until that has reached the start of the leader's
epoch: before, offsets could seem to go back (KIP-207). Replicas see everything.
"""

from enum import Enum
from typing import Final

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions, check_leader_epoch
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicPartition

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2


class Asker(Enum):
    """Who asks for offsets."""

    CLIENT = "client"
    REPLICA = "replica"


def list_offsets(hosted: HostedPartitions, request: messages.ListOffsetsRequest) -> messages.ListOffsetsResponse:
    """Answers each position of a request."""
    asker = Asker.CLIENT if request.replica_id is None else Asker.REPLICA
    results: list[messages.ListOffsetsResult] = []
    for asked in request.partitions:
        partition = hosted.find(TopicPartition(asked.topic, asked.partition))
        if isinstance(partition, ErrorCode):
            results.append(messages.ListOffsetsResult(topic=asked.topic, partition=asked.partition, error=partition))
        else:
            results.append(list_offset(partition, asked, asker))
    return messages.ListOffsetsResponse(partitions=tuple(results))


def list_offset(partition: Partition, asked: messages.ListOffsetsPosition, asker: Asker) -> messages.ListOffsetsResult:
    """Answers one position; only the leader knows. A timestamp above all others gives no offset and no error."""
    error = check_leader_epoch(partition, asked.current_leader_epoch)
    if error is ErrorCode.NONE and not partition.is_leader:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    offset: Offset | None = None
    leader_epoch: LeaderEpoch | None = None
    if error is ErrorCode.NONE:
        log = partition.log
        end_offset = log.log_end_offset if asker is Asker.REPLICA else log.high_watermark
        is_behind = asker is Asker.CLIENT and log.high_watermark < partition.epoch_start_offset
        if asked.timestamp == EARLIEST_TIMESTAMP:
            offset, leader_epoch = log.log_start_offset, log.epoch_at(log.log_start_offset)
        elif asked.timestamp == LATEST_TIMESTAMP:
            offset, leader_epoch = end_offset, log.epochs.latest_epoch
            if is_behind:
                error = ErrorCode.OFFSET_NOT_AVAILABLE
        else:
            found = log.offset_for_timestamp(asked.timestamp)
            if found is not None and found[0] < end_offset:
                offset, leader_epoch = found
            elif is_behind:
                error = ErrorCode.OFFSET_NOT_AVAILABLE
    if error is not ErrorCode.NONE:
        offset = leader_epoch = None
    return messages.ListOffsetsResult(
        topic=asked.topic, partition=asked.partition, error=error, offset=offset, leader_epoch=leader_epoch
    )
