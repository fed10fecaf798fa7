"""Maps a client's operations to lines of the run's history; real clients and the simulator share the mapping.

The writer of the history supplies the fields that a client does not know: index, time, process name and configuration.
"""

from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client.steps import (
    CommittedReadRecorded,
    FinalReadRecorded,
    GroupCommitRecorded,
    GroupMemberRecorded,
    GroupReadRecorded,
    PollRecorded,
    SendRecorded,
    SessionRecorded,
    TransactionRecorded,
)
from laststand.emulator.core.history import (
    CommittedReadOperation,
    FinalReadOperation,
    GroupCommitOperation,
    GroupMemberOperation,
    GroupReadOperation,
    PollOperation,
    SendOperation,
    SessionOperation,
    TransactionOperation,
)
from laststand.emulator.core.types import Acks


def send_line(recorded: SendRecorded, *, index: int, time_ns: int, process: str, acks: Acks) -> SendOperation:
    """Returns the line about a batch; with ``acks=0`` it has no offset."""
    return SendOperation(
        index=index,
        time_ns=time_ns,
        type=recorded.type,
        process=process,
        operation_id=recorded.operation_id,
        topic=recorded.partition.topic,
        topic_id=recorded.topic_id,
        partition=recorded.partition.partition,
        acks=int(acks),
        first_record_id=recorded.first_record_id,
        record_count=recorded.record_count,
        base_offset=None if acks is Acks.NONE else recorded.base_offset,
        attempts=recorded.attempts,
        error=recorded.error,
    )


def poll_line(recorded: PollRecorded, *, index: int, time_ns: int, process: str, phase: str) -> PollOperation:
    """Returns the line about a fetch; ``phase`` is live or final."""
    return PollOperation(
        index=index,
        time_ns=time_ns,
        type=recorded.type,
        process=process,
        operation_id=recorded.operation_id,
        phase=phase,
        topic=recorded.partition.topic,
        topic_id=recorded.topic_id,
        partition=recorded.partition.partition,
        node=recorded.node,
        position=recorded.position,
        seek=recorded.seek,
        high_watermark=recorded.high_watermark,
        log_start_offset=recorded.log_start_offset,
        batches=recorded.batches,
        error=recorded.error,
        leader_epoch=recorded.leader_epoch,
    )


def final_read_line(recorded: FinalReadRecorded, *, index: int, time_ns: int, process: str) -> FinalReadOperation:
    """Returns the line about the end of a final read."""
    return FinalReadOperation(
        index=index,
        time_ns=time_ns,
        type=recorded.type,
        process=process,
        operation_id=recorded.operation_id,
        topic=recorded.partition.topic,
        topic_id=recorded.topic_id,
        partition=recorded.partition.partition,
        start_offset=recorded.start_offset,
        end_offset=recorded.end_offset,
        error=recorded.error,
    )


def session_line(recorded: SessionRecorded, *, index: int, time_ns: int, process: str) -> SessionOperation:
    """Returns the line about a session."""
    return SessionOperation(
        index=index,
        time_ns=time_ns,
        process=process,
        transactional_id=recorded.transactional_id,
        producer_id=recorded.producer_id,
        producer_epoch=recorded.producer_epoch,
    )


def transaction_line(recorded: TransactionRecorded, *, index: int, time_ns: int, process: str) -> TransactionOperation:
    """Returns the line about a transaction."""
    return TransactionOperation(
        index=index,
        time_ns=time_ns,
        type=recorded.type,
        process=process,
        operation_id=recorded.operation_id,
        transactional_id=recorded.transactional_id,
        result="commit" if recorded.result is TransactionResult.COMMIT else "abort",
        sends=recorded.sends,
        error=recorded.error,
    )


def committed_read_line(
    recorded: CommittedReadRecorded, *, index: int, time_ns: int, process: str
) -> CommittedReadOperation:
    """Returns the line about a fetch of a reader of committed records."""
    return CommittedReadOperation(
        index=index,
        time_ns=time_ns,
        process=process,
        operation_id=recorded.operation_id,
        topic=recorded.partition.topic,
        topic_id=recorded.topic_id,
        partition=recorded.partition.partition,
        node=recorded.node,
        position=recorded.position,
        next_position=recorded.next_position,
        seek=recorded.seek,
        batches=recorded.batches,
        high_watermark=recorded.high_watermark,
        last_stable_offset=recorded.last_stable_offset,
        log_start_offset=recorded.log_start_offset,
    )


def group_read_line(recorded: GroupReadRecorded, *, index: int, time_ns: int, process: str) -> GroupReadOperation:
    """Returns the line about records read for a group."""
    return GroupReadOperation(
        index=index,
        time_ns=time_ns,
        process=process,
        operation_id=recorded.operation_id,
        group_id=recorded.group_id,
        topic=recorded.partition.topic,
        topic_id=recorded.topic_id,
        partition=recorded.partition.partition,
        node=recorded.node,
        committed=recorded.committed,
        position=recorded.position,
        next_position=recorded.next_position,
        batches=recorded.batches,
        member_id=recorded.member_id,
        generation_id=recorded.generation_id,
    )


def group_member_line(recorded: GroupMemberRecorded, *, index: int, time_ns: int, process: str) -> GroupMemberOperation:
    """Returns the line about a member of a group."""
    return GroupMemberOperation(
        index=index,
        time_ns=time_ns,
        process=process,
        group_id=recorded.group_id,
        step=recorded.step,
        member_id=recorded.member_id,
        instance_id=recorded.instance_id,
        generation_id=recorded.generation_id,
        partitions=tuple(map(str, recorded.partitions)),
        overdue_ms=recorded.overdue_ms,
    )


def group_commit_line(recorded: GroupCommitRecorded, *, index: int, time_ns: int, process: str) -> GroupCommitOperation:
    """Returns the line about a position that was to be committed."""
    return GroupCommitOperation(
        index=index,
        time_ns=time_ns,
        type=recorded.type,
        process=process,
        operation_id=recorded.operation_id,
        group_id=recorded.group_id,
        topic=recorded.partition.topic,
        partition=recorded.partition.partition,
        offset=recorded.offset,
        error=recorded.error,
        member_id=recorded.member_id,
        generation_id=recorded.generation_id,
    )
