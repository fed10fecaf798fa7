"""Metadata records of ``laststand.emulator.core.records`` as Kafka writes them: the inverse of ``metadata_records.py``.

Kafka's schemas lack some content of Laststand's controllers: the events that describe a batch, the ids of access
control entries and of topics whose ELR is cleared, and a last known ELR beside a last known leader. These follow in an
additional tagged field, the last of the value, which Kafka's readers skip::

    fields | tagged fields of Kafka | 10000 | size | MessagePack [record or nil, [event, ...]] | its length i32 | "LSTD"

With its length at the end, it is found without Kafka's schemas.
"""

import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, assert_never

import msgspec
from msgspec import UNSET

from laststand.emulator.core import records
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.events import ControllerEvent
from laststand.emulator.core.messages import FeatureRange
from laststand.emulator.core.types import BrokerId, MetadataOffset, TopicId
from laststand.emulator.core.uuid_text import uuid_for
from laststand.emulator.kafka.numbers import RESOURCE_NUMBERS, number_of
from laststand.emulator.storage.fields import INT8, INT16, INT32, INT64, compact_text
from laststand.emulator.storage.varint import varint

FRAME_VERSION: Final = 1
"""The first byte of each value."""

_Tagged = dict[int, bytes]

_HEAD: Final = struct.Struct(">BBB")
_PARTITION: Final = struct.Struct(">i16s")
_LEADERSHIP: Final = struct.Struct(">iii")
_BROKER: Final = struct.Struct(">iq")
_QUOTA: Final = struct.Struct(">d?")
_LEVELS: Final = struct.Struct(">hh")
_NO_TAGS: Final = b"\x00"
_EMPTY_ARRAY: Final = b"\x01"
_ACL_ID: Final = struct.Struct(">8sq")
_ACL_MARK: Final = b"acl@offs"
"""The first half of the UUID of an access control entry; the other is its id, the offset of the record."""

_OWN_TAG: Final = varint(10_000)
_MARK: Final = b"LSTD"
_TRAILER: Final = struct.Struct(">i4s")
_MEMORY: Final = 4_096


class OwnPart(msgspec.Struct, frozen=True, array_like=True):
    """Content that Kafka's schemas have no place for.

    Attributes:
        record: the whole record, if Kafka's schemas lack it.
        events: of the batch, in the last of its records.
    """

    record: records.Record | None
    events: tuple[ControllerEvent, ...] = ()


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(OwnPart)
_NOTHING: Final = OwnPart(None)


def own_part(value: bytes) -> OwnPart:
    """Returns a value's content beside Kafka's fields; empty for a value that Kafka wrote.

    Raises:
        msgspec.DecodeError: the value holds other data at that place.
    """
    if not value.endswith(_MARK) or len(value) < _TRAILER.size:
        return _NOTHING
    length, _ = _TRAILER.unpack_from(value, len(value) - _TRAILER.size)
    end = len(value) - _TRAILER.size
    return _DECODER.decode(value[max(0, end - length) : end])


class _Fields:
    """Collects the fields of one record, and whether they express all of it.

    Args:
        version: of the record's schema.
    """

    __slots__ = ("is_whole", "parts", "tagged", "version")

    def __init__(self, version: int = 0) -> None:
        self.version = version
        self.parts: list[bytes] = []
        self.tagged: _Tagged = {}
        self.is_whole = True

    def uuid(self, text: str) -> bytes:
        """Returns the UUID of a text; for a text that is not a UUID, a UUID that is derived from it."""
        content, is_uuid = _uuid(text)
        self.is_whole &= is_uuid
        return content

    def uuids(self, texts: tuple[str, ...]) -> bytes:
        """Returns an array of UUIDs."""
        return b"".join((varint(len(texts) + 1), *map(self.uuid, texts)))

    def features(self, ranges: tuple[FeatureRange, ...]) -> bytes:
        """Returns an array of features; an empty one if a level is no int16."""
        parts = [varint(len(ranges) + 1)]
        for each in ranges:
            try:
                levels = _LEVELS.pack(each.min_supported_version, each.max_supported_version)
            except struct.error:
                self.is_whole = False
                return _EMPTY_ARRAY
            parts += (compact_text(each.name), levels, _NO_TAGS)
        return b"".join(parts)


def encode_record(
    record: records.Record,
    *,
    offset: MetadataOffset,
    topics: Mapping[TopicId, str],
    events: tuple[ControllerEvent, ...] = (),
) -> bytes:
    """Returns the value of a record in the log.

    Args:
        record: its content.
        offset: of the record.
        topics: names of topics by their ids.
        events: of the batch, if the record is the last of it.
    """
    api_key, fields = _encode(record, offset, topics)
    tags = fields.tagged
    own = b""
    count = len(tags)
    if events or not fields.is_whole:
        content = _ENCODER.encode(OwnPart(None if fields.is_whole else record, events))
        size = varint(len(content) + _TRAILER.size)
        own = b"".join((_OWN_TAG, size, content, _TRAILER.pack(len(content), _MARK)))
        count += 1
    head = _HEAD.pack(FRAME_VERSION, api_key, fields.version)
    return b"".join((head, *fields.parts, varint(count), *_tags(tags), own))


def _tags(tagged: _Tagged) -> Iterator[bytes]:
    for tag, content in sorted(tagged.items()):
        yield varint(tag)
        yield varint(len(content))
        yield content


def _encode(record: records.Record, offset: MetadataOffset, topics: Mapping[TopicId, str]) -> tuple[int, _Fields]:
    match record:
        case records.PartitionChangeRecord():
            return 5, _partition_change(record)
        case records.PartitionRecord():
            return 3, _partition(record)
        case records.TopicRecord(name=name, topic_id=topic_id):
            fields = _Fields()
            fields.parts += (compact_text(name), fields.uuid(topic_id))
            return 2, fields
        case records.RemoveTopicRecord(topic_id=topic_id):
            fields = _Fields()
            fields.parts.append(fields.uuid(topic_id))
            return 9, fields
        case records.RegisterBrokerRecord():
            return 0, _register_broker(record)
        case records.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker_epoch):
            fields = _Fields()
            fields.parts.append(_BROKER.pack(broker_id, broker_epoch))
            return 1, fields
        case records.BrokerRegistrationChangeRecord():
            return 17, _registration_change(record)
        case records.FeatureLevelRecord(name=name, feature_level=level):
            fields = _Fields()
            fields.parts += (compact_text(name), INT16.pack(level))
            return 12, fields
        case records.ConfigRecord():
            fields = _Fields()
            kind = INT8.pack(RESOURCE_NUMBERS[record.resource])
            fields.parts += (
                kind,
                compact_text(record.resource_name),
                compact_text(record.name),
                compact_text(record.value),
            )
            return 4, fields
        case records.ProducerIdsRecord():
            fields = _Fields()
            fields.parts += (_BROKER.pack(record.broker_id, record.broker_epoch), INT64.pack(record.next_producer_id))
            return 15, fields
        case records.BeginTransactionRecord() | records.EndTransactionRecord() | records.AbortTransactionRecord():
            return _transaction(record)
        case _:
            return _encode_beside_kafka(record, offset, topics)


def _transaction(
    record: records.BeginTransactionRecord | records.EndTransactionRecord | records.AbortTransactionRecord,
) -> tuple[int, _Fields]:
    fields = _Fields()
    match record:
        case records.BeginTransactionRecord(name=text):
            api_key = 23
        case records.AbortTransactionRecord(reason=text):
            api_key = 25
        case records.EndTransactionRecord():
            return 24, fields
        case _:
            assert_never(record)
    if text is not None:
        fields.tagged[0] = compact_text(text)
    return api_key, fields


def _encode_beside_kafka(
    record: records.ClearElrRecord
    | records.AccessControlEntryRecord
    | records.RemoveAccessControlEntryRecord
    | records.ClientQuotaRecord
    | records.ControlRecord,
    offset: MetadataOffset,
    topics: Mapping[TopicId, str],
) -> tuple[int, _Fields]:
    """Encodes records that are decoded from the part that Kafka skips."""
    fields = _Fields()
    fields.is_whole = False
    match record:
        case records.ClearElrRecord(topic_id=topic_id):
            fields.parts.append(compact_text("" if topic_id is None else topics.get(topic_id, "")))
            return 28, fields
        case records.AccessControlEntryRecord(entry=entry):
            fields.parts += (
                *(_ACL_ID.pack(_ACL_MARK, offset), INT8.pack(entry.resource_type), compact_text(entry.resource_name)),
                *(INT8.pack(entry.pattern_type), compact_text(entry.principal), compact_text(entry.host)),
                *(INT8.pack(entry.operation), INT8.pack(entry.permission)),
            )
            return 18, fields
        case records.RemoveAccessControlEntryRecord(acl_id=acl_id):
            fields.parts.append(_ACL_ID.pack(_ACL_MARK, acl_id))
            return 19, fields
        case records.ClientQuotaRecord(entity=entity, key=key, value=value):
            fields.parts.append(varint(len(entity) + 1))
            for part in entity:
                fields.parts += (compact_text(part.entity_type), compact_text(part.entity_name), _NO_TAGS)
            fields.parts += (compact_text(key), _QUOTA.pack(value or 0.0, value is None))
            return 14, fields
        case records.ControlRecord():
            raise InvariantError(f"{record} is the quorum's own, and lies in a control batch")
        case _:
            assert_never(record)


def _partition(record: records.PartitionRecord) -> _Fields:
    has_elr = bool(record.elr) or record.last_known_leader is not None
    fields = _Fields(2 if has_elr else 0)
    fields.is_whole = not record.last_known_elr
    fields.parts += (
        _PARTITION.pack(record.partition, fields.uuid(record.topic_id)),
        *(_brokers(record.replicas), _brokers(record.isr)),
        *(_brokers(record.removing_replicas), _brokers(record.adding_replicas)),
        _LEADERSHIP.pack(number_of(record.leader), record.leader_epoch, record.partition_epoch),
        _EMPTY_ARRAY if has_elr else b"",  # directories, which version 1 has
    )
    if record.leader_recovery_state:
        fields.tagged[0] = INT8.pack(record.leader_recovery_state)
    if record.elr:
        fields.tagged[1] = _brokers(record.elr)
    if record.last_known_leader is not None:
        fields.tagged[2] = _brokers((record.last_known_leader,))
    return fields


def _partition_change(record: records.PartitionChangeRecord) -> _Fields:
    fields = _Fields()
    fields.is_whole = record.last_known_elr is UNSET
    fields.parts.append(_PARTITION.pack(record.partition, fields.uuid(record.topic_id)))
    tagged = fields.tagged
    if record.isr is not UNSET:
        tagged[0] = _brokers(record.isr)
    if record.leader is not UNSET:
        tagged[1] = INT32.pack(number_of(record.leader))
    if record.replicas is not UNSET:
        tagged[2] = _brokers(record.replicas)
    if record.removing_replicas is not UNSET:
        tagged[3] = _brokers(record.removing_replicas)
    if record.adding_replicas is not UNSET:
        tagged[4] = _brokers(record.adding_replicas)
    if record.leader_recovery_state is not UNSET:
        tagged[5] = INT8.pack(record.leader_recovery_state)
    if record.elr is not UNSET:
        tagged[6] = _brokers(record.elr)
    if record.last_known_leader is not UNSET:
        tagged[7] = _brokers(() if record.last_known_leader is None else (record.last_known_leader,))
    if 6 in tagged or 7 in tagged:
        fields.version = 2
    return fields


def _register_broker(record: records.RegisterBrokerRecord) -> _Fields:
    fields = _Fields(3 if record.log_dirs else 1)
    fields.parts += (
        INT32.pack(record.broker_id),
        b"\x00" if record.log_dirs else b"",  # whether it migrates from ZooKeeper, since version 2
        fields.uuid(record.incarnation_id),
        INT64.pack(record.broker_epoch),
        _EMPTY_ARRAY,  # end points: nodes find each other by their ids
        fields.features(record.features),
        compact_text(record.rack or None),
        bytes((record.fenced, record.in_controlled_shutdown)),
    )
    if record.log_dirs:
        fields.tagged[0] = fields.uuids(record.log_dirs)
    return fields


def _registration_change(record: records.BrokerRegistrationChangeRecord) -> _Fields:
    fields = _Fields()
    fields.parts.append(_BROKER.pack(record.broker_id, record.broker_epoch))
    if record.fenced is not UNSET:
        fields.tagged[0] = INT8.pack(1 if record.fenced else -1)
    if record.in_controlled_shutdown is not UNSET:
        fields.version = 1
        fields.is_whole = record.in_controlled_shutdown
        fields.tagged[1] = INT8.pack(record.in_controlled_shutdown)
    if record.log_dirs is not UNSET:
        fields.version = 2
        fields.tagged[2] = fields.uuids(record.log_dirs)
    return fields


_uuid = lru_cache(maxsize=_MEMORY)(uuid_for)


@lru_cache(maxsize=_MEMORY)
def _brokers(ids: tuple[BrokerId, ...]) -> bytes:
    return varint(len(ids) + 1) + struct.pack(f">{len(ids)}i", *ids)
