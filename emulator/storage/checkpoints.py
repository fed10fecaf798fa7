"""Text checkpoint files: a version, a count, and that many lines.

::

    0                       0
    2                       3
    orders 0 1500           0 0         leader-epoch-checkpoint: epoch, start offset
    orders 1 1498           2 700

Written to a temporary file, synced, renamed, and the directory synced (Kafka's ``CheckpointFile``). An empty file reads
as no entries. Readers treat a damaged file differently: recovery point and log start count as missing, because both
have a safe default; a damaged high-watermark or epoch file is an error.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.errors import StorageError, shown
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicPartition
from laststand.emulator.storage.filesystem import FileSystem, read_file, write_atomically

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

_VERSION: Final = "0"
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")


def format_lines(lines: Iterable[str]) -> str:
    """Returns the text of a checkpoint with these entry lines."""
    entries = list(lines)
    return "\n".join([_VERSION, str(len(entries)), *entries]) + "\n"


def parse_lines(text: str, *, path: str) -> list[list[str]]:
    """Returns each entry's fields; none for an empty text, or one that ends after its version.

    Raises:
        StorageError: unknown version, or the count is no number or not the number of lines.
    """
    if not text:
        return []
    lines = text.splitlines()
    if lines[0].strip() != _VERSION:
        raise StorageError(path=path, reason=f"unknown checkpoint version {shown(lines[0])!r}")
    if len(lines) < 2:
        return []
    count = _number(lines[1].strip(), path=path)
    entries = [line.split() for line in lines[2:]]
    if len(entries) != count:
        raise StorageError(path=path, reason=f"{count} entries expected, {len(entries)} found")
    return entries


def format_offsets(offsets: Mapping[TopicPartition, Offset]) -> str:
    """Returns the text of an offset checkpoint, sorted by partition."""
    return format_lines(f"{key.topic} {key.partition} {offset}" for key, offset in sorted(offsets.items()))


def parse_offsets(text: str, *, path: str) -> dict[TopicPartition, Offset]:
    """Inverse of ``format_offsets``.

    Raises:
        StorageError: the text is no offset checkpoint.
    """
    offsets: dict[TopicPartition, Offset] = {}
    for fields in parse_lines(text, path=path):
        if len(fields) != 3:
            raise StorageError(path=path, reason=f"malformed line {shown(' '.join(fields))!r}")
        partition, offset = _number(fields[1], path=path), _number(fields[2], path=path)
        offsets[TopicPartition(fields[0], partition)] = Offset(offset)
    return offsets


def format_epochs(epochs: Iterable[EpochEntry]) -> str:
    """Returns the text of a leader epoch checkpoint."""
    return format_lines(f"{entry.leader_epoch} {entry.start_offset}" for entry in epochs)


def parse_epochs(text: str, *, path: str) -> tuple[EpochEntry, ...]:
    """Inverse of ``format_epochs``.

    Raises:
        StorageError: the text is no leader epoch checkpoint.
    """
    entries: list[EpochEntry] = []
    for fields in parse_lines(text, path=path):
        if len(fields) != 2:
            raise StorageError(path=path, reason=f"malformed line {shown(' '.join(fields))!r}")
        epoch, start = _number(fields[0], path=path), _number(fields[1], path=path)
        entries.append(EpochEntry(LeaderEpoch(epoch), Offset(start)))
    return tuple(entries)


def _number(text: str, *, path: str) -> int:
    # Kafka reads a 64-bit integer, and refuses any other text.
    if _NUMBER.fullmatch(text) is None or not -(2**63) <= int(text) < 2**63:
        raise StorageError(path=path, reason=f"{shown(text)!r} is no number")
    return int(text)


def read_text(filesystem: FileSystem, path: str) -> str:
    """Returns a file's text; empty where the file is missing.

    Raises:
        StorageError: unreadable, or not UTF-8.
    """
    if not filesystem.exists(path):
        return ""
    try:
        return read_file(filesystem, path).decode()
    except UnicodeDecodeError as error:
        raise StorageError(path=path, reason=str(error)) from error


def read_offsets(filesystem: FileSystem, path: str) -> dict[TopicPartition, Offset]:
    """Returns an offset checkpoint; empty where the file is missing.

    Raises:
        StorageError: the file is no offset checkpoint.
    """
    return parse_offsets(read_text(filesystem, path), path=path)


def read_offsets_leniently(filesystem: FileSystem, path: str) -> dict[TopicPartition, Offset]:
    """As ``read_offsets``, but a bad file has no entries: for recovery point and log start, as Kafka does."""
    try:
        return read_offsets(filesystem, path)
    except StorageError:
        return {}


def write_offsets(filesystem: FileSystem, path: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Replaces an offset checkpoint durably.

    Raises:
        StorageError: a write failed.
    """
    write_atomically(filesystem, path, format_offsets(offsets).encode())


def read_epochs(filesystem: FileSystem, path: str) -> tuple[EpochEntry, ...]:
    """Returns a leader epoch checkpoint; empty where the file is missing.

    Raises:
        StorageError: the file is no leader epoch checkpoint.
    """
    return parse_epochs(read_text(filesystem, path), path=path)


def write_epochs(filesystem: FileSystem, path: str, epochs: Iterable[EpochEntry]) -> None:
    """Replaces a leader epoch checkpoint durably.

    Raises:
        StorageError: a write failed.
    """
    write_atomically(filesystem, path, format_epochs(epochs).encode())
