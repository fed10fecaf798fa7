"""Metadata records in the log of one or several controllers: what is written becomes values, and is read back.

A value is a record; the last of a batch carries the events that describe the batch, so that a successor can write down
what its predecessor decided and was killed before writing. Records of the quorum itself take offsets, too; to the
metadata image they are ``ControlRecord``, which changes nothing.
"""

from typing import Final

import msgspec

from laststand.emulator.core import records
from laststand.emulator.core.events import ControllerEvent, OtherRecordCommitted
from laststand.emulator.core.quorum.batches import ControlRecord, LeaderChange, QuorumBatch
from laststand.emulator.core.types import CauseId, MetadataOffset


class _Value(msgspec.Struct, frozen=True, array_like=True):
    record: records.Record
    events: tuple[ControllerEvent, ...] = ()


class CommittedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of the quorum's log as the controllers read it."""

    batch: records.MetadataBatch
    events: tuple[ControllerEvent, ...]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Value)


def encode_values(batch: records.MetadataBatch, events: tuple[ControllerEvent, ...]) -> tuple[bytes, ...]:
    """Returns the values of a batch in the log, and of the events that describe it."""
    *first, last = batch.records
    values = [*(_Value(record) for record in first), _Value(last, events)]
    return tuple(_ENCODER.encode(value) for value in values)


def decode_batch(batch: QuorumBatch, *, cause_id: CauseId) -> CommittedBatch:
    """Returns the records of a batch, and the events that describe them.

    Args:
        batch: of the log.
        cause_id: of the events of control records, whose causes are not kept.

    Raises:
        msgspec.DecodeError: the batch holds something else.
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
    values = [_DECODER.decode(value) for value in batch.values]
    return CommittedBatch(
        batch=records.MetadataBatch(base_offset=batch.base_offset, records=tuple(value.record for value in values)),
        events=tuple(event for value in values for event in value.events),
    )


def _control_record(record: ControlRecord) -> records.ControlRecord:
    leader_id = record.leader_id if isinstance(record, LeaderChange) else None
    return records.ControlRecord(name=type(record).__name__, leader_id=leader_id)
