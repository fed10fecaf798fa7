"""Changing dynamic configuration, and what that does to eligible leader replicas.

With ELR on, any record for ``min.insync.replicas`` empties the ELR of the topic (or of all topics), raise and lower
alike, in the same batch; the key cannot be set per broker, and the cluster's value cannot be deleted
(Kafka's ``ConfigurationControlManager``). That also strikes partitions that are offline.
"""

from collections.abc import Mapping

import msgspec

from emulator.core.controller.decision import Decision
from emulator.core.controller.features import is_elr_enabled
from emulator.core.controller.min_isr import MIN_ISR
from emulator.core.controller.view import ClusterView
from emulator.core.effective_config import CLUSTER
from emulator.core.errors import ConfigError, ErrorCode
from emulator.core.properties import check_topic_properties, node_properties
from emulator.core.records import ClearElrRecord, ConfigRecord, ConfigResource


class ConfigOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer for one resource, and what it writes."""

    error: ErrorCode
    message: str = ""
    decisions: tuple[Decision, ...] = ()


def alter_config(
    view: ClusterView, resource: ConfigResource, resource_name: str, changes: Mapping[str, str | None]
) -> ConfigOutcome:
    """Decides on IncrementalAlterConfigs of one resource; ``None`` deletes an entry."""
    return _alter(view, resource, resource_name, changes)


def replace_config(
    view: ClusterView, resource: ConfigResource, resource_name: str, entries: Mapping[str, str]
) -> ConfigOutcome:
    """Decides on the legacy AlterConfigs of one resource: whatever it does not name is deleted."""
    existing = view.image.configs(resource, resource_name)
    changes: dict[str, str | None] = {name: None for name in sorted(existing) if name not in entries}
    return _alter(view, resource, resource_name, {**changes, **entries})


def _alter(
    view: ClusterView, resource: ConfigResource, resource_name: str, changes: Mapping[str, str | None]
) -> ConfigOutcome:
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
        Decision(record=ConfigRecord(resource=resource, resource_name=resource_name, name=name, value=value))
        for name, value in changes.items()
        if _is_written(view, resource, resource_name, name, value)
    ]
    if elr_enabled and any(_is_min_isr(decision) for decision in decisions):
        topic_id = view.image.topics[resource_name] if resource is ConfigResource.TOPIC else None
        decisions.append(Decision(record=ClearElrRecord(topic_id=topic_id)))
    return ConfigOutcome(error=ErrorCode.NONE, decisions=tuple(decisions))


def _is_written(view: ClusterView, resource: ConfigResource, resource_name: str, name: str, value: str | None) -> bool:
    # Kafka writes a cluster default again even where it is the same, so that every broker sees it.
    is_cluster_set = resource is ConfigResource.BROKER and resource_name == CLUSTER and value is not None
    return is_cluster_set or view.image.config(resource, resource_name, name) != value


def _is_min_isr(decision: Decision) -> bool:
    return isinstance(decision.record, ConfigRecord) and decision.record.name == MIN_ISR
