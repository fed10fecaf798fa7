"""Topics that a plan creates, and their notation."""

from random import Random
from typing import Final

import msgspec

from laststand.emulator.core import admin_messages
from laststand.emulator.core.errors import ConfigError, suggestion
from laststand.emulator.core.properties import check_topic_properties
from laststand.emulator.core.topic_names import is_legal
from laststand.emulator.core.types import BrokerId, NodeId, TopicId, TopicPartition
from laststand.emulator.core.uuid_text import uuid_text
from laststand.emulator.plan.yaml_cursor import Cursor, Fields

_FACTOR_KEYS: Final = ("replication_factor", "replication-factor", "replication.factor")


class PlannedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic to create: replicas of each partition, and topic properties by Kafka's names."""

    name: str
    replicas: tuple[tuple[BrokerId, ...], ...]
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions in ascending order."""
        return tuple(TopicPartition(self.name, index) for index in range(len(self.replicas)))

    def creatable(self, topic_id: TopicId) -> admin_messages.CreatableTopic:
        """Returns the topic in the form of the controller's request."""
        return admin_messages.CreatableTopic(
            name=self.name, topic_id=topic_id, assignments=self.replicas, configs=self.properties
        )


def draw_topic_id(chance: Random) -> TopicId:
    """Returns a new topic id."""
    return TopicId(uuid_text(chance.randbytes(16)))


def read_topic(fields: Fields, *, brokers: int) -> PlannedTopic:
    """Returns the topic that a mapping describes: with the replicas of each partition, or with their numbers.

    Of ``partitions: N`` and ``replication_factor: M``, replica i of partition p is the (p + i)-th broker by id.

    Raises:
        ScenarioError: the mapping describes no possible topic.
    """
    name = fields.required("name")
    if not is_legal(name.text()):
        name.fail(f"{name.text()!r} is no topic name, allowed: letters, digits, '.', '_' and '-'")
    replicas = _placement(fields, brokers)
    entries = fields.pop_rest()
    for key, value in entries:
        try:
            check_topic_properties({key: value.text()})
        except ConfigError as error:
            value.fail(config_reason(error))
    return PlannedTopic(
        name=name.text(), replicas=replicas, properties=tuple((key, cursor.text()) for key, cursor in entries)
    )


def config_reason(error: ConfigError) -> str:
    """Returns the error in a property, and the allowed values."""
    if error.value is not None:
        return f"{error.value!r} is not allowed, allowed: {error.expected}"
    names = error.expected.removeprefix("one of ")
    return f"unknown property, allowed: {names}{suggestion(error.key, names.split(', '))}"


def _placement(fields: Fields, brokers: int) -> tuple[tuple[BrokerId, ...], ...]:
    partitions = fields.optional("partitions")
    factors = [cursor for key in _FACTOR_KEYS if (cursor := fields.optional(key)) is not None]
    if partitions is None and not factors:
        return _replicas(fields.required("replicas"), brokers)
    if fields.optional("replicas") is not None:
        (partitions or factors[0]).fail("stands beside replicas, which say it already")
    if len(factors) > 1:
        factors[1].fail(f"is {_FACTOR_KEYS[0]} in other letters")
    count = 1 if partitions is None else partitions.integer(low=1)
    factor = 1 if not factors else factors[0].integer(low=1, high=brokers)
    return tuple(
        tuple(BrokerId(NodeId((partition + place) % brokers)) for place in range(factor)) for partition in range(count)
    )


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
