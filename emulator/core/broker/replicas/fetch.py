"""One partition's answer to a fetch, for followers and consumers (``Partition.readRecords``).

The checks come in Kafka's order: divergence is checked before an offset beyond the log end. The caller updates the
follower's state after the read, so the response has the high watermark from before the update
(Kafka's ``ReplicaManager.fetchMessages``).
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.batch import AbortedTransaction, EpochEndOffset, LogSpan
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions, check_leader_epoch
from laststand.emulator.core.broker.replicas.partition import Partition, PartitionRole
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerEpoch, BrokerId, IsolationLevel, LeaderEpoch, Offset


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of a fetch: a replica with its broker epoch, or a consumer (``replica_id`` is ``None``).

    ``isolation_level`` and ``client_rack`` are set for consumers only. A consumer without ``client_rack`` is older than
    KIP-392, and only the leader serves it.
    """

    replica_id: BrokerId | None
    replica_epoch: BrokerEpoch | None = None
    client_rack: str | None = None
    is_cut_allowed: bool = False
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED

    @property
    def may_read_follower(self) -> bool:
        """A follower may serve the fetch: a consumer that names its rack sent it."""
        return self.replica_id is None and self.client_rack is not None


class ReadFailed(msgspec.Struct, frozen=True):
    """The partition cannot be read on this broker, or not by this reader."""

    error: ErrorCode


class Diverging(msgspec.Struct, frozen=True):
    """The follower's log has records that this log lacks; nothing is read."""

    partition: Partition
    end: EpochEndOffset


class Read(msgspec.Struct, frozen=True):
    """The result of a read: ``span`` is ``None`` at the end of what the reader may see."""

    partition: Partition
    span: LogSpan | None


class Redirected(msgspec.Struct, frozen=True):
    """The consumer should read from a follower in its rack; nothing is read here (KIP-392)."""

    partition: Partition
    replica: BrokerId


ReadResult: TypeAlias = ReadFailed | Diverging | Redirected | Read


def find_readable(hosted: HostedPartitions, asked: messages.FetchPartition, reader: Reader) -> Partition | ErrorCode:
    """Returns the partition if the reader may fetch it here, else the error; does not check offsets."""
    if asked.topic_id is not None and asked.topic_id not in hosted.image.topic_names:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = hosted.find(asked.topic_partition)
    if not isinstance(partition, Partition):
        return partition
    if asked.topic_id is not None and asked.topic_id != partition.log.topic_id:
        return ErrorCode.INCONSISTENT_TOPIC_ID
    error = check_leader_epoch(partition, asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return error
    if not partition.is_leader and not (partition.role is PartitionRole.FOLLOWER and reader.may_read_follower):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if reader.replica_id is not None and reader.replica_id not in partition.followers:
        has_epoch = asked.current_leader_epoch is not None
        return ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
    return partition


def find_divergence(partition: Partition, asked: messages.FetchPartition) -> EpochEndOffset | ErrorCode:
    """Compares the follower's last epoch with this log's history; NONE where they agree (KIP-595)."""
    last_fetched_epoch = asked.last_fetched_epoch
    if last_fetched_epoch is None:
        return ErrorCode.NONE
    log = partition.log
    end = log.epochs.end_offset_for(last_fetched_epoch, log_end_offset=log.log_end_offset)
    if end is None or asked.fetch_offset < log.log_start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if end.leader_epoch < last_fetched_epoch or end.end_offset < asked.fetch_offset:
        return end
    return ErrorCode.NONE


def visible_end_offset(partition: Partition, reader: Reader) -> Offset:
    """Returns the offset up to which the reader may see records."""
    if reader.replica_id is not None:
        return partition.log.log_end_offset
    if reader.isolation_level is IsolationLevel.READ_COMMITTED:
        return partition.log.last_stable_offset
    return partition.log.high_watermark


def read_partition(
    hosted: HostedPartitions, asked: messages.FetchPartition, reader: Reader, *, bytes_left: int, bytes_read: int
) -> ReadResult:
    """Reads one partition for one reader.

    Args:
        hosted: the broker's partitions.
        asked: the partition and the position to read.
        reader: the sender of the fetch.
        bytes_left: bytes left of the response's limit.
        bytes_read: bytes read from earlier partitions of the request; if 0, the first batch is returned whole
            (KIP-74).
    """
    partition = find_readable(hosted, asked, reader)
    if not isinstance(partition, Partition):
        return ReadFailed(partition)
    divergence = find_divergence(partition, asked)
    if isinstance(divergence, EpochEndOffset):
        return Diverging(partition, divergence)
    log = partition.log
    if divergence is not ErrorCode.NONE or not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
        return ReadFailed(ErrorCode.OFFSET_OUT_OF_RANGE)
    max_bytes = min(asked.partition_max_bytes, bytes_left)
    span = log.read(
        asked.fetch_offset,
        upper_bound=visible_end_offset(partition, reader),
        max_bytes=max_bytes,
        is_cut_allowed=reader.is_cut_allowed,
    )
    if span is not None and span.size > max_bytes and bytes_read > 0:
        span = None
    return Read(partition, span)


def partition_response(
    hosted: HostedPartitions, asked: messages.FetchPartition, result: ReadResult, reader: Reader
) -> messages.FetchPartitionResponse:
    """Returns the answer that belongs to a result."""
    match result:
        case Read(partition, span):
            return _success(asked, partition, reader, span=span)
        case Diverging(partition, end):
            return _success(asked, partition, reader, diverging=end)
        case Redirected(partition, replica):
            return _success(asked, partition, reader, preferred_read_replica=replica)
        case ReadFailed(error):
            return _failure(hosted, asked, error)


def _success(
    asked: messages.FetchPartition,
    partition: Partition,
    reader: Reader,
    *,
    span: LogSpan | None = None,
    diverging: EpochEndOffset | None = None,
    preferred_read_replica: BrokerId | None = None,
) -> messages.FetchPartitionResponse:
    log = partition.log
    last_stable_offset: Offset | None = None
    aborted: tuple[AbortedTransaction, ...] = ()
    if reader.replica_id is None:
        is_held = log.last_stable_offset < log.high_watermark
        last_stable_offset = log.last_stable_offset if is_held else None
        if span is not None and reader.isolation_level is IsolationLevel.READ_COMMITTED:
            aborted = log.aborted_transactions(asked.fetch_offset, span.end_offset)
    return messages.FetchPartitionResponse(
        topic=asked.topic,
        partition=asked.partition,
        error=ErrorCode.NONE,
        high_watermark=log.high_watermark,
        last_stable_offset=last_stable_offset,
        aborted_transactions=aborted,
        log_start_offset=log.log_start_offset,
        diverging_epoch=None if diverging is None else diverging.leader_epoch,
        diverging_end_offset=None if diverging is None else diverging.end_offset,
        preferred_read_replica=preferred_read_replica,
        span=span,
    )


def _failure(
    hosted: HostedPartitions, asked: messages.FetchPartition, error: ErrorCode
) -> messages.FetchPartitionResponse:
    leader: BrokerId | None = None
    leader_epoch: LeaderEpoch | None = None
    state = hosted.image.partitions.get(asked.topic_partition)
    if state is not None and error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        leader, leader_epoch = state.leader, state.leader_epoch
    return messages.FetchPartitionResponse(
        topic=asked.topic,
        partition=asked.partition,
        error=error,
        current_leader=leader,
        current_leader_epoch=leader_epoch,
    )
