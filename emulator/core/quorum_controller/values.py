"""Metadata records as values in the log of one or several controllers: encoded and decoded.

A value is a record; the last of a batch carries the events that describe the batch, so that a successor can write the
events of a predecessor that was killed before it wrote them. Records of the quorum itself take offsets, too; to the
metadata image they are ``ControlRecord``, which changes nothing.
"""

from typing import Final, Protocol

import msgspec

from laststand.emulator.core import records
from laststand.emulator.core.events import ControllerEvent, OtherRecordCommitted
from laststand.emulator.core.quorum.batches import ControlRecord, KRaftVoters, LeaderChange, QuorumBatch
from laststand.emulator.core.types import CauseId, MetadataOffset


class StoredRecord(msgspec.Struct, frozen=True, array_like=True):
    """The content of a value: a record, and in the last one of a batch the events of that batch."""

    record: records.Record
    events: tuple[ControllerEvent, ...] = ()


class ValueCodec(Protocol):
    """The form that values have in one log."""

    def encode(self, batch: records.MetadataBatch, events: tuple[ControllerEvent, ...]) -> tuple[bytes, ...]:
        """Returns the values of a batch in the log, and of the events that describe it."""

    def decode(self, value: bytes) -> StoredRecord:
        """Returns the record and the events of a value."""


class CommittedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of the quorum's log as the controllers read it."""

    batch: records.MetadataBatch
    events: tuple[ControllerEvent, ...]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(StoredRecord)


class PlainValues:
    """``ValueCodec`` of the simulator, whose logs no other program reads: MessagePack."""

    def encode(self, batch: records.MetadataBatch, events: tuple[ControllerEvent, ...]) -> tuple[bytes, ...]:
        """Returns the values of a batch."""
        *first, last = batch.records
        stored = [*map(StoredRecord, first), StoredRecord(last, events)]
        return tuple(map(_ENCODER.encode, stored))

    def decode(self, value: bytes) -> StoredRecord:
        """Returns the record and the events of a value.

        Raises:
            msgspec.DecodeError: the value holds other data.
        """
        return _DECODER.decode(value)


PLAIN_VALUES: Final = PlainValues()


def decode_batch(batch: QuorumBatch, *, values: ValueCodec, cause_id: CauseId) -> CommittedBatch:
    """Returns the records of a batch, and the events that describe them.

    Args:
        batch: of the log.
        values: the form of its values.
        cause_id: of the events of control records, whose causes are not kept.
    """
    if batch.control:
        control = tuple(_control_record(record) for record in batch.control)
        committed = tuple(
            OtherRecordCommitted(
                cause_id=cause_id, metadata_offset=MetadataOffset(batch.base_offset + index), record=record.name
            )
            for index, record in enumerate(control)
        )
        return CommittedBatch(
            batch=records.MetadataBatch(base_offset=batch.base_offset, records=control), events=committed
        )
    stored = [values.decode(value) for value in batch.values]
    return CommittedBatch(
        batch=records.MetadataBatch(base_offset=batch.base_offset, records=tuple(each.record for each in stored)),
        events=tuple(event for each in stored for event in each.events),
    )


def _control_record(record: ControlRecord) -> records.ControlRecord:
    name = type(record).__name__
    match record:
        case LeaderChange(leader_id=leader_id):
            return records.ControlRecord(name=name, leader_id=leader_id)
        case KRaftVoters(voters=voters):
            return records.ControlRecord(name=name, voters=tuple(sorted(voters.node_ids)))
        case _:
            return records.ControlRecord(name=name)
