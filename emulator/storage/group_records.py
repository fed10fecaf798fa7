"""Records of ``__consumer_offsets`` in Kafka's format, so that Kafka's own tools read the log.

::

    key of an offset  = 1 i16 | group string | topic string | partition i32
    its value         = 4 i16 | offset i64 | leaderEpoch i32 | metadata compact string | commitTimestamp i64 | tags
                        1 i16 | offset i64 | metadata string | commitTimestamp i64 | expireTimestamp i64
    key of a group    = 2 i16 | group string
    its value         = 3 i16 | protocolType string | generation i32 | protocol string? | leader string?
                        | currentStateTimestamp i64 | count i32 | members
    member            = memberId string | instanceId string? | clientId string | clientHost string
                        | rebalanceTimeout i32 | sessionTimeout i32 | subscription bytes | assignment bytes

A string has a length of two bytes, bytes one of four, -1 for null; a null value is a tombstone. A batch is never
compressed. Records of other types, and values of other versions, were not written here and are passed over. Source:
Kafka's ``GroupCoordinatorRecordHelpers``, ``OffsetCommitValue.json``, ``GroupMetadataValue.json``.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from laststand.emulator.core.errors import CorruptRecordError
from laststand.emulator.core.group_records import (
    CONSUMER_PROTOCOL,
    EncodedBatch,
    GroupMetadata,
    GroupRecord,
    GroupRemoved,
    LoadedRecord,
    MemberMetadata,
    OffsetCommitted,
    OffsetRemoved,
)
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicId, TopicPartition
from laststand.emulator.core.uuid_text import uuid_bytes, uuid_text
from laststand.emulator.storage.record_batch import HEADER, batch_size_at, describe_header
from laststand.emulator.storage.value_batch import seal_batch, zig_zag

_OFFSET, _GROUP = 1, 2
_EXPIRING, _LEGACY_OFFSET, _CURRENT_OFFSET = 1, 3, 4
_GROUP_VERSION: Final = 3
_TOPIC_ID_TAG: Final = 0
_UUID_BYTES: Final = 16
_ATTRIBUTES_AND_TIMESTAMP: Final = b"\x00\x00"
_NO_HEADERS: Final = b"\x00"
_NULL: Final = b"\x01"
"""The length of a null key or value: -1, in zig-zag form."""

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_OFFSET_HEAD: Final = struct.Struct(">hqi")
_EXPIRING_HEAD: Final = struct.Struct(">hq")
_TIME: Final = struct.Struct(">q")
_TIMES: Final = struct.Struct(">qq")
_TIMEOUTS: Final = struct.Struct(">ii")


def encode_records(records: Sequence[GroupRecord], *, timestamp_ms: int) -> EncodedBatch:
    """Returns one batch of records, all of one time, with offsets from 0."""
    parts: list[bytes] = []
    for number, record in enumerate(records):
        key, value = encode_key(record), encode_value(record, timestamp_ms=timestamp_ms)
        sized_value = _NULL if value is None else zig_zag(len(value)) + value
        body = b"".join((_ATTRIBUTES_AND_TIMESTAMP, zig_zag(number), zig_zag(len(key)), key, sized_value, _NO_HEADERS))
        parts += (zig_zag(len(body)), body)
    content = seal_batch(parts, record_count=len(records), timestamp_ms=timestamp_ms)
    return EncodedBatch(describe_header(content, 0), content)


def encode_key(record: GroupRecord) -> bytes:
    """Returns the key of a record."""
    match record:
        case (
            OffsetCommitted(group_id=group_id, partition=partition)
            | OffsetRemoved(group_id=group_id, partition=partition)
        ):
            name = _string(group_id) + _string(partition.topic)
            return _INT16.pack(_OFFSET) + name + _INT32.pack(partition.partition)
        case GroupMetadata(group_id=group_id) | GroupRemoved(group_id=group_id):
            return _INT16.pack(_GROUP) + _string(group_id)


def encode_value(record: GroupRecord, *, timestamp_ms: int) -> bytes | None:
    """Returns the value of a record, ``None`` for a tombstone."""
    match record:
        case OffsetRemoved() | GroupRemoved():
            return None
        case OffsetCommitted(retention_ms=None):
            leader_epoch = -1 if record.leader_epoch is None else record.leader_epoch
            metadata = record.metadata.encode()
            topic_id = record.topic_id
            tags = b"\x00"
            if topic_id is not None:
                tags = bytes((1, _TOPIC_ID_TAG, _UUID_BYTES)) + uuid_bytes(topic_id)
            head = _OFFSET_HEAD.pack(_CURRENT_OFFSET, record.offset, leader_epoch)
            return b"".join((head, _varint(len(metadata) + 1), metadata, _TIME.pack(timestamp_ms), tags))
        case OffsetCommitted(retention_ms=retention_ms):
            head = _EXPIRING_HEAD.pack(_EXPIRING, record.offset)
            return head + _string(record.metadata) + _TIMES.pack(timestamp_ms, timestamp_ms + (retention_ms or 0))
        case GroupMetadata():
            return b"".join(
                (
                    _INT16.pack(_GROUP_VERSION),
                    _string(record.protocol_type),
                    _INT32.pack(record.generation_id),
                    _string(record.protocol_name),
                    _string(record.leader),
                    _TIME.pack(timestamp_ms),
                    _INT32.pack(len(record.members)),
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
        return _INT16.pack(-1)
    content = text.encode()
    return _INT16.pack(len(content)) + content


def _bytes(content: bytes) -> bytes:
    return _INT32.pack(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# --- Reading ------------------------------------------------------------------------------------------------------


def decode_records(batches: bytes) -> tuple[LoadedRecord, ...]:
    """Returns the records of concatenated batches as they are in a log.

    Raises:
        CorruptRecordError: the bytes are anything but whole batches of whole records.
    """
    loaded: list[LoadedRecord] = []
    position = 0
    while position < len(batches):
        size = batch_size_at(batches, position)
        if size is None:
            raise CorruptRecordError(path="<batches>", position=position, reason="no whole batch")
        header = describe_header(batches, position)
        if not header.is_control:
            try:
                for stored in _stored(batches, position + HEADER.size, header.record_count):
                    record = decode_record(stored.key, stored.value)
                    if record is not None:
                        loaded.append(LoadedRecord(record, Offset(header.base_offset + stored.offset_delta + 1)))
            except (struct.error, IndexError, UnicodeDecodeError) as error:
                raise CorruptRecordError(path="<batches>", position=position, reason=str(error)) from error
        position += size
    return tuple(loaded)


class _Stored(NamedTuple):
    offset_delta: int
    key: bytes | None
    value: bytes | None


def _stored(content: bytes, position: int, count: int) -> Iterator[_Stored]:
    for _ in range(count):
        size, position = _zig_zag_at(content, position)
        end = position + size
        _, position = _zig_zag_at(content, position + 1)
        offset_delta, position = _zig_zag_at(content, position)
        key, position = _sized_at(content, position)
        value, position = _sized_at(content, position)
        yield _Stored(offset_delta, key, value)
        position = end


def _zig_zag_at(content: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), position
        shift += 7


def _sized_at(content: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = _zig_zag_at(content, position)
    if size < 0:
        return None, position
    return content[position : position + size], position + size


class _Reader:
    """Reads the fields of a key or a value one after the other."""

    __slots__ = ("_content", "_position")

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def numbers(self, form: struct.Struct) -> tuple[int, ...]:
        found = form.unpack_from(self._content, self._position)
        self._position += form.size
        return found

    def number(self, form: struct.Struct) -> int:
        return self.numbers(form)[0]

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._content):
            raise IndexError(f"{size} bytes at {self._position} of {len(self._content)}")
        found = self._content[self._position : end]
        self._position = end
        return found

    def string_or_null(self) -> str | None:
        size = self.number(_INT16)
        return None if size < 0 else self.take(size).decode()

    def string(self) -> str:
        return self.string_or_null() or ""

    def content(self) -> bytes:
        return self.take(max(0, self.number(_INT32)))

    def varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def decode_record(key: bytes | None, value: bytes | None) -> GroupRecord | None:
    """Returns a record; ``None`` for one of another type or version.

    Raises:
        struct.error, IndexError, UnicodeDecodeError: key or value ends too soon, or has a text that is none.
    """
    if key is None:
        return None
    reader = _Reader(key)
    match reader.number(_INT16):
        case 0 | 1:
            group_id, topic = reader.string(), reader.string()
            partition = TopicPartition(topic, reader.number(_INT32))
            if value is None:
                return OffsetRemoved(group_id=group_id, partition=partition)
            return _offset(group_id, partition, _Reader(value))
        case 2:
            group_id = reader.string()
            return GroupRemoved(group_id=group_id) if value is None else _group(group_id, _Reader(value))
        case _:
            return None


def _offset(group_id: str, partition: TopicPartition, reader: _Reader) -> OffsetCommitted | None:
    version = reader.number(_INT16)
    offset = reader.number(_TIME)
    if version == _EXPIRING:
        metadata = reader.string()
        committed_ms, expires_ms = reader.numbers(_TIMES)
        return OffsetCommitted(
            group_id=group_id,
            partition=partition,
            offset=offset,
            metadata=metadata,
            retention_ms=expires_ms - committed_ms,
        )
    if version not in (_LEGACY_OFFSET, _CURRENT_OFFSET):
        return None
    leader_epoch = reader.number(_INT32)
    topic_id: TopicId | None = None
    if version == _LEGACY_OFFSET:
        metadata = reader.string()
    else:
        metadata = reader.take(reader.varint() - 1).decode()
        reader.number(_TIME)
        for _ in range(reader.varint()):
            tag, content = reader.varint(), reader.take(reader.varint())
            if tag == _TOPIC_ID_TAG:
                topic_id = TopicId(uuid_text(content))
    return OffsetCommitted(
        group_id=group_id,
        partition=partition,
        offset=offset,
        leader_epoch=None if leader_epoch < 0 else LeaderEpoch(leader_epoch),
        metadata=metadata,
        topic_id=topic_id,
    )


def _group(group_id: str, reader: _Reader) -> GroupMetadata | None:
    if reader.number(_INT16) != _GROUP_VERSION:
        return None
    protocol_type, generation_id = reader.string(), reader.number(_INT32)
    protocol_name, leader = reader.string_or_null(), reader.string_or_null()
    reader.number(_TIME)
    members: list[MemberMetadata] = []
    for _ in range(reader.number(_INT32)):
        member_id, instance_id = reader.string(), reader.string_or_null()
        client_id, client_host = reader.string(), reader.string()
        rebalance_timeout_ms, session_timeout_ms = reader.numbers(_TIMEOUTS)
        subscription, assignment = reader.content(), reader.content()
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
    )


def subscribed_topics(protocol_type: str, subscription: bytes) -> tuple[str, ...] | None:
    """Returns the topics of a member's subscription; ``None`` if it is none of Kafka's consumer protocol."""
    if protocol_type != CONSUMER_PROTOCOL:
        return None
    reader = _Reader(subscription)
    try:
        reader.number(_INT16)
        count = reader.number(_INT32)
        return tuple([reader.string() for _ in range(min(count, len(subscription)))])
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
