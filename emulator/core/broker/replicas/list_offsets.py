"""ListOffsets: where a log starts, ends, or held a timestamp (``Partition.fetchOffsetForTimestamp``).

A client gets no offset at or above a new leader's high watermark until the high watermark has reached the start of the
leader's epoch: otherwise offsets could seem to go back (KIP-207). Replicas get all offsets.
"""

from enum import Enum

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions, check_leader_epoch
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import IsolationLevel, LeaderEpoch, Offset, TopicPartition


class Asker(Enum):
    """The sender of a ListOffsets request."""

    CLIENT = "client"
    COMMITTED_CLIENT = "client that reads committed records"
    REPLICA = "replica"
    DEBUGGER = "debugger"


def list_offsets(hosted: HostedPartitions, request: messages.ListOffsetsRequest) -> messages.ListOffsetsResponse:
    """Answers each position of a request."""
    asker = _asker(request)
    results: list[messages.ListOffsetsResult] = []
    for asked in request.partitions:
        partition = hosted.find(TopicPartition(asked.topic, asked.partition))
        if isinstance(partition, ErrorCode):
            results.append(messages.ListOffsetsResult(topic=asked.topic, partition=asked.partition, error=partition))
        else:
            results.append(list_offset(partition, asked, asker))
    return messages.ListOffsetsResponse(partitions=tuple(results))


def _asker(request: messages.ListOffsetsRequest) -> Asker:
    if request.replica_id is None:
        is_committed = request.isolation_level is IsolationLevel.READ_COMMITTED
        return Asker.COMMITTED_CLIENT if is_committed else Asker.CLIENT
    return Asker.DEBUGGER if request.replica_id == messages.DEBUGGING_CONSUMER else Asker.REPLICA


def _end_offset(log: ReplicaLog, asker: Asker) -> Offset:
    match asker:
        case Asker.CLIENT:
            return log.high_watermark
        case Asker.COMMITTED_CLIENT:
            return log.last_stable_offset
        case Asker.REPLICA | Asker.DEBUGGER:
            return log.log_end_offset


def list_offset(partition: Partition, asked: messages.ListOffsetsPosition, asker: Asker) -> messages.ListOffsetsResult:
    """Answers one position; only the leader answers, except to a debugging replica.

    A timestamp above those of all records gives no offset and no error.
    """
    error = check_leader_epoch(partition, asked.current_leader_epoch)
    if error is ErrorCode.NONE and not partition.is_leader and asker is not Asker.DEBUGGER:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    offset: Offset | None = None
    leader_epoch: LeaderEpoch | None = None
    timestamp: int | None = None
    if error is ErrorCode.NONE:
        log = partition.log
        end_offset = _end_offset(log, asker)
        is_client = asker in (Asker.CLIENT, Asker.COMMITTED_CLIENT)
        is_behind = is_client and log.high_watermark < partition.epoch_start_offset
        if asked.timestamp == messages.EARLIEST_TIMESTAMP:
            offset, leader_epoch = log.log_start_offset, _epoch_at_start(log)
        elif asked.timestamp == messages.LATEST_TIMESTAMP:
            offset, leader_epoch = end_offset, log.epochs.latest_epoch
            if is_behind:
                error = ErrorCode.OFFSET_NOT_AVAILABLE
        else:
            is_max = asked.timestamp == messages.MAX_TIMESTAMP
            found = log.offset_for_max_timestamp() if is_max else log.offset_for_timestamp(asked.timestamp)
            if found is not None and found[0] < end_offset:
                offset, leader_epoch, timestamp = found
            elif is_behind:
                error = ErrorCode.OFFSET_NOT_AVAILABLE
    if error is not ErrorCode.NONE:
        offset = leader_epoch = timestamp = None
    return messages.ListOffsetsResult(
        topic=asked.topic,
        partition=asked.partition,
        error=error,
        offset=offset,
        leader_epoch=leader_epoch,
        timestamp=timestamp,
    )


def _epoch_at_start(log: ReplicaLog) -> LeaderEpoch | None:
    """Returns the epoch at the log start, even if the log is empty (``LeaderEpochFileCache.earliestEntry``)."""
    entries = log.epochs.entries
    return entries[0].leader_epoch if entries and entries[0].start_offset <= log.log_start_offset else None
