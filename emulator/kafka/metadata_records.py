"""Decodes Kafka's metadata records into those of ``laststand.emulator.core.records``.

The value of a record of ``__cluster_metadata`` (``MetadataRecordSerde``)::

    unsigned varint frame version = 1 | unsigned varint api key | unsigned varint version | fields | tagged fields

Fields are those of Kafka's ``metadata/src/main/resources/common/metadata/*.json``, all of them flexible. Records that
do not affect replicas (quotas, ACLs, tokens, controllers) are named but not decoded. A log that one of Laststand's
controllers wrote has an additional field (``metadata_encoding.py``), which contains these, too.
"""

import struct
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET

from laststand.emulator.core import records
from laststand.emulator.core.events import ControllerEvent
from laststand.emulator.core.messages import FeatureRange
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    IncarnationId,
    LeaderEpoch,
    LeaderRecoveryState,
    NodeId,
    PartitionEpoch,
    ProducerId,
    TopicId,
)
from laststand.emulator.kafka.metadata_encoding import FRAME_VERSION, own_part
from laststand.emulator.kafka.numbers import RESOURCES, broker_or_none
from laststand.emulator.storage.fields import INT32, FieldError, FieldReader


class OtherRecord(msgspec.Struct, frozen=True):
    """A record, by its name, whose content is not emulated."""

    name: str


_OTHERS: Final = {
    6: "AccessControlEntryRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    14: "ClientQuotaRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    22: "RemoveUserScramCredentialRecord",
    26: "RemoveDelegationTokenRecord",
    27: "RegisterControllerRecord",
}


class MetadataRecordDecoder:
    """Decodes the records of one metadata log in their order: a few name a topic where the core wants its id."""

    def __init__(self) -> None:
        self._topic_ids: dict[str, TopicId] = {}

    def decode(self, value: bytes) -> records.Record | OtherRecord:
        """Returns the record that a value holds.

        Raises:
            FieldError: the value holds no record, or one of an unknown kind.
        """
        record, _ = self.decode_described(value)
        return record

    def decode_described(self, value: bytes) -> tuple[records.Record | OtherRecord, tuple[ControllerEvent, ...]]:
        """Returns the record that a value holds, and the events beside it; see ``decode``."""
        reader = FieldReader(value)
        frame_version, api_key, version = reader.varint(), reader.varint(), reader.varint()
        if frame_version != FRAME_VERSION:
            raise FieldError(f"frame version {frame_version} of a metadata record")
        try:
            own = own_part(value)
        except msgspec.DecodeError as error:
            raise FieldError(f"our own part of a metadata record: {error}") from error
        record = own.record or self._decode_fields(reader, api_key, version)
        if isinstance(record, records.TopicRecord):
            self._topic_ids[record.name] = record.topic_id
        return record, own.events

    def _decode_fields(self, reader: FieldReader, api_key: int, version: int) -> records.Record | OtherRecord:
        if api_key in _OTHERS:
            return OtherRecord(_OTHERS[api_key])
        if api_key == _CLEAR_ELR:
            return self._clear_elr(reader)
        if api_key not in _READERS:
            raise FieldError(f"metadata record of unknown kind {api_key}")
        return _READERS[api_key](reader, version)

    def _clear_elr(self, reader: FieldReader) -> records.ClearElrRecord:
        name = reader.text()
        if name and name not in self._topic_ids:
            raise FieldError(f"a record clears the ELR of {name}, which is no topic")
        return records.ClearElrRecord(topic_id=self._topic_ids[name] if name else None)


def directories_of(value: bytes) -> tuple[str, ...] | None:
    """Returns the log directories that a record assigns a partition's replicas to, in their order (KIP-858).

    Args:
        value: of a record that was decoded.

    Returns:
        ``None`` if the record assigns none.
    """
    reader = FieldReader(value)
    _, api_key, version = reader.varint(), reader.varint(), reader.varint()
    if api_key == _PARTITION and version >= 1:
        _ = reader.int32(), reader.uuid()
        _ = _brokers(reader), _brokers(reader), _brokers(reader), _brokers(reader)
        _ = reader.int32(), reader.int32(), reader.int32()
        return reader.array(reader.uuid)
    if api_key == _PARTITION_CHANGE:
        _ = reader.int32(), reader.uuid()
        directories = dict(reader.tagged()).get(_CHANGED_DIRECTORIES)
        return None if directories is None else _uuids(directories)
    return None


def _register_broker(reader: FieldReader, version: int) -> records.RegisterBrokerRecord:
    broker_id = _broker(reader)
    if version >= 2:
        reader.boolean()  # whether it is a ZooKeeper broker that migrates
    incarnation_id, broker_epoch = IncarnationId(reader.uuid()), BrokerEpoch(reader.int64())
    reader.array(lambda: _skip_endpoint(reader))
    features = reader.array(lambda: _feature(reader))
    rack, fenced = reader.string(), reader.boolean()
    in_controlled_shutdown = version >= 1 and reader.boolean()
    tagged = dict(reader.tagged())
    return records.RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=incarnation_id,
        broker_epoch=broker_epoch,
        log_dirs=_uuids(tagged[0]) if 0 in tagged else (),
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        rack=rack or "",
        features=features,
    )


def _skip_endpoint(reader: FieldReader) -> None:
    _ = reader.text(), reader.text(), reader.uint16(), reader.int16(), reader.tagged()


def _feature(reader: FieldReader) -> FeatureRange:
    feature = FeatureRange(
        name=reader.text(), min_supported_version=reader.int16(), max_supported_version=reader.int16()
    )
    reader.tagged()
    return feature


def _unregister_broker(reader: FieldReader, _: int) -> records.UnregisterBrokerRecord:
    return records.UnregisterBrokerRecord(broker_id=_broker(reader), broker_epoch=BrokerEpoch(reader.int64()))


def _topic(reader: FieldReader, _: int) -> records.TopicRecord:
    return records.TopicRecord(name=reader.text(), topic_id=TopicId(reader.uuid()))


def _remove_topic(reader: FieldReader, _: int) -> records.RemoveTopicRecord:
    return records.RemoveTopicRecord(topic_id=TopicId(reader.uuid()))


def _partition(reader: FieldReader, version: int) -> records.PartitionRecord:
    partition, topic_id = reader.int32(), TopicId(reader.uuid())
    replicas, isr, removing, adding = _brokers(reader), _brokers(reader), _brokers(reader), _brokers(reader)
    leader, leader_epoch, partition_epoch = reader.int32(), reader.int32(), reader.int32()
    if version >= 1:
        reader.array(reader.uuid)
    tagged = dict(reader.tagged())
    return records.PartitionRecord(
        topic_id=topic_id,
        partition=partition,
        replicas=replicas,
        isr=isr,
        leader=broker_or_none(leader),
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
        leader_recovery_state=LeaderRecoveryState(tagged[0].int8() if 0 in tagged else 0),
        elr=_brokers(tagged[1]) if 1 in tagged else (),
        last_known_leader=_last_known_leader(tagged[2]) if 2 in tagged else None,
        adding_replicas=adding,
        removing_replicas=removing,
    )


def _partition_change(reader: FieldReader, _: int) -> records.PartitionChangeRecord:
    partition, topic_id = reader.int32(), TopicId(reader.uuid())
    tagged = dict(reader.tagged())
    return records.PartitionChangeRecord(
        topic_id=topic_id,
        partition=partition,
        isr=_brokers(tagged[0]) if 0 in tagged else UNSET,
        leader=broker_or_none(tagged[1].int32()) if 1 in tagged else UNSET,
        replicas=_brokers(tagged[2]) if 2 in tagged else UNSET,
        removing_replicas=_brokers(tagged[3]) if 3 in tagged else UNSET,
        adding_replicas=_brokers(tagged[4]) if 4 in tagged else UNSET,
        leader_recovery_state=LeaderRecoveryState(tagged[5].int8()) if 5 in tagged else UNSET,
        elr=_brokers(tagged[6]) if 6 in tagged else UNSET,
        last_known_leader=_last_known_leader(tagged[7]) if 7 in tagged else UNSET,
    )


def _config(reader: FieldReader, _: int) -> records.ConfigRecord | OtherRecord:
    kind = reader.int8()
    if kind not in RESOURCES:
        return OtherRecord("ConfigRecord")
    return records.ConfigRecord(
        resource=RESOURCES[kind], resource_name=reader.text(), name=reader.text(), value=reader.string()
    )


def _feature_level(reader: FieldReader, _: int) -> records.FeatureLevelRecord:
    return records.FeatureLevelRecord(name=reader.text(), feature_level=reader.int16())


def _producer_ids(reader: FieldReader, _: int) -> records.ProducerIdsRecord:
    return records.ProducerIdsRecord(
        broker_id=_broker(reader),
        broker_epoch=BrokerEpoch(reader.int64()),
        next_producer_id=ProducerId(reader.int64()),
    )


def _fence_broker(reader: FieldReader, _: int) -> records.BrokerRegistrationChangeRecord:
    return records.BrokerRegistrationChangeRecord(
        broker_id=_broker(reader), broker_epoch=BrokerEpoch(reader.int64()), fenced=True
    )


def _unfence_broker(reader: FieldReader, _: int) -> records.BrokerRegistrationChangeRecord:
    return records.BrokerRegistrationChangeRecord(
        broker_id=_broker(reader), broker_epoch=BrokerEpoch(reader.int64()), fenced=False
    )


def _begin_transaction(reader: FieldReader, _: int) -> records.BeginTransactionRecord:
    return records.BeginTransactionRecord(name=_tagged_text(reader))


def _end_transaction(reader: FieldReader, _: int) -> records.EndTransactionRecord:
    reader.tagged()
    return records.EndTransactionRecord()


def _abort_transaction(reader: FieldReader, _: int) -> records.AbortTransactionRecord:
    return records.AbortTransactionRecord(reason=_tagged_text(reader))


def _tagged_text(reader: FieldReader) -> str | None:
    tagged = dict(reader.tagged())
    return tagged[0].string() if 0 in tagged else None


def _registration_change(reader: FieldReader, _: int) -> records.BrokerRegistrationChangeRecord:
    broker_id, broker_epoch = _broker(reader), BrokerEpoch(reader.int64())
    tagged = dict(reader.tagged())
    fenced = tagged[0].int8() if 0 in tagged else 0
    return records.BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        fenced=UNSET if fenced == 0 else fenced > 0,
        in_controlled_shutdown=True if 1 in tagged and tagged[1].int8() == 1 else UNSET,
        log_dirs=_uuids(tagged[2]) if 2 in tagged else UNSET,
    )


_CLEAR_ELR: Final = 28
_PARTITION: Final = 3
_PARTITION_CHANGE: Final = 5
_CHANGED_DIRECTORIES: Final = 8
_READERS: Final[dict[int, Callable[[FieldReader, int], records.Record | OtherRecord]]] = {
    0: _register_broker,
    1: _unregister_broker,
    2: _topic,
    _PARTITION: _partition,
    4: _config,
    _PARTITION_CHANGE: _partition_change,
    7: _fence_broker,
    8: _unfence_broker,
    9: _remove_topic,
    12: _feature_level,
    15: _producer_ids,
    17: _registration_change,
    23: _begin_transaction,
    24: _end_transaction,
    25: _abort_transaction,
}
"""The readers by API key."""


def _broker(reader: FieldReader) -> BrokerId:
    return BrokerId(NodeId(reader.int32()))


def _brokers(reader: FieldReader) -> tuple[BrokerId, ...]:
    count = reader.varint() - 1
    return struct.unpack(f">{count}i", reader.raw_bytes(INT32.size * count)) if count > 0 else ()


def _last_known_leader(reader: FieldReader) -> BrokerId | None:
    """Kafka keeps the last known leader in the field of the last known ELR (``PartitionChangeBuilder``)."""
    return next(iter(_brokers(reader)), None)


def _uuids(reader: FieldReader) -> tuple[str, ...]:
    return reader.array(reader.uuid)
