"""Reads the log of one replica from its folder: headers of all batches, the content of few.

The log ends where Kafka's recovery would end it: at the first batch that is cut off or damaged. Damage in a header
shows at once. A batch's content is compared with its CRC from the recovery point on, and at least in the last MiB;
everywhere only if that is asked for.
"""

import re
from concurrent.futures import Executor
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from laststand.emulator.autopsy.comparison import BATCH_COLUMNS, Batches, Log, epochs_of
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import Offset, TopicId
from laststand.emulator.storage.batch_scan import ScanEnd
from laststand.emulator.storage.checkpoints import LEADER_EPOCH_CHECKPOINT, parse_epochs
from laststand.emulator.storage.header_columns import (
    Headers,
    SegmentHeaders,
    batch_sizes,
    first_wrong_crc,
    read_headers,
)
from laststand.emulator.storage.meta_properties import PARTITION_METADATA, parse_pairs
from laststand.emulator.storage.segment import LOG_SUFFIX
from laststand.emulator.user_files import read_text

_CONTROL: Final = 0x20
_SEGMENT: Final = re.compile(rf"[0-9]{{20}}{re.escape(LOG_SUFFIX)}")
_OFFSET_MAX: Final = 2**63 - 1
_TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_TAIL_BYTES: Final = 1 << 20


class CrcScope(Enum):
    """The batches whose content is compared with their CRC."""

    TAIL = "tail"
    ALL = "all"


class DamageKind(Enum):
    """The kind of damage where a log ends early."""

    TORN = "torn"
    """The last batch is cut off: a crash in the middle of a write leaves this."""

    HEADER = "header"
    """Bytes that are no batch."""

    CRC = "crc"
    """A whole batch whose content is not what was written."""

    ORDER = "order"
    """A whole batch whose offsets go back."""


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """The damage where a log ends early.

    Attributes:
        kind: what is wrong there.
        file: path of the segment.
        position: byte at which the bad batch begins.
        reason: the same in words.
        bytes_after: bytes from there to the end of the log's files, which a recovery would drop.
    """

    kind: DamageKind
    file: str
    position: int
    reason: str
    bytes_after: int


class ReplicaReading(msgspec.Struct, frozen=True, kw_only=True):
    """A replica's log as it was read.

    Attributes:
        log: its batches and epochs, up to the damage if there is any.
        topic_id: from ``partition.metadata``; ``None`` if that is missing.
        segments: number of segments.
        file_bytes: of all segments.
        crc_checked_bytes: size of the batches whose content was compared with their CRC.
        damage: the damage at which the log ends early; ``None`` if there is none.
    """

    log: Log
    topic_id: TopicId | None
    segments: int
    file_bytes: int
    crc_checked_bytes: int
    damage: Damage | None


def read_replica(
    folder: Path, *, checkpointed_start: Offset, recovery_point: Offset | None, scope: CrcScope, readers: Executor
) -> ReplicaReading:
    """Returns the content of a replica's folder.

    Args:
        folder: the replica's folder, such as ``orders-0``.
        checkpointed_start: the log start offset in the directory's checkpoint; 0 if the checkpoint has none.
        recovery_point: from the directory's checkpoint; ``None`` if that has none: then only the last segment is a
            tail.
        scope: which batches are compared with their CRC.
        readers: threads in which segments are read.

    Raises:
        StorageError: a file cannot be read, or is of a format before Kafka 0.11.
    """
    try:
        return _read(folder, checkpointed_start, recovery_point, scope, readers)
    except OSError as error:
        raise StorageError(path=str(error.filename or folder), reason=error.strerror or str(error)) from error


def _read(
    folder: Path, checkpointed_start: Offset, recovery_point: Offset | None, scope: CrcScope, readers: Executor
) -> ReplicaReading:
    paths = sorted(path for path in folder.iterdir() if _SEGMENT.fullmatch(path.name))
    if not paths:
        raise StorageError(path=str(folder), reason="holds no segment")
    if int(paths[-1].stem) > _OFFSET_MAX:
        raise StorageError(path=str(paths[-1]), reason="its name is no offset")
    file_bytes = sum(path.stat().st_size for path in paths)
    tail_start = int(paths[-1].stem) if recovery_point is None else recovery_point
    end = int(paths[0].stem)
    headers: list[Headers] = []
    read_bytes = checked_bytes = 0
    damage: Damage | None = None
    for path, segment in zip(paths, readers.map(read_headers, map(str, paths)), strict=True):
        if segment.legacy_magic is not None:
            reason = f"record format v{segment.legacy_magic} at byte {segment.valid_bytes} is not supported, only v2"
            raise StorageError(path=str(path), reason=reason)
        first = 0 if scope is CrcScope.ALL else _first_of_tail(segment, tail_start, is_last=path == paths[-1])
        kept, kind, reason = _intact(str(path), segment, end, first)
        headers.append(segment.headers[:kept])
        sizes = batch_sizes(segment.headers)
        valid_bytes = int(sizes[:kept].sum())
        checked_bytes += int(sizes[first:kept].sum())
        if kept:
            end = _end_of(segment.headers[kept - 1])
        if kind is not None:
            after = file_bytes - read_bytes - valid_bytes
            damage = Damage(kind=kind, file=str(path), position=valid_bytes, reason=reason, bytes_after=after)
            break
        read_bytes += segment.file_bytes
        end = max(end, int(path.stem))
    start = max(checkpointed_start, int(paths[0].stem))
    batches = _columns(np.concatenate(headers))
    return ReplicaReading(
        log=Log(
            log_start_offset=Offset(start),
            log_end_offset=Offset(max(end, start)),
            epochs=epochs_of(batches, _checkpointed_epochs(folder), end=Offset(end)),
            batches=batches,
        ),
        topic_id=topic_id_of(folder),
        segments=len(paths),
        file_bytes=file_bytes,
        crc_checked_bytes=checked_bytes,
        damage=damage,
    )


def _first_of_tail(segment: SegmentHeaders, tail_start: int, *, is_last: bool) -> int:
    ends = segment.headers["base_offset"].astype(np.int64) + segment.headers["last_offset_delta"]
    by_offset = int(np.searchsorted(ends, tail_start))
    if not is_last:
        return by_offset
    return min(by_offset, int(np.searchsorted(segment.positions(), segment.valid_bytes - _TAIL_BYTES)))


def _intact(path: str, segment: SegmentHeaders, end: int, first: int) -> tuple[int, DamageKind | None, str]:
    """Returns the number of good batches of a segment, and the damage of the next one, if any."""
    bases = segment.headers["base_offset"].astype(np.int64)
    ends = bases + segment.headers["last_offset_delta"] + 1
    falls = np.flatnonzero(bases < np.concatenate([[end], ends])[: len(bases)])
    kept, kind, reason = len(bases), None, segment.reason
    if reason:
        kind = DamageKind.HEADER if segment.end is ScanEnd.CORRUPT else DamageKind.TORN
    if len(falls):
        kept, kind, reason = int(falls[0]), DamageKind.ORDER, f"offset {bases[falls[0]]} follows a later one"
    wrong = first_wrong_crc(path, segment, first=first)
    if wrong is not None and wrong < kept:
        kept, kind, reason = wrong, DamageKind.CRC, f"the batch at offset {bases[wrong]} does not have its CRC"
    return kept, kind, reason


def _end_of(header: np.void) -> int:
    return int(header["base_offset"]) + int(header["last_offset_delta"]) + 1


def _columns(headers: Headers) -> Batches:
    columns = np.empty(len(headers), BATCH_COLUMNS)
    for name in ("base_offset", "leader_epoch", "crc", "record_count", "base_timestamp", "max_timestamp"):
        columns[name] = headers[name]
    columns["last_offset"] = columns["base_offset"] + headers["last_offset_delta"]
    columns["size"] = batch_sizes(headers)
    columns["producer_id"] = np.where(headers["producer_id"] < 0, -1, headers["producer_id"])
    columns["is_control"] = headers["attributes"] & _CONTROL != 0
    return columns


def _checkpointed_epochs(folder: Path) -> tuple[EpochEntry, ...]:
    """Returns the epoch checkpoint; empty if it is missing or damaged, as the batches have the same epochs."""
    path = folder / LEADER_EPOCH_CHECKPOINT
    try:
        return parse_epochs(read_text(path), path=str(path))
    except (FileNotFoundError, UnicodeDecodeError, StorageError):
        return ()


def topic_id_of(folder: Path) -> TopicId | None:
    """Returns the topic id of a log; ``None`` if ``partition.metadata`` is missing or names none.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        pairs = parse_pairs(read_text(folder / PARTITION_METADATA), ":")
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    written = pairs.get("topic_id", "")
    return TopicId(written) if _TOPIC_ID.fullmatch(written) else None
