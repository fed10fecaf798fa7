"""The outcome of a run as rows: the run itself, its verdict, the lost records, the final logs."""

from collections.abc import Iterator

from laststand.emulator.analysis.run_source import RunSource
from laststand.emulator.analysis.schema import Nanoseconds, Records
from laststand.emulator.analysis.tables import (
    AcksCount,
    CheckOutcome,
    LostRecordRow,
    ReplicaBatchRow,
    RunRow,
    VerdictRow,
    row_of,
)
from laststand.emulator.core import events
from laststand.emulator.core.history import OperationType, SendOperation
from laststand.emulator.core.types import LeaderEpoch, NodeId, NodeRole, Offset
from laststand.emulator.verification.facts.batches import LostBatch
from laststand.emulator.verification.facts.losses import LossClass
from laststand.emulator.verification.judge import report_on
from laststand.emulator.verification.tables.client_history import SentBatch


def run_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, RunRow]]:
    """Yields the run, with the time of its first event."""
    sends = [operation for operation in source.operations if isinstance(operation, SendOperation)]
    begins = [send.time_ns for send in sends if send.type is OperationType.INVOKE]
    ends = [send.time_ns for send in sends if send.type is not OperationType.INVOKE]
    started = source.evidence.facts.cluster.events.of(events.NodeStarted)
    clock = source.clock
    yield (
        clock.begin_ns,
        RunRow(
            end_s=clock.seconds(clock.end_ns),
            workload_begin_s=clock.seconds(min(begins)) if begins else None,
            workload_end_s=clock.seconds(max(ends)) if ends else None,
            started=source.run.started,
            brokers=len({each.node for each in started if each.event.role is NodeRole.BROKER}),
            switches=dict(source.evidence.timeline.switches()),
            problem=next((ended.problem for ended in source.evidence.timeline.of(events.RunEnded)), None),
        ),
    )


def verdict_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, VerdictRow]]:
    """Yields the run's verdict, with the time of its end."""
    report = report_on(source.run, source.evidence)
    yield (
        source.clock.end_ns,
        VerdictRow(
            verdict=report.verdict.value,
            guarantee=None if report.guarantee is None else report.guarantee.value,
            lost_records=Records(report.lost_records),
            violated=tuple(check.check_id for check in report.violated()),
            unknown_reasons=report.unknown_reasons,
            checks=tuple(
                CheckOutcome(check_id=check.check_id, status=check.status.value, count=check.count)
                for check in report.checks
            ),
            counts=tuple(
                AcksCount(
                    acks=counts.acks,
                    sent=Records(counts.sent),
                    acked=Records(counts.acked),
                    lost=Records(counts.lost),
                    never_acked=Records(counts.never_acked),
                )
                for counts in report.counts
            ),
        ),
    )


def lost_record_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, LostRecordRow]]:
    """Yields every lost batch, with the time of its acknowledgement."""
    acknowledged: dict[str, int] = {
        operation.operation_id: operation.time_ns
        for operation in source.operations
        if isinstance(operation, SendOperation) and operation.type is OperationType.OK
    }
    for partition in source.evidence.facts.partitions():
        for lost in partition.lost:
            time_ns = acknowledged[lost.batch.operation_id]
            yield Nanoseconds(time_ns), _lost_record(lost, topic=partition.topic, partition=partition.partition)
        for unplaced in partition.unplaced.lost:
            yield Nanoseconds(acknowledged[unplaced.operation_id]), _lost_without_offset(unplaced)


def _lost_record(lost: LostBatch, *, topic: str, partition: int) -> LostRecordRow:
    batch, lacking = lost.batch, lost.lacking
    return LostRecordRow(
        topic=topic,
        partition=partition,
        topic_id=batch.topic_id,
        base_offset=Offset(batch.base_offset),
        last_offset=Offset(batch.last_offset),
        record_count=Records(batch.record_count),
        acks=batch.acks,
        operation_id=batch.operation_id,
        acknowledged_by=None if batch.node is None else NodeId(batch.node),
        leader_epoch=None if batch.leader_epoch is None else LeaderEpoch(batch.leader_epoch),
        acked_epoch=None if batch.acked_epoch is None else LeaderEpoch(batch.acked_epoch),
        loss_class=lost.loss_class.value,
        holders=tuple(NodeId(node) for node in lost.holders),
        lacking_leader=None if lacking is None else NodeId(lacking.node),
        lacking_epoch=None if lacking is None else LeaderEpoch(lacking.leader_epoch),
    )


def _lost_without_offset(batch: SentBatch) -> LostRecordRow:
    return LostRecordRow(
        topic=batch.topic,
        partition=batch.partition,
        topic_id=batch.topic_id,
        base_offset=None,
        last_offset=None,
        record_count=Records(batch.record_count),
        acks=batch.acks,
        operation_id=batch.operation_id,
        acknowledged_by=None if batch.node is None else NodeId(batch.node),
        leader_epoch=None,
        acked_epoch=None,
        loss_class=LossClass.GONE_FOR_CONSUMERS.value,
        holders=(),
        lacking_leader=None,
        lacking_epoch=None,
    )


def replica_batch_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, ReplicaBatchRow]]:
    """Yields every batch of every final log, with the time of the run's end."""
    for partition in source.evidence.facts.partitions():
        for batch in partition.final_batches:
            yield source.clock.end_ns, row_of(ReplicaBatchRow, batch)
