"""Producer snapshots: the last batch of every producer, at a certain end offset of the log.

``<offset>.snapshot`` covers everything below the offset in its name::

    version i16 = 1 | crc u32 | count i32 | count x entry       CRC-32C over everything after itself

    producer id i64 | epoch i16 | last sequence i32 | last offset i64 | offset delta i32
    timestamp i64 | coordinator epoch i32, -1 for none | first offset of the open transaction i64, -1 for none

Source: Kafka's ``ProducerStateManager``. A snapshot is a shortcut: whatever is missing or unreadable is replayed from
the log, so it is not synced when written.
"""

import struct
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from laststand.emulator.core import inputs
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import Offset, ProducerEpoch, ProducerId
from laststand.emulator.storage.filesystem import FileSystem, OpenMode, read_file
from laststand.emulator.storage.record_batch import checksum
from laststand.emulator.storage.segment import SNAPSHOT_SUFFIX, offset_file_path

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_NONE: Final = -1

LastBatch: TypeAlias = inputs.ProducerSnapshotEntry | BatchDescriptor
"""The state of a producer: an entry, or the last batch of one that has taken part in no transaction."""


def after_batch(known: LastBatch | None, batch: BatchDescriptor) -> LastBatch:
    """Returns the state of a producer after a batch of it was appended (``ProducerAppendInfo``)."""
    before = known if isinstance(known, inputs.ProducerSnapshotEntry) else None
    if not batch.is_transactional and (before is None or before.coordinator_epoch == _NONE):
        return batch
    before = None if known is None else snapshot_entry(known)
    coordinator_epoch = _NONE if before is None else before.coordinator_epoch
    if batch.marker is None:
        opened = None if before is None else before.transaction_first_offset
        if opened is None and batch.is_transactional:
            opened = batch.base_offset
        return msgspec.structs.replace(
            snapshot_entry(batch), coordinator_epoch=coordinator_epoch, transaction_first_offset=opened
        )
    if before is None or before.producer_epoch != batch.producer_epoch:
        before = inputs.ProducerSnapshotEntry(
            producer_id=_id_of(batch),
            producer_epoch=batch.producer_epoch,
            last_sequence=_NONE,
            last_offset=Offset(_NONE),
            offset_delta=0,
            timestamp_ms=batch.max_timestamp_ms,
        )
    return msgspec.structs.replace(
        before,
        timestamp_ms=batch.max_timestamp_ms,
        coordinator_epoch=batch.marker.coordinator_epoch,
        transaction_first_offset=None,
    )


def snapshot_entry(known: LastBatch) -> inputs.ProducerSnapshotEntry:
    """Returns the snapshot entry of a producer."""
    if isinstance(known, inputs.ProducerSnapshotEntry):
        return known
    return inputs.ProducerSnapshotEntry(
        producer_id=_id_of(known),
        producer_epoch=known.producer_epoch,
        last_sequence=known.last_sequence,
        last_offset=known.last_offset,
        offset_delta=known.last_offset - known.base_offset,
        timestamp_ms=known.max_timestamp_ms,
    )


def _id_of(batch: BatchDescriptor) -> ProducerId:
    return ProducerId(_NONE) if batch.producer_id is None else batch.producer_id


def encode_snapshot(entries: Iterable[inputs.ProducerSnapshotEntry]) -> bytes:
    """Returns the content of a snapshot file."""
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.offset_delta,
            entry.timestamp_ms,
            entry.coordinator_epoch,
            _NONE if entry.transaction_first_offset is None else entry.transaction_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, checksum(body)) + body


def decode_snapshot(content: bytes, *, path: str) -> tuple[inputs.ProducerSnapshotEntry, ...]:
    """Inverse of ``encode_snapshot``.

    Raises:
        StorageError: version, CRC or length is wrong.
    """
    if len(content) < _HEAD.size + _COUNT.size:
        raise StorageError(path=path, reason="too short for a producer snapshot")
    version, crc = _HEAD.unpack_from(content)
    body = memoryview(content)[_HEAD.size :]
    if version != _VERSION or checksum(body) != crc:
        raise StorageError(path=path, reason="producer snapshot with a wrong version or CRC")
    (count,) = _COUNT.unpack_from(body)
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise StorageError(path=path, reason="producer snapshot with a wrong length")
    return tuple(
        inputs.ProducerSnapshotEntry(
            producer_id=ProducerId(producer_id),
            producer_epoch=ProducerEpoch(producer_epoch),
            last_sequence=last_sequence,
            last_offset=Offset(last_offset),
            offset_delta=offset_delta,
            timestamp_ms=timestamp_ms,
            coordinator_epoch=coordinator_epoch,
            transaction_first_offset=None if first_offset < 0 else Offset(first_offset),
        )
        for (
            producer_id,
            producer_epoch,
            last_sequence,
            last_offset,
            offset_delta,
            timestamp_ms,
            coordinator_epoch,
            first_offset,
        ) in _ENTRY.iter_unpack(body[_COUNT.size :])
    )


def snapshot_offsets(filesystem: FileSystem, directory: str) -> list[Offset]:
    """Returns the offsets of all snapshots in a partition directory, ascending."""
    return sorted(
        Offset(int(name.removesuffix(SNAPSHOT_SUFFIX)))
        for name in filesystem.list_directory(directory)
        if name.endswith(SNAPSHOT_SUFFIX)
    )


def write_snapshot(
    filesystem: FileSystem, directory: str, offset: Offset, entries: Iterable[inputs.ProducerSnapshotEntry]
) -> None:
    """Writes the snapshot at ``offset``, replacing an existing one.

    Raises:
        StorageError: the write failed.
    """
    path = offset_file_path(directory, offset, SNAPSHOT_SUFFIX)
    if filesystem.exists(path):
        filesystem.unlink(path)
    file = filesystem.open(path, OpenMode.APPEND)
    try:
        file.append((encode_snapshot(entries),))
    finally:
        file.close()


def delete_snapshot(filesystem: FileSystem, directory: str, offset: Offset) -> None:
    """Removes the snapshot at ``offset``.

    Raises:
        StorageError: the removal failed.
    """
    filesystem.unlink(offset_file_path(directory, offset, SNAPSHOT_SUFFIX))


def newest_snapshot(
    filesystem: FileSystem, directory: str, *, at_most: Offset
) -> tuple[Offset, tuple[inputs.ProducerSnapshotEntry, ...]]:
    """Returns the newest readable snapshot at or below an offset; offset 0 and no entries if there is none.

    Unreadable ones on the way are removed, as Kafka does.

    Raises:
        StorageError: a removal failed.
    """
    for offset in reversed(snapshot_offsets(filesystem, directory)):
        if offset <= at_most:
            path = offset_file_path(directory, offset, SNAPSHOT_SUFFIX)
            try:
                return offset, decode_snapshot(read_file(filesystem, path), path=path)
            except StorageError:
                delete_snapshot(filesystem, directory, offset)
    return Offset(0), ()


def delete_stray_snapshots(filesystem: FileSystem, directory: str, segment_bases: Iterable[Offset]) -> None:
    """Removes snapshots that belong to no segment, but for the largest if it is not below the newest segment.

    Source: Kafka's ``ProducerStateManager.removeStraySnapshots``.

    Raises:
        StorageError: a removal failed.
    """
    bases = set(segment_bases)
    strays = [offset for offset in snapshot_offsets(filesystem, directory) if offset not in bases]
    if strays and bases and strays[-1] >= max(bases):
        strays.pop()
    for offset in strays:
        delete_snapshot(filesystem, directory, offset)
