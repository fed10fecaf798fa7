"""Records of ``__consumer_offsets`` in Kafka's format, so that Kafka's own tools read the log.

::

    key of an offset  = 1 i16 | group string | topic string | partition i32
    its value         = 4 i16 | offset i64 | leaderEpoch i32 | metadata compact string | commitTimestamp i64 | tags
                        1 i16 | offset i64 | metadata string | commitTimestamp i64 | expireTimestamp i64
    key of a group    = 2 i16 | group string
    its value         = 3 i16 | protocolType string | generation i32 | protocol string? | leader string?
                        | currentStateTimestamp i64 | count i32 | members
    key of a hold     = 704 i16, which Kafka passes over
    its value         = empty
    member            = memberId string | instanceId string? | clientId string | clientHost string
                        | rebalanceTimeout i32 | sessionTimeout i32 | subscription bytes | assignment bytes

A string has a length of two bytes, bytes one of four, -1 for null; a null value is a tombstone. A batch is never
compressed. Records of other types, and values of other versions, come from other programs and are skipped. Source:
Kafka's ``GroupCoordinatorRecordHelpers``, ``OffsetCommitValue.json``, ``GroupMetadataValue.json``.
"""

import struct
from functools import lru_cache
from typing import Final, TypeAlias

from laststand.emulator.core.group_records import (
    CONSUMER_PROTOCOL,
    GroupMetadata,
    GroupRecord,
    GroupRemoved,
    MemberMetadata,
    OffsetCommitted,
    OffsetRemoved,
    PositionsHeld,
)
from laststand.emulator.core.types import LeaderEpoch, TopicId, TopicPartition
from laststand.emulator.core.uuid_text import uuid_bytes
from laststand.emulator.storage.fields import INT16, INT32, INT64, FieldError, FieldReader
from laststand.emulator.storage.varint import varint

_OFFSET, _GROUP, _HOLD = 1, 2, 704
_EXPIRING, _LEGACY_OFFSET, _CURRENT_OFFSET = 1, 3, 4
_GROUP_VERSION: Final = 3
_TOPIC_ID_TAG: Final = 0
_UUID_BYTES: Final = 16

_OFFSET_HEAD: Final = struct.Struct(">hqi")
_EXPIRING_HEAD: Final = struct.Struct(">hq")
_POSITION: Final = struct.Struct(">qi")
_TIMES: Final = struct.Struct(">qq")
_TIMEOUTS: Final = struct.Struct(">ii")


KeyedRecord: TypeAlias = OffsetCommitted | OffsetRemoved | GroupMetadata | GroupRemoved | PositionsHeld


def encode_key(record: KeyedRecord) -> bytes:
    """Returns the key of a record."""
    match record:
        case (
            OffsetCommitted(group_id=group_id, partition=partition)
            | OffsetRemoved(group_id=group_id, partition=partition)
        ):
            name = _string(group_id) + _string(partition.topic)
            return INT16.pack(_OFFSET) + name + INT32.pack(partition.partition)
        case GroupMetadata(group_id=group_id) | GroupRemoved(group_id=group_id):
            return INT16.pack(_GROUP) + _string(group_id)
        case PositionsHeld():
            return INT16.pack(_HOLD)


def encode_value(record: KeyedRecord) -> bytes | None:
    """Returns the value of a record, ``None`` for a tombstone."""
    match record:
        case OffsetRemoved() | GroupRemoved():
            return None
        case PositionsHeld():
            return b""
        case OffsetCommitted(retention_ms=None):
            leader_epoch = -1 if record.leader_epoch is None else record.leader_epoch
            metadata = record.metadata.encode()
            topic_id = record.topic_id
            tags = b"\x00"
            if topic_id is not None:
                tags = bytes((1, _TOPIC_ID_TAG, _UUID_BYTES)) + uuid_bytes(topic_id)
            head = _OFFSET_HEAD.pack(_CURRENT_OFFSET, record.offset, leader_epoch)
            return b"".join((head, varint(len(metadata) + 1), metadata, INT64.pack(record.committed_ms), tags))
        case OffsetCommitted(retention_ms=retention_ms):
            head = _EXPIRING_HEAD.pack(_EXPIRING, record.offset)
            expires_ms = record.committed_ms + (retention_ms or 0)
            return head + _string(record.metadata) + _TIMES.pack(record.committed_ms, expires_ms)
        case GroupMetadata():
            return b"".join(
                (
                    INT16.pack(_GROUP_VERSION),
                    _string(record.protocol_type),
                    INT32.pack(record.generation_id),
                    _string(record.protocol_name),
                    _string(record.leader),
                    INT64.pack(-1 if record.state_ms is None else record.state_ms),
                    INT32.pack(len(record.members)),
                    *(_member(member) for member in record.members),
                )
            )


def _member(member: MemberMetadata) -> bytes:
    return b"".join(
        (
            _string(member.member_id),
            _string(member.instance_id),
            _string(member.client_id),
            _string(member.client_host),
            _TIMEOUTS.pack(member.rebalance_timeout_ms, member.session_timeout_ms),
            _bytes(member.subscription),
            _bytes(member.assignment),
        )
    )


def _string(text: str | None) -> bytes:
    if text is None:
        return INT16.pack(-1)
    content = text.encode()
    return INT16.pack(len(content)) + content


def _bytes(content: bytes) -> bytes:
    return INT32.pack(len(content)) + content


# --- Reading ------------------------------------------------------------------------------------------------------


def _text_or_null(reader: FieldReader) -> str | None:
    size = reader.int16()
    return None if size < 0 else reader.utf8(size)


def _text(reader: FieldReader) -> str:
    return _text_or_null(reader) or ""


def _content(reader: FieldReader) -> bytes:
    return reader.raw_bytes(max(0, reader.int32()))


def decode_record(key: bytes | None, value: bytes | None) -> GroupRecord | None:
    """Returns a record; ``None`` for one of another type or version.

    Raises:
        FieldError: key or value ends too soon, or has a text that is not UTF-8.
    """
    found = None if key is None else _key(key)
    if found is None:
        return None
    group_id, partition = found
    if group_id is None:
        return PositionsHeld()
    if partition is None:
        return GroupRemoved(group_id=group_id) if value is None else _group(group_id, FieldReader(value))
    if value is None:
        return OffsetRemoved(group_id=group_id, partition=partition)
    return _offset(group_id, partition, FieldReader(value))


@lru_cache(maxsize=4096)  # a position is committed again and again, and its key stays
def _key(key: bytes) -> tuple[str | None, TopicPartition | None] | None:
    """Returns the group, and the partition of a position; neither for a hold, and nothing for an unknown type."""
    reader = FieldReader(key)
    match reader.int16():
        case 0 | 1:
            group_id, topic = _text(reader), _text(reader)
            return group_id, TopicPartition(topic, reader.int32())
        case 2:
            return _text(reader), None
        case 704:  # _HOLD
            return None, None
        case _:
            return None


def _offset(group_id: str, partition: TopicPartition, reader: FieldReader) -> OffsetCommitted | None:
    version = reader.int16()
    if version == _EXPIRING:
        offset, metadata = reader.int64(), _text(reader)
        committed_ms, expires_ms = reader.numbers(_TIMES)
        return OffsetCommitted(
            group_id=group_id,
            partition=partition,
            offset=offset,
            metadata=metadata,
            committed_ms=committed_ms,
            retention_ms=expires_ms - committed_ms,
        )
    if version not in (_LEGACY_OFFSET, _CURRENT_OFFSET):
        return None
    offset, leader_epoch = reader.numbers(_POSITION)
    topic_id: TopicId | None = None
    if version == _LEGACY_OFFSET:
        metadata = _text(reader)
        committed_ms = reader.int64()
    else:
        metadata = reader.utf8(reader.varint() - 1)
        committed_ms = reader.int64()
        for tag, content in reader.tagged():
            if tag == _TOPIC_ID_TAG:
                topic_id = TopicId(content.uuid())
    return OffsetCommitted(
        group_id=group_id,
        partition=partition,
        offset=offset,
        leader_epoch=None if leader_epoch < 0 else LeaderEpoch(leader_epoch),
        metadata=metadata,
        topic_id=topic_id,
        committed_ms=committed_ms,
    )


def _group(group_id: str, reader: FieldReader) -> GroupMetadata | None:
    if reader.int16() != _GROUP_VERSION:
        return None
    protocol_type, generation_id = _text(reader), reader.int32()
    protocol_name, leader = _text_or_null(reader), _text_or_null(reader)
    state_ms = reader.int64()
    members: list[MemberMetadata] = []
    for _ in range(reader.int32()):
        member_id, instance_id = _text(reader), _text_or_null(reader)
        client_id, client_host = _text(reader), _text(reader)
        rebalance_timeout_ms, session_timeout_ms = reader.int32(), reader.int32()
        subscription, assignment = _content(reader), _content(reader)
        members.append(
            MemberMetadata(
                member_id=member_id,
                instance_id=instance_id,
                client_id=client_id,
                client_host=client_host,
                rebalance_timeout_ms=rebalance_timeout_ms,
                session_timeout_ms=session_timeout_ms,
                subscription=subscription,
                topics=subscribed_topics(protocol_type, subscription),
                assignment=assignment,
            )
        )
    return GroupMetadata(
        group_id=group_id,
        protocol_type=protocol_type,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader=leader,
        members=tuple(members),
        state_ms=None if state_ms < 0 else state_ms,
    )


def subscribed_topics(protocol_type: str, subscription: bytes) -> tuple[str, ...] | None:
    """Returns the topics of a member's subscription; ``None`` if it is none of Kafka's consumer protocol."""
    if protocol_type != CONSUMER_PROTOCOL:
        return None
    reader = FieldReader(subscription)
    try:
        reader.int16()
        count = reader.int32()
        return tuple([_text(reader) for _ in range(min(count, len(subscription)))])
    except FieldError:
        return None
