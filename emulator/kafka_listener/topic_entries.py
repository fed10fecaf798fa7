"""Entries of partitions below their topics, the form of most requests and responses."""

from collections.abc import Iterable, Iterator
from itertools import islice

from laststand.emulator.kafka_listener.messages import Message


def partitions_of(topics: Iterable[Message], name: str = "name") -> Iterator[tuple[str, Message]]:
    """Yields the partitions of a request, each with the name of its topic.

    Args:
        topics: of the request.
        name: of the field that has the topic's name.
    """
    return ((topic[name], partition) for topic in topics for partition in topic["partitions"])


def in_topics(topics: Iterable[Message], answers: Iterable[Message], name: str = "name") -> list[Message]:
    """Returns answers below the topics of their request.

    Args:
        topics: of the request.
        answers: one for each partition of the request, in its order.
        name: of the field that has the topic's name.
    """
    rest = iter(answers)
    return [{name: topic[name], "partitions": [*islice(rest, len(topic["partitions"]))]} for topic in topics]


def by_topic(entries: Iterable[tuple[str, Message]]) -> dict[str, list[Message]]:
    """Returns entries by their topics, which have the order of their first entries."""
    topics: dict[str, list[Message]] = {}
    for topic, entry in entries:
        topics.setdefault(topic, []).append(entry)
    return topics
