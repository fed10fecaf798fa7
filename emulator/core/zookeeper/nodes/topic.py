"""A topic's node: its id and where its partitions are assigned (Kafka's ``TopicZNode``).

::

    {"version":3,"topic_id":"…","partitions":{"0":[4,5,1,2]},
     "adding_replicas":{"0":[4,5]},"removing_replicas":{"0":[1,2]}}

A partition that is not being reassigned is not in the last two maps. Releases before 2.8 write version 2 and drop the
id (KAFKA-14190); before 2.4 there was no reassignment in it either.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core.types import BrokerId, NodeId, TopicId
from laststand.emulator.core.zookeeper.errors import MalformedNodeError
from laststand.emulator.core.zookeeper.nodes.node_json import JsonObject, JsonValue, decode_object, encode, number_list

_WHAT: Final = "topic"


class TopicFormat(Enum):
    """The fields of a topic node that a release knows; the value is the version that it writes."""

    WITHOUT_IDS = 2
    WITH_IDS = 3


class ReplicaAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """The present and the future replicas of a partition (Kafka's class of that name).

    Attributes:
        replicas: all of them, those being added first among the targets, then those being removed.
        adding: targets that were no replicas before.
        removing: replicas that are no targets.
    """

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        """A reassignment adds or removes replicas."""
        return bool(self.adding or self.removing)

    @property
    def origin_replicas(self) -> tuple[BrokerId, ...]:
        """The replicas before the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    @property
    def target_replicas(self) -> tuple[BrokerId, ...]:
        """The replicas after the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    def reassign_to(self, target: tuple[BrokerId, ...]) -> "ReplicaAssignment":
        """Returns the assignment while it moves to ``target``; the origin of a running reassignment stays the origin.

        If the target is the origin, the reassignment is cancelled.
        """
        origin = self.origin_replicas
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return ReplicaAssignment(
            replicas=replicas,
            adding=tuple(replica for replica in replicas if replica not in origin),
            removing=tuple(replica for replica in replicas if replica not in target),
        )

    def without(self, broker_id: BrokerId) -> "ReplicaAssignment":
        """Returns the assignment without a replica."""
        return ReplicaAssignment(
            replicas=_without(self.replicas, broker_id),
            adding=_without(self.adding, broker_id),
            removing=_without(self.removing, broker_id),
        )


def _without(replicas: tuple[BrokerId, ...], broker_id: BrokerId) -> tuple[BrokerId, ...]:
    return tuple(replica for replica in replicas if replica != broker_id)


class TopicAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """A topic: its id, which one made before 2.8 lacks, and its partitions by number."""

    topic_id: TopicId | None
    partitions: Mapping[int, ReplicaAssignment]


def encode_topic(topic: TopicAssignment, *, topic_format: TopicFormat) -> bytes:
    """Writes a topic node."""
    partitions = sorted(topic.partitions.items())
    content: JsonObject = {
        "version": topic_format.value,
        "partitions": {str(number): [*assignment.replicas] for number, assignment in partitions},
        "adding_replicas": {
            str(number): [*assignment.adding] for number, assignment in partitions if assignment.adding
        },
        "removing_replicas": {
            str(number): [*assignment.removing] for number, assignment in partitions if assignment.removing
        },
    }
    if topic.topic_id is not None and topic_format is TopicFormat.WITH_IDS:
        content["topic_id"] = topic.topic_id
    return encode(content)


def decode_topic(data: bytes, *, topic_format: TopicFormat) -> TopicAssignment:
    """Reads a topic node; text that is no JSON reads as a topic without partitions.

    Raises:
        MalformedNodeError: replicas that are no lists of numbers.
    """
    content = decode_object(data, what=_WHAT)
    if content is None:
        return TopicAssignment(topic_id=None, partitions={})
    topic_id = content.get("topic_id") if topic_format is TopicFormat.WITH_IDS else None
    if topic_id is not None and not isinstance(topic_id, str):
        raise MalformedNodeError(what=_WHAT, reason=f"topic_id is {topic_id!r}")
    adding, removing = (_object(content.get(key)) for key in ("adding_replicas", "removing_replicas"))
    return TopicAssignment(
        topic_id=None if topic_id is None else TopicId(topic_id),
        partitions={
            int(number): ReplicaAssignment(
                replicas=_replicas(replicas),
                adding=_replicas(adding.get(number, [])),
                removing=_replicas(removing.get(number, [])),
            )
            for number, replicas in _object(content.get("partitions")).items()
        },
    )


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _replicas(value: JsonValue) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(NodeId(number)) for number in number_list(value, what=_WHAT))
