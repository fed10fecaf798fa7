"""The checkpoint at the beginning of a metadata log whose voters are nodes and directories (KIP-853).

Kafka's ``StorageTool`` writes it (``--initial-controllers``) as the checkpoint of offset 0 and epoch 0::

    SnapshotHeader | KRaftVersion 1 | KRaftVoters      one control batch
    the bootstrap records                              since KIP-1170; before it they are in bootstrap.checkpoint
    SnapshotFooter                                     a control batch
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from laststand.emulator.core.quorum.batches import ControlRecord, KRaftVersion, KRaftVoters
from laststand.emulator.core.quorum.voter_set import VoterSet
from laststand.emulator.core.types import LeaderEpoch, Offset
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, scan_batches
from laststand.emulator.storage.control_records import encode_control
from laststand.emulator.storage.fields import INT16, INT64
from laststand.emulator.storage.record_batch import CONTROL, MARKER_KEY, describe_header, stamp
from laststand.emulator.storage.value_batch import encode_record, seal_batch

FIRST_CHECKPOINT: Final = f"{0:020}-{0:010}.checkpoint"
"""Its name in the directory of the metadata log."""

_VERSION: Final = 0
_HEADER_TYPE: Final = 3
_FOOTER_TYPE: Final = 4
_NO_TAGS: Final = b"\x00"
_DYNAMIC: Final = 1
_EPOCH: Final = LeaderEpoch(0)


def first_checkpoint(voters: VoterSet, *, bootstrap: bytes = b"", timestamp_ms: int) -> bytes:
    """Returns the content of the file.

    Args:
        voters: of the quorum, with directories and addresses.
        bootstrap: content of a checkpoint that has the bootstrap records and no voters; empty where they are elsewhere.
        timestamp_ms: of its records.
    """
    header = (MARKER_KEY.pack(_VERSION, _HEADER_TYPE), INT16.pack(_VERSION) + INT64.pack(timestamp_ms) + _NO_TAGS)
    control: tuple[ControlRecord, ...] = (KRaftVersion(level=_DYNAMIC), KRaftVoters(voters=voters))
    footer = (MARKER_KEY.pack(_VERSION, _FOOTER_TYPE), INT16.pack(_VERSION) + _NO_TAGS)
    batches = [
        _control_batch([header, *map(encode_control, control)], timestamp_ms),
        *_value_batches(bootstrap),
        _control_batch([footer], timestamp_ms),
    ]
    content, offset = b"", 0
    for batch in batches:
        described = describe_header(batch, 0)
        placed = msgspec.structs.replace(described, base_offset=Offset(offset), leader_epoch=_EPOCH)
        content += bytes(stamp(batch, placed))
        offset += described.record_count
    return content


def _control_batch(records: Sequence[tuple[bytes, bytes]], timestamp_ms: int) -> bytes:
    parts = [part for delta, (key, value) in enumerate(records) for part in encode_record(delta, key, value)]
    return seal_batch(parts, record_count=len(records), timestamp_ms=timestamp_ms, attributes=CONTROL)


def _value_batches(checkpoint: bytes) -> list[bytes]:
    scan = scan_batches(BytesFile(checkpoint), check=BatchValidation.CRC)
    return [
        checkpoint[position : position + batch.size]
        for batch, position in zip(scan.batches, scan.positions, strict=True)
        if not batch.is_control
    ]
