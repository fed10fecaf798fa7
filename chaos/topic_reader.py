"""Reads a topic of a scenario file: its name, its replicas and its properties."""

import re
from typing import Final

from chaos.administration import TopicPlan
from chaos.yaml_cursor import Cursor, Fields, suggestion
from emulator.core.errors import ConfigError
from emulator.core.properties import check_topic_properties
from emulator.core.types import BrokerId, NodeId

_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def read_topic(fields: Fields, *, brokers: int) -> TopicPlan:
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
    return TopicPlan(
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
