"""Produce requests: the order of the checks, and when an acks=all append is complete (``ReplicaManager``).

An append is never undone: an error on one partition leaves the others as they are, and a request that times out leaves
its records in the leader's log, where they may commit later.
"""

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.batch import BatchDescriptor, InvalidBatch
from laststand.emulator.core.broker.replicas.hosted import HostedPartitions
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.producer_state import DuplicateBatch, RejectedBatch, Verification
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import Acks, Offset, RequestId


class Appended(msgspec.Struct, frozen=True):
    """A batch is in the log, appended now or by an earlier try; it is committed at ``required_offset`` (exclusive).

    ``duplicate_timestamp_ms`` is the largest timestamp of the batch that the earlier try appended.
    """

    base_offset: Offset
    required_offset: Offset
    duplicate_timestamp_ms: int | None = None


class Refused(msgspec.Struct, frozen=True):
    """A batch was not appended."""

    error: ErrorCode


def check_batch(partition: Partition, batch: BatchDescriptor | InvalidBatch) -> ErrorCode:
    """Validates a client's batch for a partition, in Kafka's order."""
    if isinstance(batch, InvalidBatch):
        return batch.error
    if batch.size > partition.topic_properties.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if batch.size > partition.topic_properties.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    if batch.base_offset != 0 or batch.record_count < 1 or batch.is_control:
        return ErrorCode.INVALID_RECORD
    return ErrorCode.NONE


def append_batch(
    turn: Turn,
    hosted: HostedPartitions,
    asked: messages.ProducePartition,
    *,
    acks: int,
    is_guarded: bool = False,
    guard: Verification | None = None,
    request_id: RequestId | None = None,
) -> Appended | Refused:
    """Appends one batch on the leader, or returns the error; a duplicate counts as appended at its old offsets.

    Args:
        turn: the step.
        hosted: the broker's partitions.
        asked: the batch.
        acks: of the request.
        is_guarded: whether transactions are verified.
        guard: the verification of the batch's transaction.
        request_id: of the request, if the request came in an earlier step.
    """
    partition = hosted.find_leader(asked.topic_partition)
    if isinstance(partition, ErrorCode):
        return Refused(partition)
    # acks 0 and 1 are never refused for the size of the ISR.
    if acks == Acks.ALL and partition.is_under_min_isr:
        return Refused(ErrorCode.NOT_ENOUGH_REPLICAS)
    error = check_batch(partition, asked.batch)
    if error is not ErrorCode.NONE or isinstance(asked.batch, InvalidBatch):
        return Refused(error)
    log = partition.log
    verdict = log.producers.check(asked.batch, guard=guard, is_guarded=is_guarded)
    if isinstance(verdict, RejectedBatch):
        return Refused(verdict.error)
    if isinstance(verdict, DuplicateBatch):
        return Appended(verdict.base_offset, Offset(verdict.last_offset + 1), verdict.max_timestamp_ms)
    batch = asked.batch.stamped(log.log_end_offset, partition.leader_epoch)
    partition.append_as_leader(turn, batch, request_id)
    return Appended(batch.base_offset, batch.next_offset)


def commit_result(partition: Partition | None, required_offset: Offset) -> ErrorCode | None:
    """Returns the outcome of an acks=all append: its error (NONE for success), or ``None`` while it has to wait.

    Min ISR is compared with the maximal ISR here, but with the committed ISR when the high watermark advances. Only
    this difference can lead to NOT_ENOUGH_REPLICAS_AFTER_APPEND (``Partition.checkEnoughReplicasReachOffset``).
    """
    if partition is None or not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.log.high_watermark < required_offset:
        return None
    if len(partition.maximal_isr) < partition.effective_min_isr:
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE
