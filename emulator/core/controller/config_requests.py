"""IncrementalAlterConfigs and DescribeConfigs, resource by resource.

The request layer of configuration: which resources exist, what APPEND means, what can be set on a running node.
What a change does to the cluster is decided in ``configs``. After Kafka's ``ConfigAdminManager`` and
``ConfigurationControlManager``.

The controller answers for every broker, from the properties of its own node: all nodes of a cluster share them.
"""

from collections.abc import Mapping
from typing import Final

from laststand.emulator.core import admin_messages
from laststand.emulator.core.controller.configs import ConfigOutcome, alter_config
from laststand.emulator.core.controller.unclean_config import STRATEGY, UNCLEAN_ELECTION, strategy_values
from laststand.emulator.core.controller.view import ClusterView
from laststand.emulator.core.effective_config import (
    CLUSTER,
    DYNAMIC_NODE_PROPERTIES,
    NODE_IDENTITY,
    NODE_PROPERTIES,
    TOPIC_PROPERTIES,
    ConfigValue,
    dynamic_node_values,
    identity_values,
    static_node_values,
    topic_values,
)
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.types import BrokerId, ConfigResource, NodeId

_LISTS: Final = frozenset({"cleanup.policy"})
"""Properties whose value is a list, which alone can be appended to and subtracted from."""


def alter_config_resource(view: ClusterView, asked: admin_messages.AlterConfigsResource) -> ConfigOutcome:
    """Decides on one resource of IncrementalAlterConfigs: all its changes, or none and the first problem."""
    problem = _resource_problem(view, asked.resource, asked.resource_name) or _entries_problem(asked)
    if problem is not None:
        return problem
    changes = {entry.name: _value_after(view, asked, entry) for entry in asked.configs}
    return alter_config(view, asked.resource, asked.resource_name, changes)


def describe_config_resource(
    view: ClusterView, asked: admin_messages.DescribeConfigsResource
) -> admin_messages.DescribedConfigResource:
    """Returns the values in effect for a resource and their sources; of the cluster default, only set values."""
    problem = _resource_problem(view, asked.resource, asked.resource_name)
    if problem is not None:
        return admin_messages.DescribedConfigResource(
            resource=asked.resource,
            resource_name=asked.resource_name,
            error=problem.error,
            error_message=problem.message,
        )
    found = _values_of(view, asked.resource, asked.resource_name)
    if asked.resource_name != CLUSTER:
        found = {**found, STRATEGY: strategy_values(found[STRATEGY], found[UNCLEAN_ELECTION])}
    wanted = found.keys() if asked.configuration_keys is None else found.keys() & set(asked.configuration_keys)
    return admin_messages.DescribedConfigResource(
        resource=asked.resource,
        resource_name=asked.resource_name,
        error=ErrorCode.NONE,
        configs=tuple(_described(name, found[name], resource=asked.resource) for name in sorted(wanted)),
    )


def _resource_problem(view: ClusterView, resource: ConfigResource, resource_name: str) -> ConfigOutcome | None:
    match resource:
        case ConfigResource.TOPIC:
            if resource_name not in view.image.topics:
                message = f"there is no topic {resource_name!r}"
                return ConfigOutcome(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message)
        case ConfigResource.BROKER if resource_name != CLUSTER:
            if not resource_name.isdecimal():
                message = f"a broker is named by its id, not {resource_name!r}"
                return ConfigOutcome(error=ErrorCode.INVALID_REQUEST, message=message)
            if BrokerId(NodeId(int(resource_name))) not in view.image.brokers:
                message = f"broker {resource_name} is not registered"
                return ConfigOutcome(error=ErrorCode.BROKER_ID_NOT_REGISTERED, message=message)
    return None


def _entries_problem(asked: admin_messages.AlterConfigsResource) -> ConfigOutcome | None:
    names = [entry.name for entry in asked.configs]
    for entry in asked.configs:
        is_deletion = entry.operation is admin_messages.ConfigOperation.DELETE
        if names.count(entry.name) > 1:
            return ConfigOutcome(error=ErrorCode.INVALID_REQUEST, message=f"{entry.name} is changed twice")
        if (entry.value is None) is not is_deletion:
            message = f"{entry.operation.value} of {entry.name} {'takes no' if is_deletion else 'needs a'} value"
            return ConfigOutcome(error=ErrorCode.INVALID_REQUEST, message=message)
        if (
            entry.operation in (admin_messages.ConfigOperation.APPEND, admin_messages.ConfigOperation.SUBTRACT)
            and entry.name not in _LISTS
        ):
            message = f"{entry.operation.value} of {entry.name}, which is not a list"
            return ConfigOutcome(error=ErrorCode.INVALID_CONFIG, message=message)
        is_fixed = entry.name in (*NODE_PROPERTIES, *NODE_IDENTITY) and entry.name not in DYNAMIC_NODE_PROPERTIES
        if asked.resource is ConfigResource.BROKER and is_fixed:
            message = f"{entry.name} cannot be changed while a node runs"
            return ConfigOutcome(error=ErrorCode.INVALID_REQUEST, message=message)
    return None


def _value_after(
    view: ClusterView, asked: admin_messages.AlterConfigsResource, entry: admin_messages.AlterableConfig
) -> str | None:
    if entry.operation in (admin_messages.ConfigOperation.SET, admin_messages.ConfigOperation.DELETE):
        return entry.value
    stored = view.image.config(asked.resource, asked.resource_name, entry.name)
    present = _items(_values_of_topic(view, asked.resource_name, entry.name)[-1].value if stored is None else stored)
    given = _items(entry.value)
    if entry.operation is admin_messages.ConfigOperation.APPEND:
        return ",".join(present + [item for item in given if item not in present])
    return ",".join(item for item in present if item not in given)


def _items(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def _values_of(view: ClusterView, resource: ConfigResource, resource_name: str) -> Mapping[str, list[ConfigValue]]:
    match resource:
        case ConfigResource.TOPIC:
            return {name: _values_of_topic(view, resource_name, name) for name in TOPIC_PROPERTIES}
        case ConfigResource.BROKER if resource_name == CLUSTER:
            names = view.image.configs(resource, resource_name)
            # No node has this id, so that what is set for all of them remains.
            return {name: dynamic_node_values(view.image, name, node_id=_NO_NODE) for name in names}
        case ConfigResource.BROKER:
            node_id = NodeId(int(resource_name))
            values = {
                name: dynamic_node_values(view.image, name, node_id=node_id)
                + static_node_values(name, static=view.properties)
                for name in NODE_PROPERTIES
            }
            return values | {name: identity_values(name, node_id=node_id) for name in NODE_IDENTITY}


_NO_NODE: Final = NodeId(-1)


def _values_of_topic(view: ClusterView, topic: str, name: str) -> list[ConfigValue]:
    return topic_values(view.image, name, topic=topic, node_id=view.node_id, static=view.properties)


def _described(name: str, values: list[ConfigValue], *, resource: ConfigResource) -> admin_messages.DescribedConfig:
    return admin_messages.DescribedConfig(
        name=name,
        value=values[0].value,
        source=values[0].source,
        read_only=resource is ConfigResource.BROKER and name not in DYNAMIC_NODE_PROPERTIES,
        synonyms=tuple(
            admin_messages.ConfigSynonym(name=value.name, value=value.value, source=value.source) for value in values
        ),
    )
