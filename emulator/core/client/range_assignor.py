"""Kafka's consumer protocol as far as members of this project need it: subscriptions, assignments, the range assignor.

::

    subscription = 0 i16 | count i32 | topic string ... | user data bytes (null)
    assignment   = 0 i16 | count i32 | (topic string | count i32 | partition i32 ...) ... | user data bytes (null)

A string is preceded by its length in two bytes. Newer versions start with the same fields; their other fields are
skipped. Source: Kafka's ``ConsumerProtocolSubscription.json``, ``ConsumerProtocolAssignment.json``, ``RangeAssignor``.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from laststand.emulator.core.types import TopicPartition

RANGE: Final = "range"
"""Name of the assignor."""

_HEAD: Final = struct.Struct(">hi")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_NO_USER_DATA: Final = _INT32.pack(-1)


class Subscriber(NamedTuple):
    """A member as the assignor sees it; static members come first, by their instance ids."""

    member_id: str
    instance_id: str | None
    topics: frozenset[str]

    @property
    def rank(self) -> tuple[bool, str]:
        """Sort key of the member."""
        return self.instance_id is None, self.instance_id or self.member_id


def assign_ranges(
    subscribers: Iterable[Subscriber], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Returns each member's partitions: a range of each topic; if sizes differ, the first members get one more."""
    ranked = sorted(subscribers, key=lambda subscriber: subscriber.rank)
    assigned: dict[str, list[TopicPartition]] = {subscriber.member_id: [] for subscriber in ranked}
    for topic in sorted({topic for subscriber in ranked for topic in subscriber.topics}):
        takers = [subscriber.member_id for subscriber in ranked if topic in subscriber.topics]
        each, more = divmod(partition_counts.get(topic, 0), len(takers))
        start = 0
        for number, member_id in enumerate(takers):
            end = start + each + (number < more)
            assigned[member_id] += [TopicPartition(topic, partition) for partition in range(start, end)]
            start = end
    return assigned


def encode_subscription(topics: Sequence[str]) -> bytes:
    """Returns the metadata that a member sends in JoinGroup."""
    return b"".join((_HEAD.pack(0, len(topics)), *map(_string, topics), _NO_USER_DATA))


def decode_subscription(data: bytes) -> frozenset[str]:
    """Returns the topics that a member subscribes to; none if the bytes are not of this protocol."""
    try:
        return frozenset(_read_topics(data))
    except (struct.error, UnicodeDecodeError):
        return frozenset()


def encode_assignment(partitions: Sequence[TopicPartition]) -> bytes:
    """Returns a member's assignment as the leader sends it in SyncGroup."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    parts = [_HEAD.pack(0, len(by_topic))]
    for topic, numbers in by_topic.items():
        parts += [_string(topic), _INT32.pack(len(numbers)), *map(_INT32.pack, numbers)]
    return b"".join((*parts, _NO_USER_DATA))


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Returns a member's assigned partitions; empty bytes, for a member that the leader left out, mean none."""
    if not data:
        return ()
    _, count = _HEAD.unpack_from(data)
    offset = _HEAD.size
    partitions: list[TopicPartition] = []
    for _ in range(count):
        topic, offset = _read_string(data, offset)
        (size,) = _INT32.unpack_from(data, offset)
        numbers = struct.unpack_from(f">{size}i", data, offset + _INT32.size)
        offset += _INT32.size * (size + 1)
        partitions += [TopicPartition(topic, number) for number in numbers]
    return tuple(partitions)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


def _read_topics(data: bytes) -> Iterator[str]:
    _, count = _HEAD.unpack_from(data)
    offset = _HEAD.size
    for _ in range(count):
        topic, offset = _read_string(data, offset)
        yield topic


def _read_string(data: bytes, offset: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(data, offset)
    end = offset + _INT16.size + length
    return data[offset + _INT16.size : end].decode(), end
