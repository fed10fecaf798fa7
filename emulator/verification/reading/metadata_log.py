"""Reads the controller's own log on disk, beside the controller's events.

The controller keeps its records in ``nodes/<id>/data/__cluster_metadata-0``, in Kafka's record batch format: a batch of
the log per batch of records. The value of its first record is MessagePack: an array of the encoded records and of the
events that record them, the same that the event files have once the records are durable.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from laststand.emulator.core.events import ControllerEvent, Event, PartitionChanged, PartitionEvent
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.reading.logs import AFTER_LENGTH, HEADER, batch_problem
from laststand.emulator.verification.tables.vocabulary import COMMITTED

_BEFORE_VALUE: Final = 4
"""Attributes, two deltas of 0, and the length -1 of the key."""
_COMPARED: Final = frozenset(
    kind for kind in COMMITTED if kind is PartitionChanged or not issubclass(kind, PartitionEvent)
)
_Key = tuple[int, str, str, int]
"""Metadata offset and type of an event; topic id and partition, where it has them."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    records: bytes
    events: tuple[ControllerEvent, ...]


_ENTRY: Final = msgspec.msgpack.Decoder(_Entry)


class MetadataLog(msgspec.Struct, frozen=True, kw_only=True):
    """A controller's log.

    Attributes:
        events: of its records.
        problem: why reading ended early, if it did.
    """

    events: tuple[Event, ...]
    problem: str | None


def read_metadata_log(content: bytes) -> MetadataLog:
    """Returns the content of a controller's log file."""
    events: list[Event] = []
    view, position = memoryview(content), 0
    while position < len(content):
        problem = batch_problem(view, position)
        if problem is None:
            length = AFTER_LENGTH + HEADER.unpack_from(content, position)[1]
            try:
                events.extend(_ENTRY.decode(_value(view[position : position + length])).events)
            except (msgspec.DecodeError, IndexError):
                problem = "no records of a controller"
            position += length
        if problem is not None:
            return MetadataLog(events=tuple(events), problem=f"{problem} at byte {position}")
    return MetadataLog(events=tuple(events), problem=None)


def _value(batch: memoryview) -> memoryview:
    """Returns the value of a batch's first record.

    Raises:
        IndexError: it has none.
    """
    _, at = _varint(batch, HEADER.size)
    size, start = _varint(batch, at + _BEFORE_VALUE)
    return batch[start : start + size]


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    """Returns a zig-zag number that is not negative, and where it ends."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1, at
        shift += 7


def contradictions_of_log(node: int, log: MetadataLog, cluster: ClusterFacts) -> Iterator[str]:
    """Yields a sentence for each record of which a controller's log and its events say something else.

    A controller that was killed may have written records that it did not live to record.
    """
    reported = {_key(each.event): each.event for kind in _COMPARED for each in cluster.events.of(kind)}
    kept = {_key(event): event for event in log.events if type(event) in _COMPARED}
    reported_up_to = max((key[0] for key in reported), default=-1)
    name = f"the log of controller {node} on disk"
    was_killed = (node, cluster.last_incarnation.get(node, 0)) in cluster.killed
    if log.problem is not None and not was_killed:
        yield f"{name} cannot be read to its end: {log.problem}"
        return
    for key in sorted(reported.keys() | kept.keys()):
        offset, kind, _, _ = key
        if key not in kept:
            yield f"{name} has no {kind} at metadata offset {offset}, and its events do"
        elif key not in reported:
            if offset <= reported_up_to or not was_killed:
                yield f"{name} has a {kind} at metadata offset {offset}, and its events do not"
        elif reported[key] != kept[key]:
            yield f"{name} and its events say different things of metadata offset {offset}"


def _key(event: Event) -> _Key:
    offset = getattr(event, "metadata_offset")  # noqa: B009 - of COMMITTED, by its definition
    return offset, type(event).__name__, getattr(event, "topic_id", None) or "", getattr(event, "partition", 0)
