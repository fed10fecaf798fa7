"""Reads a copy of ``__cluster_metadata-0`` that nobody writes to, of a controller or of a broker: both have one.

::

    00000000000000000000.log                          record batches; each record's value is a metadata record
    00000000000000000821-0000000003.checkpoint        a snapshot of everything below offset 821, in the same format

A log that begins at 0 is read from there, with its history. If its beginning was deleted, the newest snapshot is read
first; a snapshot without any log is the state at its end. The last records may not be committed: the files do not show
that. Records between BeginTransactionRecord and EndTransactionRecord count once the latter is there (KIP-868).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core import records
from laststand.emulator.core.errors import CorruptRecordError, InvariantError, StorageError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, LeaderEpoch, MetadataOffset, TopicId
from laststand.emulator.kafka.metadata_records import MetadataRecordDecoder, OtherRecord, directories_of
from laststand.emulator.storage.batch_scan import BatchValidation, BytesFile, scan_batches
from laststand.emulator.storage.fields import FieldError
from laststand.emulator.storage.record_codec import read_records
from laststand.emulator.storage.segment import LOG_SUFFIX
from laststand.emulator.user_files import read_bytes

_SEGMENT: Final = re.compile(rf"[0-9]{{20}}{re.escape(LOG_SUFFIX)}")
_SNAPSHOT: Final = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint")
_RESERVED: Final = 20 * "A"
"""The beginnings of directory ids that name none: not assigned, lost, migrating (``DirectoryId``)."""


class DatedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A metadata record in the log.

    Attributes:
        offset: of the record; for a record of a snapshot, the snapshot's end offset.
        timestamp_ms: when it was written.
        leader_epoch: of the controller that wrote it.
        batch_offset: base offset of its batch: records of one batch were decided together.
        record: its content.
        directories: the directories to which it assigns a partition's replicas, in the replicas' order; ``None`` for
            none.
    """

    offset: MetadataOffset
    timestamp_ms: int
    leader_epoch: LeaderEpoch
    batch_offset: MetadataOffset
    record: records.Record | OtherRecord
    directories: tuple[str, ...] | None = None


class MetadataCopy(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a copy of the metadata log.

    Attributes:
        directory: of the copy.
        records: in order, transactions resolved.
        end_offset: end of the intact log, exclusive.
        last_epoch: of the controllers, in the last record of the log; 0 of a snapshot alone.
        snapshot_offset: end of the records that come from a snapshot; ``None`` if the log begins at 0.
        problem: why reading ended early; ``None`` if it did not.
    """

    directory: str
    records: tuple[DatedRecord, ...]
    end_offset: MetadataOffset
    last_epoch: LeaderEpoch
    snapshot_offset: MetadataOffset | None
    problem: str | None


def read_metadata_copy(directory: Path) -> MetadataCopy:
    """Returns the records of a copy of the metadata log.

    Raises:
        StorageError: there is neither log nor snapshot, or the log lacks its beginning and has no snapshot, or a file
            cannot be read.
    """
    try:
        return _read(directory)
    except OSError as error:
        raise StorageError(path=str(error.filename or directory), reason=error.strerror or str(error)) from error


def replica_directories(copy: MetadataCopy) -> dict[tuple[TopicId, int], dict[BrokerId, str]]:
    """Returns the log directory of each replica at the end of a log, by topic id and number of the partition.

    Replicas whose directory is not known yet, or was lost, are left out; so are all replicas before Kafka 3.7.
    """
    found: dict[tuple[TopicId, int], dict[BrokerId, str]] = {}
    replicas: dict[tuple[TopicId, int], tuple[BrokerId, ...]] = {}
    for dated in copy.records:
        record = dated.record
        if not isinstance(record, records.PartitionRecord | records.PartitionChangeRecord):
            continue
        partition = (record.topic_id, record.partition)
        if isinstance(record.replicas, tuple):
            replicas[partition] = record.replicas
        if dated.directories is not None:
            assigned = zip(replicas.get(partition, ()), dated.directories, strict=False)
            found[partition] = {broker: each for broker, each in assigned if not each.startswith(_RESERVED)}
    return found


def fold(copy: MetadataCopy) -> MetadataImage:
    """Returns the state at the end of a log.

    Its offsets count the folded records, as records of a snapshot have no other offsets.

    Raises:
        StorageError: a record changes what does not exist.
    """
    image = MetadataImage()
    for dated in copy.records:
        add_to(image, dated, directory=copy.directory)
    return image


def add_to(image: MetadataImage, dated: DatedRecord, *, directory: str) -> None:
    """Folds one record into an image.

    Raises:
        StorageError: the record changes an object that does not exist.
    """
    try:
        if isinstance(dated.record, OtherRecord):
            image.skip(offset=image.next_offset)
        else:
            image.replay(dated.record, offset=image.next_offset)
    except (KeyError, InvariantError) as error:
        reason = f"{type(dated.record).__name__} at offset {dated.offset}: {error}"
        raise StorageError(path=directory, reason=reason) from error


def _read(directory: Path) -> MetadataCopy:
    segments = sorted(path for path in directory.iterdir() if _SEGMENT.fullmatch(path.name))
    snapshots = sorted(path for path in directory.iterdir() if _SNAPSHOT.fullmatch(path.name))
    if not segments and not snapshots:
        raise StorageError(path=str(directory), reason="holds no segment of a metadata log, and no snapshot")
    start = int(segments[0].stem) if segments else None
    snapshot_offset: int | None = None
    decoder = MetadataRecordDecoder()
    records: list[DatedRecord] = []
    problem: str | None = None
    if start is None or start > 0:
        if not snapshots:
            raise StorageError(path=str(directory), reason=f"begins at offset {start}, and there is no snapshot")
        snapshot_offset = int(snapshots[-1].stem.partition("-")[0])
        if start is not None and snapshot_offset < start:
            reason = f"begins at offset {start}, and its newest snapshot ends at {snapshot_offset}"
            raise StorageError(path=str(directory), reason=reason)
        found, _, _, problem = _read_file(snapshots[-1], decoder)
        records += [msgspec.structs.replace(each, offset=MetadataOffset(snapshot_offset)) for each in found]
    end_offset, last_epoch = snapshot_offset or 0, LeaderEpoch(0)
    for segment in segments:
        if problem is not None:
            break
        found, segment_end, segment_epoch, problem = _read_file(segment, decoder)
        records += [each for each in found if each.offset >= (snapshot_offset or 0)]
        end_offset, last_epoch = max(end_offset, segment_end), max(last_epoch, segment_epoch)
    return MetadataCopy(
        directory=str(directory),
        records=tuple(_resolve_transactions(records)),
        end_offset=MetadataOffset(end_offset),
        last_epoch=last_epoch,
        snapshot_offset=None if snapshot_offset is None else MetadataOffset(snapshot_offset),
        problem=problem,
    )


def _read_file(path: Path, decoder: MetadataRecordDecoder) -> tuple[list[DatedRecord], int, LeaderEpoch, str | None]:
    """Returns a file's records, the offset after and the epoch of the last one, and why reading ended early."""
    content = read_bytes(path)
    scan = scan_batches(BytesFile(content), check=BatchValidation.CRC)
    problem = f"{path}: at byte {scan.valid_bytes}: {scan.reason}" if scan.reason else None
    records: list[DatedRecord] = []
    end_offset, last_epoch = 0, LeaderEpoch(0)
    for batch, position in zip(scan.batches, scan.positions, strict=True):
        end_offset, last_epoch = batch.next_offset, LeaderEpoch(batch.leader_epoch)
        if batch.is_control:
            continue
        try:
            stored = read_records(content[position : position + batch.size])
            records += [
                DatedRecord(
                    offset=MetadataOffset(each.offset),
                    timestamp_ms=each.timestamp_ms,
                    leader_epoch=batch.leader_epoch,
                    batch_offset=MetadataOffset(batch.base_offset),
                    record=decoder.decode(each.value or b""),
                    directories=directories_of(each.value or b""),
                )
                for each in stored
            ]
        except (FieldError, CorruptRecordError, ValueError) as error:
            raise StorageError(path=str(path), reason=f"batch at offset {batch.base_offset}: {error}") from error
    return records, end_offset, last_epoch, problem


def _resolve_transactions(dated_records: list[DatedRecord]) -> Iterator[DatedRecord]:
    pending: list[DatedRecord] | None = None
    for dated in dated_records:
        match dated.record:
            case records.BeginTransactionRecord():
                pending = []
            case records.EndTransactionRecord():
                yield from pending or ()
                pending = None
            case records.AbortTransactionRecord():
                pending = None
            case _ if pending is not None:
                pending.append(dated)
            case _:
                yield dated
