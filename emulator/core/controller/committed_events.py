"""From a replayed decision to lines of the event log.

Called right after the replay, when the image shows the effect of the record on the partition; the events wait until the
record is durable. Every record leaves an event with its offset: an event log without a record's offset is incomplete.
The partitions that a record changed come from the image's own difference, so that a ClearElr record, which names no
partition, has an additional event per partition.
"""

from collections.abc import Callable
from typing import Any

from laststand.emulator.core import events, records
from laststand.emulator.core.controller.decision import (
    Cause,
    Decision,
    ElrCause,
    FencingCause,
    PartitionCause,
    RegistrationCause,
)
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import ImageDelta, PartitionDelta
from laststand.emulator.core.types import CauseId, FenceReason, MetadataOffset, TopicPartition


def committed_events(
    decision: Decision, *, offset: MetadataOffset, delta: ImageDelta, view: ClusterView, cause_id: CauseId
) -> list[events.ControllerEvent]:
    """Returns the events to write once the record at ``offset`` is durable.

    Args:
        decision: record and reason.
        offset: of the record.
        delta: the changes by the record's replay.
        view: the cluster after the record.
        cause_id: of the input that led to the record.

    Raises:
        InvariantError: the decision has no cause, or one of the wrong kind.
    """
    match decision.record:
        case records.PartitionRecord() | records.PartitionChangeRecord():
            changes = _partitions_changed(decision, offset=offset, delta=delta, view=view, cause_id=cause_id)
            return [*changes, *(event for change in changes for event in _unclean_leader(change, decision.cause))]
        case records.ClearElrRecord(topic_id=topic_id):
            cleared = events.ElrCleared(cause_id=cause_id, metadata_offset=offset, topic_id=topic_id)
            return [cleared, *_partitions_changed(decision, offset=offset, delta=delta, view=view, cause_id=cause_id)]
        case records.RegisterBrokerRecord() as record:
            cause = _registration_cause(decision.cause)
            return [
                events.BrokerRegistered(
                    cause_id=cause_id,
                    metadata_offset=offset,
                    broker_id=record.broker_id,
                    broker_epoch=record.broker_epoch,
                    incarnation_id=record.incarnation_id,
                    previous_broker_epoch=cause.previous_broker_epoch,
                    stored_broker_epoch=cause.stored_broker_epoch,
                    is_clean=cause.is_clean,
                )
            ]
        case records.BrokerRegistrationChangeRecord() as record:
            return _broker_changed(record, cause=decision.cause, offset=offset, cause_id=cause_id)
        case records.UnregisterBrokerRecord() as record:
            return [
                events.BrokerFenced(
                    cause_id=cause_id,
                    metadata_offset=offset,
                    broker_id=record.broker_id,
                    broker_epoch=record.broker_epoch,
                    reason=_fencing_reason(decision.cause),
                )
            ]
        case records.TopicRecord(name=name, topic_id=topic_id):
            return [events.TopicCreated(cause_id=cause_id, metadata_offset=offset, topic=name, topic_id=topic_id)]
        case records.RemoveTopicRecord(topic_id=topic_id):
            names = sorted({partition.topic for partition in delta.partitions})
            return [
                events.TopicDeleted(cause_id=cause_id, metadata_offset=offset, topic=name, topic_id=topic_id)
                for name in names
            ]
        case records.ConfigRecord() as record:
            return [
                events.ConfigChanged(
                    cause_id=cause_id,
                    metadata_offset=offset,
                    resource=record.resource,
                    resource_name=record.resource_name,
                    name=record.name,
                    value=record.value,
                )
            ]
        case records.FeatureLevelRecord(name=name, feature_level=level):
            return [events.FeatureChanged(cause_id=cause_id, metadata_offset=offset, name=name, feature_level=level)]
        case records.ProducerIdsRecord() as record:
            return [
                events.ProducerIdsAllocated(
                    cause_id=cause_id,
                    metadata_offset=offset,
                    broker_id=record.broker_id,
                    broker_epoch=record.broker_epoch,
                    next_producer_id=record.next_producer_id,
                )
            ]
        case (
            records.AccessControlEntryRecord()
            | records.RemoveAccessControlEntryRecord()
            | records.ClientQuotaRecord()
            | records.ControlRecord()
            | records.BeginTransactionRecord()
            | records.EndTransactionRecord()
            | records.AbortTransactionRecord()
        ) as record:
            return [
                events.OtherRecordCommitted(cause_id=cause_id, metadata_offset=offset, record=type(record).__name__)
            ]


def _partitions_changed(
    decision: Decision, *, offset: MetadataOffset, delta: ImageDelta, view: ClusterView, cause_id: CauseId
) -> list[events.PartitionChanged]:
    return [
        _partition_changed(partition, change, decision=decision, offset=offset, view=view, cause_id=cause_id)
        for partition, change in delta.partitions.items()
    ]


def _partition_changed(
    partition: TopicPartition,
    change: PartitionDelta,
    *,
    decision: Decision,
    offset: MetadataOffset,
    view: ClusterView,
    cause_id: CauseId,
) -> events.PartitionChanged:
    state = change.after
    cause = decision.cause
    if isinstance(cause, ElrCause):
        cause = PartitionCause(
            reason=cause.reason,
            election=events.Election.NONE,
            broker_id=None,
            effective_min_isr=view.effective_min_isr(partition),
        )
    if state is None or not isinstance(cause, PartitionCause):
        raise InvariantError(f"{decision} at {offset} changed {partition} to {state}")
    return events.PartitionChanged(
        cause_id=cause_id,
        topic=partition.topic,
        partition=partition.partition,
        topic_id=state.topic_id,
        metadata_offset=offset,
        reason=cause.reason,
        election=cause.election,
        broker_id=cause.broker_id,
        effective_min_isr=cause.effective_min_isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
        last_known_leader=state.last_known_leader,
        leader_recovery_state=state.leader_recovery_state,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
    )


def _unclean_leader(change: events.PartitionChanged, cause: Cause | None) -> list[events.UncleanLeaderElected]:
    if not isinstance(cause, PartitionCause) or cause.unclean is None or change.leader is None:
        return []
    unclean = cause.unclean
    return [
        events.UncleanLeaderElected(
            cause_id=change.cause_id,
            topic=change.topic,
            partition=change.partition,
            topic_id=change.topic_id,
            metadata_offset=change.metadata_offset,
            leader=change.leader,
            leader_epoch=change.leader_epoch,
            method=unclean.method,
            strategy=unclean.strategy,
            candidates=unclean.candidates,
            draw=unclean.draw,
            must_hear_from=unclean.must_hear_from,
            answers=unclean.answers,
            discarded=unclean.discarded,
            why=unclean.why,
        )
    ]


def _broker_changed(
    record: records.BrokerRegistrationChangeRecord, *, cause: Cause | None, offset: MetadataOffset, cause_id: CauseId
) -> list[events.ControllerEvent]:
    def of(kind: Callable[..., events.ControllerEvent], **more: Any) -> events.ControllerEvent:
        broker_id, broker_epoch = record.broker_id, record.broker_epoch
        return kind(cause_id=cause_id, metadata_offset=offset, broker_id=broker_id, broker_epoch=broker_epoch, **more)

    written: list[events.ControllerEvent] = []
    if isinstance(record.log_dirs, tuple):
        written.append(of(events.LogDirectoriesChanged, log_dirs=record.log_dirs))
    if record.fenced is True:
        written.append(of(events.BrokerFenced, reason=_fencing_reason(cause)))
    if record.fenced is False:
        written.append(of(events.BrokerUnfenced))
    if record.in_controlled_shutdown is True:
        written.append(of(events.ControlledShutdownStarted))
    return written


def _registration_cause(cause: Cause | None) -> RegistrationCause:
    if not isinstance(cause, RegistrationCause):
        raise InvariantError(f"a registration was decided with cause {cause}")
    return cause


def _fencing_reason(cause: Cause | None) -> FenceReason:
    if not isinstance(cause, FencingCause):
        raise InvariantError(f"a fencing was decided with cause {cause}")
    return cause.reason
