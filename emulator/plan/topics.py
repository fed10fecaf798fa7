"""Topics that a plan creates, and how they are written."""

import base64
import re
from collections.abc import Iterator
from random import Random
from typing import Final

import msgspec

from emulator.core.admin_messages import CreatableTopic
from emulator.core.errors import ConfigError
from emulator.core.properties import check_topic_properties
from emulator.core.types import BrokerId, NodeId, TopicId, TopicPartition
from emulator.plan.fields import YamlValue, plain
from emulator.plan.names import Names
from emulator.plan.yaml_cursor import Cursor, Fields, suggestion

_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


class PlannedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic to create: replicas of each partition, and topic properties by Kafka's names."""

    name: str
    replicas: tuple[tuple[BrokerId, ...], ...]
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Its partitions in ascending order."""
        return tuple(TopicPartition(self.name, index) for index in range(len(self.replicas)))

    def creatable(self, topic_id: TopicId) -> CreatableTopic:
        """Returns the topic as the controller takes it."""
        return CreatableTopic(name=self.name, topic_id=topic_id, assignments=self.replicas, configs=self.properties)


def draw_topic_id(chance: Random) -> TopicId:
    """Returns a new topic id."""
    return TopicId(base64.urlsafe_b64encode(chance.randbytes(16)).decode().rstrip("="))


class TopicSpec:
    """Field: a topic with its replicas; whatever else stands in the step is a property of it."""

    keys: tuple[str, ...] = ("name", "replicas")
    is_required = True

    def read(self, fields: Fields, names: Names) -> PlannedTopic:
        topic = read_topic(fields, brokers=names.brokers)
        names.add_partitions(topic.partitions)
        return topic

    def write(self, value: PlannedTopic) -> dict[str, YamlValue]:
        replicas: list[YamlValue] = [[int(broker) for broker in each] for each in value.replicas]
        return {"name": value.name, "replicas": replicas, **{key: plain(text) for key, text in value.properties}}

    def problems(self, value: PlannedTopic, names: Names) -> Iterator[str]:
        for broker in sorted({broker for each in value.replicas for broker in each}):
            yield from names.broker_problems(broker)


def read_topic(fields: Fields, *, brokers: int) -> PlannedTopic:
    """Returns the topic that a mapping describes.

    Raises:
        ScenarioError: there can be no such topic.
    """
    name = fields.required("name")
    if _TOPIC_NAME.fullmatch(name.text()) is None or name.text() in (".", ".."):
        name.fail(f"{name.text()!r} is no topic name, allowed: letters, digits, '.', '_' and '-'")
    replicas = _replicas(fields.required("replicas"), brokers)
    entries = fields.take_rest()
    for key, value in entries:
        try:
            check_topic_properties({key: value.text()})
        except ConfigError as error:
            value.fail(config_reason(error))
    return PlannedTopic(
        name=name.text(), replicas=replicas, properties=tuple((key, cursor.text()) for key, cursor in entries)
    )


def config_reason(error: ConfigError) -> str:
    """Returns what is wrong with a property, and what would be right."""
    if error.value is not None:
        return f"{error.value!r} is not allowed, allowed: {error.expected}"
    names = error.expected.removeprefix("one of ")
    return f"unknown property, allowed: {names}{suggestion(error.key, names.split(', '))}"


def _replicas(cursor: Cursor, brokers: int) -> tuple[tuple[BrokerId, ...], ...]:
    assignments = []
    for partition in cursor.items():
        ids = tuple(each.integer(low=0) for each in partition.items())
        for member, broker in zip(partition.items(), ids, strict=True):
            if broker >= brokers:
                member.fail(f"no broker {broker}, allowed: 0 to {brokers - 1}")
        if not ids or len(set(ids)) != len(ids):
            partition.fail(f"{list(ids)} are no replicas of a partition, allowed: different brokers, at least one")
        assignments.append(tuple(BrokerId(NodeId(broker)) for broker in ids))
    if not assignments or len({len(each) for each in assignments}) != 1:
        cursor.fail("allowed: a list of replicas for each partition, all of one length")
    return tuple(assignments)
