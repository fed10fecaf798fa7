"""Maps a client's operations to lines of the run's history; real clients and the simulator share the mapping.

A line has the fields that the client recorded, and a partition's topic and number as two of them. The writer of the
history supplies the fields that a client does not know: index, time, process name and configuration.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from laststand.emulator.core import history
from laststand.emulator.core.batch import TransactionResult
from laststand.emulator.core.client import steps
from laststand.emulator.core.types import Acks

_OPERATIONS: Final[Mapping[type[steps.ClientRecord], Callable[..., history.Operation]]] = MappingProxyType(
    {
        steps.FinalReadRecorded: history.FinalReadOperation,
        steps.SessionRecorded: history.SessionOperation,
        steps.TransactionRecorded: history.TransactionOperation,
        steps.CommittedReadRecorded: history.CommittedReadOperation,
        steps.GroupReadRecorded: history.GroupReadOperation,
        steps.GroupCommitRecorded: history.GroupCommitOperation,
        steps.GroupMemberRecorded: history.GroupMemberOperation,
        steps.GroupPositionRecorded: history.GroupPositionOperation,
    }
)
"""Of all but sends and polls: of these a run has as many as batches, and field by field is several times as fast."""


def history_line(
    recorded: steps.ClientRecord,
    *,
    index: int,
    time_ns: int,
    process: str,
    acks: Acks | None = None,
    phase: str | None = None,
) -> history.Operation:
    """Returns the line about an operation.

    Args:
        recorded: by the client.
        index: of the line.
        time_ns: of the line.
        process: the client's name.
        acks: of a producer; a send with ``acks=0`` has no offset.
        phase: of a consumer that polls: live or final.
    """
    match recorded:
        case steps.SendRecorded():
            assert acks is not None, "a producer has acks"
            return history.SendOperation(
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
        case steps.PollRecorded():
            assert phase is not None, "a consumer that polls is live or final"
            return history.PollOperation(
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
        case _:
            fields = _shared_fields(recorded)
            return _OPERATIONS[type(recorded)](index=index, time_ns=time_ns, process=process, **fields)


def _shared_fields(recorded: steps.ClientRecord) -> dict[str, Any]:
    """Returns the fields of a record as its line has them."""
    fields: dict[str, Any] = {name: getattr(recorded, name) for name in recorded.__struct_fields__}
    if "partition" in fields:
        fields |= {"topic": fields["partition"].topic, "partition": fields["partition"].partition}
    match recorded:
        case steps.TransactionRecorded(result=result):
            fields["result"] = "commit" if result is TransactionResult.COMMIT else "abort"
        case steps.GroupMemberRecorded(partitions=partitions):
            fields["partitions"] = tuple(map(str, partitions))
        case _:
            pass
    return fields
