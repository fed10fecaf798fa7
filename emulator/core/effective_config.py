"""Finds a property's effective value: topic over broker over cluster default over the node's own file.

Controller, brokers and DescribeConfigs all use this module, so that the same min ISR holds for the high watermark and
for eligible leader replicas. A topic property and the broker property that it falls back to may have different names:
``flush.ms`` and ``log.flush.interval.ms`` (Kafka's ``ServerTopicConfigSynonyms``, ``DescribeConfigsResponse``).
"""

from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from laststand.emulator.core import admin_messages
from laststand.emulator.core.properties import (
    NodeProperties,
    StoredTopicProperties,
    TopicProperties,
    field_name,
    is_node_property,
    topic_properties,
)
from laststand.emulator.core.property_text import dotted
from laststand.emulator.core.types import ConfigResource, NodeId

CLUSTER: Final = ""
"""Resource name of the cluster default."""

_ACTING: Final = tuple(sorted(dotted(*TopicProperties.__struct_fields__)))
TOPIC_PROPERTIES: Final = tuple(sorted({*_ACTING, *dotted(*StoredTopicProperties.__struct_fields__)}))
"""Names of everything that a topic may have."""

_OTHER_NAMES: Final = MappingProxyType(
    {
        "flush.messages": "log.flush.interval.messages",
        "flush.ms": "log.flush.interval.ms",
        "segment.bytes": "log.segment.bytes",
        "index.interval.bytes": "log.index.interval.bytes",
        "retention.bytes": "log.retention.bytes",
        "retention.ms": "log.retention.ms",
        "max.message.bytes": "message.max.bytes",
        "cleanup.policy": "log.cleanup.policy",
        "message.timestamp.type": "log.message.timestamp.type",
        "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    }
)

NODE_PROPERTY_OF: Final = MappingProxyType(
    {name: behind for name in _ACTING if is_node_property(behind := _OTHER_NAMES.get(name, name))}
)
"""The node's property that stands behind a topic's."""

DYNAMIC_NODE_PROPERTIES: Final = frozenset(
    {*NODE_PROPERTY_OF.values(), "leader.replication.throttled.rate", "follower.replication.throttled.rate"}
)
"""Names of the node's properties that can be set while it runs."""

NODE_PROPERTIES: Final = tuple(sorted(field.replace("_", ".") for field in NodeProperties.__struct_fields__))
"""Names of everything that a node may have."""


NODE_IDENTITY: Final = ("broker.id", "node.id")
"""Names under which a broker's id is described, which no property file here has."""


class DynamicConfig(Protocol):
    """Dynamic configuration: that of a metadata image, or the result of a proposed change."""

    def config(self, resource: ConfigResource, resource_name: str, name: str) -> str | None:
        """Returns a value as it was set on a resource, or ``None``."""
        ...


class ConfigValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value and its source; ``name`` is the property's name in the source, a value of ``None`` means no limit."""

    name: str
    value: str | None
    source: admin_messages.ConfigSource


def dynamic_topic_values(image: DynamicConfig, name: str, *, topic: str, node_id: NodeId) -> list[ConfigValue]:
    """Returns a topic property's dynamic values, strongest first: of the topic, the node, the cluster default."""
    values = []
    on_topic = image.config(ConfigResource.TOPIC, topic, name)
    if on_topic is not None:
        values.append(ConfigValue(name=name, value=on_topic, source=admin_messages.ConfigSource.DYNAMIC_TOPIC_CONFIG))
    behind = NODE_PROPERTY_OF.get(name)
    return values if behind is None else values + dynamic_node_values(image, behind, node_id=node_id)


def dynamic_topic_value(image: DynamicConfig, name: str, *, topic: str, node_id: NodeId) -> str | None:
    """Returns a topic property's effective dynamic value; ``None`` if there is none."""
    on_topic = image.config(ConfigResource.TOPIC, topic, name)
    if on_topic is not None:
        return on_topic
    behind = NODE_PROPERTY_OF.get(name)
    return None if behind is None else dynamic_node_value(image, behind, node_id=node_id)


def dynamic_node_values(image: DynamicConfig, name: str, *, node_id: NodeId) -> list[ConfigValue]:
    """Returns a node property's dynamic values, strongest first."""
    places = (
        (str(node_id), admin_messages.ConfigSource.DYNAMIC_BROKER_CONFIG),
        (CLUSTER, admin_messages.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    )
    return [
        ConfigValue(name=name, value=value, source=source)
        for resource_name, source in places
        if (value := image.config(ConfigResource.BROKER, resource_name, name)) is not None
    ]


def dynamic_node_value(image: DynamicConfig, name: str, *, node_id: NodeId) -> str | None:
    """Returns a node property's effective dynamic value; ``None`` if there is none."""
    own = image.config(ConfigResource.BROKER, str(node_id), name)
    return image.config(ConfigResource.BROKER, CLUSTER, name) if own is None else own


def static_node_values(name: str, *, static: NodeProperties) -> list[ConfigValue]:
    """Returns a node property's static values: the one in the node's file, if not the default, and the default."""
    default = ConfigValue(
        name=name, value=_text(NodeProperties(), name), source=admin_messages.ConfigSource.DEFAULT_CONFIG
    )
    own = _text(static, name)
    if own == default.value:
        return [default]
    return [ConfigValue(name=name, value=own, source=admin_messages.ConfigSource.STATIC_BROKER_CONFIG), default]


def identity_values(name: str, *, node_id: NodeId) -> list[ConfigValue]:
    """Returns the values of ``node.id`` or another property that holds the id; ``node.id`` has no default."""
    own = ConfigValue(name=name, value=str(node_id), source=admin_messages.ConfigSource.STATIC_BROKER_CONFIG)
    default = ConfigValue(name=name, value="-1", source=admin_messages.ConfigSource.DEFAULT_CONFIG)
    return [own] if name == "node.id" else [own, default]


def topic_values(
    image: DynamicConfig, name: str, *, topic: str, node_id: NodeId, static: NodeProperties
) -> list[ConfigValue]:
    """Returns all values of a topic property, strongest first; the last one is the default."""
    dynamic = dynamic_topic_values(image, name, topic=topic, node_id=node_id)
    behind = NODE_PROPERTY_OF.get(name)
    if behind is not None:
        return dynamic + static_node_values(behind, static=static)
    unset = topic_properties(static, {}) if name in _ACTING else StoredTopicProperties()
    default = ConfigValue(name=name, value=_text(unset, name), source=admin_messages.ConfigSource.DEFAULT_CONFIG)
    return [*dynamic, default]


def effective_topic_properties(
    image: DynamicConfig, *, topic: str, node_id: NodeId, static: NodeProperties
) -> TopicProperties:
    """Returns the properties in effect on a node for a topic, which need not exist yet."""
    given = {
        name: value
        for name in _ACTING
        if (value := dynamic_topic_value(image, name, topic=topic, node_id=node_id)) is not None
    }
    return topic_properties(static, given)


def _text(properties: NodeProperties | TopicProperties | StoredTopicProperties, name: str) -> str | None:
    value = getattr(properties, field_name(name))
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)
