"""Fields of administrators' requests, as steps write them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core import admin_messages, metadata_version
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.core.properties import check_topic_properties, node_properties
from laststand.emulator.core.types import BrokerId, ConfigResource, NodeId, Offset, TopicPartition
from laststand.emulator.plan.fields import Words, YamlValue, plain
from laststand.emulator.plan.names import ALL, Names
from laststand.emulator.plan.topics import PlannedTopic, config_reason, read_topic
from laststand.emulator.plan.yaml_cursor import Cursor, Fields

LEVEL_MAX: Final = 32_767
"""Kafka's feature levels are 16 bits wide."""

OFFSET_MAX: Final = 2**63 - 1
"""Kafka's offsets are signed, and 64 bits wide."""

_CLUSTER_DEFAULT: Final = "default"
_HIGH_WATERMARK: Final = -1


class TopicSpec:
    """Field: a topic with its replicas, or numbers of partitions and replicas; other keys are properties."""

    keys: tuple[str, ...] = ("name", "replicas")
    is_required = True

    def read(self, fields: Fields, names: Names) -> PlannedTopic:
        return read_topic(fields, brokers=names.brokers)

    def write(self, value: PlannedTopic) -> dict[str, YamlValue]:
        replicas: list[YamlValue] = [[int(broker) for broker in each] for each in value.replicas]
        return {"name": value.name, "replicas": replicas, **{key: plain(text) for key, text in value.properties}}

    def problems(self, value: PlannedTopic, names: Names) -> Iterator[str]:
        for broker in sorted({broker for each in value.replicas for broker in each}):
            yield from names.broker_problems(broker)


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration entries of a topic or broker, or of all brokers (``name`` empty); ``None`` deletes an entry."""

    resource: ConfigResource
    name: str
    changes: tuple[tuple[str, str | None], ...]


class ConfigChangeField:
    """The field ``topic``, ``broker`` or ``cluster: default``, with ``set`` or ``delete`` or both."""

    keys: tuple[str, ...] = ("topic", "broker", "cluster", "set", "delete")
    is_required = True

    def read(self, fields: Fields, names: Names) -> ConfigChange:
        resource, name = self._resource(fields, names)
        setting, deleting = fields.optional("set"), fields.optional("delete")
        if setting is None and deleting is None:
            fields.owner.fail("changes nothing, allowed: set, delete")
        changes: list[tuple[str, str | None]] = []
        if setting is not None:
            with setting.fields() as entries:
                for key, cursor in entries.pop_rest():
                    _check(resource, key, cursor)
                    changes.append((key, cursor.text()))
        changes += [(each.text(), None) for each in (() if deleting is None else deleting.items())]
        return ConfigChange(resource=resource, name=name, changes=tuple(changes))

    def _resource(self, fields: Fields, names: Names) -> tuple[ConfigResource, str]:
        topic, broker, cluster = fields.optional("topic"), fields.optional("broker"), fields.optional("cluster")
        match [each for each in (topic, broker, cluster) if each is not None]:
            case [each] if each is topic:
                return ConfigResource.TOPIC, names.topic(each)
            case [each] if each is broker:
                return ConfigResource.BROKER, str(names.broker_id(each))
            case [each]:
                each.choice((_CLUSTER_DEFAULT,))
                return ConfigResource.BROKER, ""
            case _:
                fields.owner.fail("needs one of topic, broker and cluster")

    def write(self, value: ConfigChange) -> dict[str, YamlValue]:
        written: dict[str, YamlValue]
        if value.resource is ConfigResource.TOPIC:
            written = {"topic": value.name}
        else:
            written = {"broker": int(value.name)} if value.name else {"cluster": _CLUSTER_DEFAULT}
        setting: dict[str, YamlValue] = {key: plain(text) for key, text in value.changes if text is not None}
        deleting: list[YamlValue] = [key for key, text in value.changes if text is None]
        return written | ({"set": setting} if setting else {}) | ({"delete": deleting} if deleting else {})

    def problems(self, value: ConfigChange, names: Names) -> Iterator[str]:
        if value.resource is ConfigResource.TOPIC:
            yield from names.topic_problems(value.name)
        elif value.name:
            yield from names.broker_problems(BrokerId(NodeId(int(value.name))))
        for key, text in value.changes:
            if text is not None and (error := _config_error(value.resource, key, text)) is not None:
                yield f"{key}: {config_reason(error)}"


def _check(resource: ConfigResource, key: str, cursor: Cursor) -> None:
    error = _config_error(resource, key, cursor.text())
    if error is not None:
        cursor.fail(config_reason(error))


def _config_error(resource: ConfigResource, key: str, text: str) -> ConfigError | None:
    check: Callable[[Mapping[str, str]], object]
    check = check_topic_properties if resource is ConfigResource.TOPIC else node_properties
    try:
        check({key: text})
    except ConfigError as error:
        return error
    return None


class ElectionField:
    """The field ``type``: the kind of election."""

    keys: tuple[str, ...] = ("type",)
    is_required = True

    def read(self, fields: Fields, names: Names) -> admin_messages.RequestedElection:
        kinds = {each.name.lower(): each for each in admin_messages.RequestedElection}
        return kinds[fields.required("type").choice(kinds)]

    def write(self, value: admin_messages.RequestedElection) -> dict[str, YamlValue]:
        return {"type": value.name.lower()}

    def problems(self, value: admin_messages.RequestedElection, names: Names) -> Iterator[str]:
        yield from ()


class PartitionSet:
    """The field ``partition``: one, or ``all``."""

    keys: tuple[str, ...] = ("partition",)
    is_required = True

    def read(self, fields: Fields, names: Names) -> tuple[TopicPartition, ...]:
        return names.partition_set(fields.required("partition"))

    def write(self, value: tuple[TopicPartition, ...]) -> dict[str, YamlValue]:
        return {"partition": str(value[0]) if len(value) == 1 else ALL}

    def problems(self, value: tuple[TopicPartition, ...], names: Names) -> Iterator[str]:
        for each in value:
            yield from names.partition_problems(each)


class OptionalBrokerId:
    """A broker by its id, or nothing."""

    is_required = False

    def __init__(self, key: str) -> None:
        self.keys: tuple[str, ...] = (key,)

    def read(self, fields: Fields, names: Names) -> BrokerId | None:
        cursor = fields.optional(self.keys[0])
        return None if cursor is None else names.broker_id(cursor)

    def write(self, value: BrokerId | None) -> dict[str, YamlValue]:
        return {} if value is None else {self.keys[0]: int(value)}

    def problems(self, value: BrokerId | None, names: Names) -> Iterator[str]:
        if value is not None:
            yield from names.broker_problems(value)


class RequiredBrokerId:
    """A broker by its id."""

    is_required = True

    def __init__(self, key: str) -> None:
        self.keys: tuple[str, ...] = (key,)

    def read(self, fields: Fields, names: Names) -> BrokerId:
        return names.broker_id(fields.required(self.keys[0]))

    def write(self, value: BrokerId) -> dict[str, YamlValue]:
        return {self.keys[0]: int(value)}

    def problems(self, value: BrokerId, names: Names) -> Iterator[str]:
        yield from names.broker_problems(value)


class Replicas:
    """The field ``replicas``: of a partition, the preferred one first."""

    keys: tuple[str, ...] = ("replicas",)
    is_required = True

    def read(self, fields: Fields, names: Names) -> tuple[BrokerId, ...]:
        return names.replicas(fields.required("replicas"))

    def write(self, value: tuple[BrokerId, ...]) -> dict[str, YamlValue]:
        replicas: list[YamlValue] = [int(each) for each in value]
        return {"replicas": replicas}

    def parse(self, words: Words) -> tuple[BrokerId, ...]:
        word = words.pop_pair("replicas")
        if word is None:
            raise ValueError("replicas= is missing")
        return tuple(BrokerId(NodeId(int(each))) for each in word.split(","))

    def format(self, value: tuple[BrokerId, ...]) -> list[str]:
        return [f"replicas={','.join(map(str, value))}"]

    def problems(self, value: tuple[BrokerId, ...], names: Names) -> Iterator[str]:
        for each in value:
            yield from names.broker_problems(each)
        if len(set(value)) < len(value):
            yield "expected different brokers"


class DeletionOffset:
    """The field ``offset``: records before it are deleted, -1 for the high watermark."""

    keys: tuple[str, ...] = ("offset",)
    is_required = True

    def read(self, fields: Fields, names: Names) -> Offset | None:
        offset = fields.required("offset").integer(low=_HIGH_WATERMARK, high=OFFSET_MAX)
        return None if offset == _HIGH_WATERMARK else Offset(offset)

    def write(self, value: Offset | None) -> dict[str, YamlValue]:
        return {"offset": _HIGH_WATERMARK if value is None else int(value)}

    def problems(self, value: Offset | None, names: Names) -> Iterator[str]:
        if value is not None and not 0 <= value <= OFFSET_MAX:
            yield f"expected an offset from 0 to {OFFSET_MAX}, or -1"


class FeatureLevel(NamedTuple):
    """A feature and its level."""

    feature: str
    level: int


class FeatureLevelField:
    """``feature`` and ``level``: a number, or a release where the feature is ``metadata.version``."""

    keys: tuple[str, ...] = ("feature", "level")
    is_required = True

    def read(self, fields: Fields, names: Names) -> FeatureLevel:
        feature = fields.required("feature").text()
        return FeatureLevel(feature, read_level(fields.required("level"), feature))

    def write(self, value: FeatureLevel) -> dict[str, YamlValue]:
        return {"feature": value.feature, "level": level_text(value)}

    def problems(self, value: FeatureLevel, names: Names) -> Iterator[str]:
        ranges = {
            each.name: (each.min_supported_version, each.max_supported_version)
            for each in metadata_version.BROKER_FEATURES
        }
        low, high = ranges.get(value.feature, (0, LEVEL_MAX))
        if not low <= value.level <= high:
            yield f"expected a level from {low} to {high}"


def read_level(cursor: Cursor, feature: str) -> int:
    """Returns the level of a feature.

    Raises:
        ScenarioError: it is no level, or no release.
    """
    if feature != metadata_version.METADATA_VERSION:
        return cursor.integer(low=0, high=LEVEL_MAX)
    try:
        return metadata_version.level_of(cursor.text())
    except ConfigError as error:
        cursor.fail(f"{cursor.text()!r} is not allowed, allowed: {error.expected}")


def level_text(value: FeatureLevel) -> str | int:
    """Inverse of ``read_level``."""
    if value.feature != metadata_version.METADATA_VERSION:
        return value.level
    return metadata_version.LEVELS[value.level]
