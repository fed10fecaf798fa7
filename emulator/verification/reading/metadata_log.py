"""Reads controllers' logs on disk, as evidence in addition to their events.

A controller keeps its records in ``nodes/<id>/data/__cluster_metadata-0``, in Kafka's record batch format: a batch of
the log per batch of records, a record per metadata record. Values are Kafka's; behind Kafka's fields, the last one of a
batch has the events that record the batch, the same that the event files have once the records are committed::

    ... | MessagePack [record or nil, [event, ...]] | its length i32 | "LSTD"

Control records, which the quorum itself writes, are recognized by the types in their keys.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from laststand.emulator.core.events import (
    ControllerEvent,
    Event,
    OtherRecordCommitted,
)
from laststand.emulator.core.types import CauseId, MetadataOffset
from laststand.emulator.verification.facts.cluster import ClusterFacts
from laststand.emulator.verification.facts.quorum import COMPARED, LoggedBatch, MetadataLog, record_key, without_cause
from laststand.emulator.verification.reading.logs import AFTER_LENGTH, CONTROL_BIT, HEADER, batch_problem

_BASE_OFFSET: Final = 0
_LENGTH: Final = 1
_LEADER_EPOCH: Final = 2
_CRC: Final = 4
_ATTRIBUTES: Final = 5
_RECORD_COUNT: Final = 12
"""Places of fields in a header."""

_BEFORE_DELTAS: Final = 1
"""Bytes of a record's attributes."""


class _OwnPart(msgspec.Struct, frozen=True, array_like=True):
    record: msgspec.Raw
    events: tuple[ControllerEvent, ...] = ()


_OWN_PART: Final = msgspec.msgpack.Decoder(_OwnPart)
_TRAILER: Final = struct.Struct(">i4s")
_MARK: Final = b"LSTD"
_FRAME_VERSION: Final = 1
_CONTROL_KEY: Final = struct.Struct(">hh")
_CONTROL_RECORDS: Final = {2: "LeaderChange", 5: "KRaftVersion", 6: "KRaftVoters"}
"""Names of control records by Kafka's ``ControlRecordType``."""

_VOTERS: Final = "KRaftVoters"
_VERSION: Final = struct.Struct(">h")
_VOTER: Final = struct.Struct(">i16s")
"""A voter's id and the id of its disk."""

_PORT: Final = struct.Struct(">H")
_LEVELS: Final = struct.Struct(">hh")

_NO_CAUSE: Final = CauseId("")


def read_metadata_log(content: bytes) -> MetadataLog:
    """Returns the content of a controller's log file."""
    events: list[Event] = []
    batches: list[LoggedBatch] = []
    voters: dict[int, frozenset[int]] = {}
    view, position, end_offset = memoryview(content), 0, 0
    problem: str | None = None
    while position < len(content):
        problem = batch_problem(view, position)
        if problem is None:
            header = HEADER.unpack_from(content, position)
            length = AFTER_LENGTH + header[_LENGTH]
            try:
                batch = view[position : position + length]
                events += _events(batch)
                voters.update(_voters(batch))
            except (msgspec.DecodeError, IndexError, KeyError, struct.error):
                problem = "no records of a controller"
            end_offset = header[_BASE_OFFSET] + header[_RECORD_COUNT]
            batches.append(LoggedBatch(header[_BASE_OFFSET], end_offset, header[_LEADER_EPOCH], header[_CRC]))
            position += length
        if problem is not None:
            problem = f"{problem} at byte {position}"
            break
    return MetadataLog(tuple(batches), tuple(events), end_offset, problem, voters)


def _events(batch: memoryview) -> Iterator[Event]:
    header = HEADER.unpack_from(batch, 0)
    for offset, (key, value) in enumerate(_records(batch, header[_RECORD_COUNT]), header[_BASE_OFFSET]):
        if header[_ATTRIBUTES] & CONTROL_BIT:
            _, kind = _CONTROL_KEY.unpack(key)
            record = _CONTROL_RECORDS[kind]
            yield OtherRecordCommitted(cause_id=_NO_CAUSE, metadata_offset=MetadataOffset(offset), record=record)
        else:
            yield from _events_of(value)


def _voters(batch: memoryview) -> Iterator[tuple[int, frozenset[int]]]:
    """Yields offset and voters of each voters record in a batch; unreadable records are left out."""
    header = HEADER.unpack_from(batch, 0)
    if not header[_ATTRIBUTES] & CONTROL_BIT:
        return
    for offset, (key, value) in enumerate(_records(batch, header[_RECORD_COUNT]), header[_BASE_OFFSET]):
        _, kind = _CONTROL_KEY.unpack(key)
        if _CONTROL_RECORDS[kind] == _VOTERS:
            with suppress(IndexError, struct.error):
                yield offset, frozenset(_voter_ids(value))


def _voter_ids(value: memoryview) -> Iterator[int]:
    count, at = _unsigned(value, _VERSION.size)
    for _ in range(count - 1):
        yield _VOTER.unpack_from(value, at)[0]
        listeners, at = _unsigned(value, at + _VOTER.size)
        for _ in range(listeners - 1):
            name_size, at = _unsigned(value, at)
            host_size, at = _unsigned(value, at + name_size - 1)
            at = _after_tags(value, at + host_size - 1 + _PORT.size)
        at = _after_tags(value, _after_tags(value, at + _LEVELS.size))


def _after_tags(value: memoryview, at: int) -> int:
    count, at = _unsigned(value, at)
    for _ in range(count):
        _, at = _unsigned(value, at)
        size, at = _unsigned(value, at)
        at += size
    return at


def _events_of(value: memoryview) -> Sequence[ControllerEvent]:
    """Returns the events of a value.

    Raises:
        IndexError: the value is no metadata record.
    """
    if value[0] != _FRAME_VERSION:
        raise IndexError("no metadata record")
    end = len(value) - _TRAILER.size
    if end < 0:
        return ()
    length, mark = _TRAILER.unpack(value[end:])
    return _OWN_PART.decode(value[max(0, end - length) : end]).events if mark == _MARK else ()


def _records(batch: memoryview, record_count: int) -> Iterator[tuple[memoryview, memoryview]]:
    """Yields keys and values of a batch's records; the key of a record without one is empty.

    Raises:
        IndexError: the batch has fewer records than its header says.
    """
    at = HEADER.size
    for _ in range(record_count):
        length, at = _varint(batch, at)
        end = at + length
        _, at = _varint(batch, at + _BEFORE_DELTAS)
        _, at = _varint(batch, at)
        key_size, at = _varint(batch, at)
        size, value_at = _varint(batch, at + key_size)
        yield batch[at : at + key_size], batch[value_at : value_at + size]
        at = end


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    """Returns a zig-zag number, and the position after it; 0 for -1, which stands for null."""
    value, at = _unsigned(content, at)
    return value >> 1, at


def _unsigned(content: memoryview, at: int) -> tuple[int, int]:
    """Returns a number of variable length, and the position after it."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def contradictions_of_log(
    node: int, log: MetadataLog, cluster: ClusterFacts, *, others: Sequence[MetadataLog] = ()
) -> Iterator[str]:
    """Yields a sentence for each contradiction between a controller's log and the events about metadata records.

    A controller that was killed may have written records without an event. In a quorum, a controller may lag behind the
    others, and its log may end with records that were never committed.

    Args:
        node: the controller.
        log: the controller's log.
        cluster: has the events.
        others: the logs of all other controllers.
    """
    reported = {
        record_key(each.event): without_cause(each.event) for kind in COMPARED for each in cluster.events.of(kind)
    }
    kept = {record_key(event): without_cause(event) for event in log.events if type(event) in COMPARED}
    reported_up_to = max((key[0] for key in reported), default=-1)
    quorum = cluster.quorum
    name = f"the log of controller {node} on disk"
    was_killed = (node, cluster.last_incarnation.get(node, 0)) in cluster.killed
    if log.problem is not None and not was_killed:
        yield f"{name} cannot be read to its end: {log.problem}"
        return
    for key in sorted(reported.keys() | kept.keys()):
        offset, kind, _, _ = key
        if others and (offset >= quorum.known_end(node) or quorum.is_forgotten(offset)):
            continue  # the log's end may be cut there, or Q3 reports that there are two records
        if key not in kept:
            if not (offset >= log.end_offset and any(other.end_offset > offset for other in others)):
                yield f"{name} has no {kind} at metadata offset {offset}, and its events do"
        elif key not in reported:
            if offset <= reported_up_to or not (was_killed or others):
                yield f"{name} has a {kind} at metadata offset {offset}, and its events do not"
        elif reported[key] != kept[key]:
            yield f"{name} and its events say different things of metadata offset {offset}"
