"""Reads a replica's files without touching them: also of a node that runs, or is paused, or dead.

A log that is being written may be seen in the middle of an append; its last batch is then missing. Flushed offsets come
from the node's sync ledger: a power loss would leave at least that much.
"""

from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicPartition
from laststand.emulator.storage.batch_scan import BatchValidation, ScanEnd, SegmentScan, scan_batches
from laststand.emulator.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    parse_epochs,
    parse_offsets,
)
from laststand.emulator.storage.segment import LOG_SUFFIX
from laststand.emulator.storage.sync_ledger import durable_prefixes
from laststand.emulator.user_files import read_bytes, read_text

_NO_FILE: Final = ""


class ReplicaView(msgspec.Struct, frozen=True, kw_only=True):
    """One replica's log, as its files have it.

    Attributes:
        log_start_offset: of the first record that may be read.
        log_end_offset: the offset where recovery would end the log, exclusive.
        high_watermark: the checkpointed one; ``None`` if there is none.
        last_written_leader_epoch: of the last record; ``None`` for an empty log.
        epochs: start offsets of leader epochs, from the records and the checkpoint.
        flushed_end_offset: exclusive; records from here on are lost with the power.
        unflushed_bytes: bytes of the log that are lost with the power.
    """

    log_start_offset: Offset
    log_end_offset: Offset
    high_watermark: Offset | None
    last_written_leader_epoch: LeaderEpoch | None
    epochs: tuple[EpochEntry, ...]
    flushed_end_offset: Offset
    unflushed_bytes: int


def view_replica(data_directory: Path, ledger_directory: Path, partition: TopicPartition) -> ReplicaView | None:
    """Returns a replica's files; ``None`` if the node has no log of the partition.

    Raises:
        StorageError: a file cannot be read.
    """
    directory = data_directory / str(partition)
    if not directory.is_dir():
        return None
    try:
        return _view(directory, data_directory, ledger_directory, partition)
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(path=str(directory), reason=str(error)) from error


def _view(directory: Path, data: Path, ledger: Path, partition: TopicPartition) -> ReplicaView:
    durable = durable_prefixes(str(ledger))
    starts = _offsets(data / LOG_START_OFFSET_CHECKPOINT)
    segments = sorted(directory.glob(f"*{LOG_SUFFIX}"))
    first = int(segments[0].stem) if segments else 0
    log_start = max(starts.get(partition, Offset(0)), first)
    log_end = flushed_end = log_start
    last_epoch: LeaderEpoch | None = None
    epochs = list(parse_epochs(_text(directory / LEADER_EPOCH_CHECKPOINT), path=str(directory)))
    unflushed = 0
    is_flushed = True
    for path in segments:
        content = read_bytes(path)
        scan = scan_batches(_Content(content), check=BatchValidation.CRC)
        durable_bytes = min(durable.get(path.stat().st_ino, 0), len(content))
        unflushed += max(0, scan.valid_bytes - durable_bytes)
        for batch, position in zip(scan.batches, scan.positions, strict=True):
            log_end, last_epoch = batch.next_offset, batch.leader_epoch
            is_flushed = is_flushed and position + batch.size <= durable_bytes
            if is_flushed:
                flushed_end = log_end
            if not epochs or batch.leader_epoch > epochs[-1].leader_epoch:
                epochs.append(EpochEntry(batch.leader_epoch, batch.base_offset))
        if _ends_the_log(scan, content):
            break
    return ReplicaView(
        log_start_offset=Offset(log_start),
        log_end_offset=Offset(log_end),
        high_watermark=_offsets(data / HIGH_WATERMARK_CHECKPOINT).get(partition),
        last_written_leader_epoch=last_epoch,
        epochs=tuple(entry for entry in epochs if entry.start_offset <= log_end),
        flushed_end_offset=Offset(flushed_end),
        unflushed_bytes=unflushed,
    )


def _ends_the_log(scan: SegmentScan, content: bytes) -> bool:
    return scan.end is ScanEnd.CORRUPT or scan.valid_bytes < len(content)


def _offsets(path: Path) -> dict[TopicPartition, Offset]:
    return parse_offsets(_text(path), path=str(path))


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        return _NO_FILE


class _Content:
    """Bytes that can be scanned like a file."""

    def __init__(self, content: bytes) -> None:
        self.size = len(content)
        self._content = content

    def read(self, *, position: int, length: int) -> bytes:
        return self._content[position : position + length]
