"""Changing dynamic configuration, and what a new min ISR does to eligible leader replicas and reassignments.

With ELR on, ``min.insync.replicas`` cannot be set per broker, the cluster's value cannot be deleted, and a change of it
may empty ELRs in the same batch. KIP-966 empties the ELRs of partitions whose ISR has at least the new min ISR. In
other partitions the high watermark stands still under the new value as under the old one, so every ELR member still
holds all committed records. Kafka's ``ConfigurationControlManager`` empties all ELRs, whether the value rises or falls,
also of partitions that are offline and have no other candidate (switch ``clear_elr_on_min_isr_change``). A reassignment
that waited for min ISR completes if the ISR has the new one.
"""

from collections.abc import Iterator, Mapping

import msgspec

from laststand.emulator.core import events, records
from laststand.emulator.core.controller.decision import Decision, ElrCause, PartitionCause
from laststand.emulator.core.controller.features import is_elr_enabled
from laststand.emulator.core.controller.min_isr import MIN_ISR
from laststand.emulator.core.controller.partition_change import PartitionTarget
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.effective_config import CLUSTER
from laststand.emulator.core.errors import ConfigError, ErrorCode
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.properties import check_topic_properties, node_properties
from laststand.emulator.core.switches import ClearElr
from laststand.emulator.core.types import ChangeReason, ConfigResource, TopicPartition


class ConfigOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer for one resource, and what it writes."""

    error: ErrorCode
    message: str = ""
    decisions: tuple[Decision, ...] = ()


def alter_config(
    view: ClusterView, resource: ConfigResource, resource_name: str, changes: Mapping[str, str | None]
) -> ConfigOutcome:
    """Decides on IncrementalAlterConfigs of one resource; ``None`` deletes an entry."""
    if resource is ConfigResource.TOPIC and resource_name not in view.image.topics:
        message = f"there is no topic {resource_name!r}"
        return ConfigOutcome(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message)
    values = {name: value for name, value in changes.items() if value is not None}
    try:
        if resource is ConfigResource.TOPIC:
            check_topic_properties(values)
        else:
            node_properties(values)
    except ConfigError as error:
        return ConfigOutcome(error=ErrorCode.INVALID_CONFIG, message=str(error))
    elr_enabled = is_elr_enabled(view.image, view.switches)
    if elr_enabled and MIN_ISR in changes and resource is ConfigResource.BROKER:
        if resource_name != CLUSTER:
            message = f"{MIN_ISR} cannot differ between brokers while eligible leader replicas are on"
            return ConfigOutcome(error=ErrorCode.INVALID_CONFIG, message=message)
        if changes[MIN_ISR] is None:
            message = f"the cluster's {MIN_ISR} cannot be deleted while eligible leader replicas are on"
            return ConfigOutcome(error=ErrorCode.INVALID_CONFIG, message=message)
    decisions = [
        Decision(record=records.ConfigRecord(resource=resource, resource_name=resource_name, name=name, value=value))
        for name, value in changes.items()
        if _is_written(view, resource, resource_name, name, value)
    ]
    if any(_is_min_isr(decision) for decision in decisions):
        topic = resource_name if resource is ConfigResource.TOPIC else None
        changed = _Changed(view.image, resource, resource_name, changes)
        if elr_enabled:
            decisions += _clear_elr(view, topic, changed)
        for name in _partitions(view, topic):
            decisions += _complete_reassignment(view, name, changed)
    return ConfigOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))


class _Changed:
    """Configuration after a change."""

    def __init__(
        self, image: MetadataImage, resource: ConfigResource, resource_name: str, changes: Mapping[str, str | None]
    ) -> None:
        self._image = image
        self._changed = (resource, resource_name)
        self._changes = changes

    def config(self, resource: ConfigResource, resource_name: str, name: str) -> str | None:
        if (resource, resource_name) == self._changed and name in self._changes:
            return self._changes[name]
        return self._image.config(resource, resource_name, name)


def _clear_elr(view: ClusterView, topic: str | None, changed: _Changed) -> list[Decision]:
    match view.clear_elr:
        case ClearElr.OFF:
            return []
        case ClearElr.ALWAYS:
            record = records.ClearElrRecord(topic_id=None if topic is None else view.image.topics[topic])
            return [Decision(record=record, cause=ElrCause(reason=ChangeReason.MIN_ISR_CHANGED))]
        case ClearElr.SATISFIED:
            return _clear_satisfied(view, topic, changed)


def _clear_satisfied(view: ClusterView, topic: str | None, changed: _Changed) -> list[Decision]:
    decisions = []
    for name in _partitions(view, topic):
        state = view.image.partitions[name]
        required = view.min_isr(name.topic, config=changed).effective(state.replicas)
        is_satisfied = len(state.isr) >= required and (state.elr or state.last_known_elr)
        if is_satisfied and not _complete_reassignment(view, name, changed):
            cause = PartitionCause(
                reason=ChangeReason.MIN_ISR_CHANGED,
                election=events.Election.NONE,
                broker_id=None,
                effective_min_isr=required,
            )
            record = records.PartitionChangeRecord(
                topic_id=state.topic_id, partition=name.partition, elr=(), last_known_elr=()
            )
            decisions.append(Decision(record=record, cause=cause))
    return decisions


def _complete_reassignment(view: ClusterView, name: TopicPartition, changed: _Changed) -> list[Decision]:
    """Returns the change that completes a reassignment which waited for min ISR; it empties the ELR, too."""
    state = view.image.partitions[name]
    if not state.adding_replicas and not state.removing_replicas:
        return []
    decisions = view.change_partition(
        name,
        PartitionTarget(acceptable=view.active_brokers()),
        reason=ChangeReason.MIN_ISR_CHANGED,
        broker_id=None,
        config=changed,
    )
    return [each for each in decisions if _ends_reassignment(each)]


def _ends_reassignment(decision: Decision) -> bool:
    record = decision.record
    return isinstance(record, records.PartitionChangeRecord) and () in (
        record.adding_replicas,
        record.removing_replicas,
    )


def _partitions(view: ClusterView, topic: str | None) -> Iterator[TopicPartition]:
    """Yields the partitions of a topic, or of all topics, by name."""
    for name in sorted(view.image.topics) if topic is None else [topic]:
        yield from view.image.partitions_of(name)


def _is_written(view: ClusterView, resource: ConfigResource, resource_name: str, name: str, value: str | None) -> bool:
    # Kafka writes a cluster default again even where it is the same, so that every broker sees it.
    is_cluster_set = resource is ConfigResource.BROKER and resource_name == CLUSTER and value is not None
    return is_cluster_set or view.image.config(resource, resource_name, name) != value


def _is_min_isr(decision: Decision) -> bool:
    return isinstance(decision.record, records.ConfigRecord) and decision.record.name == MIN_ISR
