"""Reads the batch headers that a replica's log really holds: the oracle's own reader of Kafka's files.

A log is ``<topic>-<partition>/<20 digits>.log``, a sequence of record batches (big endian)::

     0 base offset i64 | 8 length i32 (of what follows) | 12 leader epoch i32 | 16 magic i8 = 2 | 17 CRC-32C u32
    21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64
    43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32 | 57 record count i32 | 61 records

The CRC covers everything from byte 21 on. Reading ends at the first batch that is incomplete, or whose length, magic or
CRC is wrong, and later segments are dropped: that is what recovery would keep of the log of a node that was left down.
A node that stopped in order left ``.kafka_cleanshutdown``: its logs must be complete, so there a bad batch is a
finding. Batches below the log start are dropped, too: their segments may still exist, but cannot be read. Nothing here
is shared with ``laststand.emulator.storage``: there are two readers for one format.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from crc32c import crc32c

from laststand.emulator.verification.reading.digest import ReadFile, read_file
from laststand.emulator.verification.reading.zookeeper_log import transaction_logs
from laststand.emulator.verification.tables.columns import Mask
from laststand.emulator.verification.tables.final_logs import FinalLog, Headers, ReadLog
from laststand.emulator.verification.tables.integers import Ints

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
AFTER_LENGTH: Final = 12
_LENGTH: Final = struct.Struct(">i")
_LENGTH_START: Final = 8
_LEAST_LENGTH: Final = HEADER.size - AFTER_LENGTH
_MAGIC: Final = 2
_COLUMNS: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
_NO_MARKER: Final = -1
_WITH_MARKER: Final = np.dtype(
    [*((name, _COLUMNS[name]) for name in _COLUMNS.names or ()), ("marker", "i2"), ("coordinator_epoch", "i4")]
)
CONTROL_BIT: Final = 0x20
_CONTROL_KEY: Final = struct.Struct(">hh")
_CONTROL_VALUE: Final = struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1
_CRC_START: Final = 21
_WRONG_CRC: Final = "wrong CRC"
_CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
METADATA_TOPIC: Final = "__cluster_metadata"
"""The controller's own log, which no client writes to; ``metadata_log`` reads it."""
METADATA_LOG: Final = Path("data") / f"{METADATA_TOPIC}-0" / f"{0:020}.log"
"""In the directory of a controller."""
_TOPIC_ID_FILE: Final = "partition.metadata"
_LOG_START_FILE: Final = "log-start-offset-checkpoint"
_META_FILE: Final = "meta.properties"
_OWNERS: Final = ("node.id", "broker.id")
"""The names of the owners of log directories; the latter in clusters with ZooKeeper."""


class ReadSegment(NamedTuple):
    """The batches of a segment up to the first bad one: positions and headers."""

    begins: Ints
    headers: Headers


KnownSegments = dict[str, ReadSegment]
"""Segments that were read, by digest: the segments of followers mostly equal the leader's, byte by byte."""


def log_files(directory: Path) -> Iterator[Path]:
    """Yields the files of a node's directory that are read, as far as they exist."""
    data = directory / "data"
    for name in (_LOG_START_FILE, _CLEAN_SHUTDOWN_FILE, _META_FILE):
        if (data / name).exists():
            yield data / name
    if (directory / METADATA_LOG).exists():
        yield directory / METADATA_LOG
    for _, _, log in _logs(data):
        if (log / _TOPIC_ID_FILE).exists():
            yield log / _TOPIC_ID_FILE
        yield from _segments(log)
    yield from transaction_logs(directory)


def read_node_logs(
    *,
    node: int,
    directory: Path,
    read: Callable[[Path], ReadFile] = read_file,
    only: tuple[str, int] | None = None,
    known: KnownSegments | None = None,
) -> Iterator[ReadLog]:
    """Yields each log.

    Args:
        node: the node, copied.
        directory: the node's directory, which holds its log directory ``data``.
        read: returns the content of a file, or raises ``OSError``.
        only: topic and number of the one partition to read; ``None`` for all.
        known: segments that were read before; new ones are added.
    """
    known = {} if known is None else known
    data = directory / "data"
    is_clean = (data / _CLEAN_SHUTDOWN_FILE).exists()
    if is_clean:
        read(data / _CLEAN_SHUTDOWN_FILE)  # only that it is there counts, and whether it was
    starts = _log_starts(_text_lines(data / _LOG_START_FILE, read), only)
    for topic, partition, log in _logs(data) if only is None else _log(data / f"{only[0]}-{only[1]}"):
        yield _read_log(
            node=node,
            topic=topic,
            partition=partition,
            directory=log,
            checkpointed_start=starts.get((topic, partition), 0),
            is_clean=is_clean,
            read=read,
            known=known,
        )


def directory_owner(directory: Path, read: Callable[[Path], ReadFile]) -> str | None:
    """Returns the owner of a node's log directory, by its ``meta.properties``; ``None`` if that names none."""
    for line in _text_lines(directory / "data" / _META_FILE, read):
        key, _, value = line.partition("=")
        if key.strip() in _OWNERS:
            return value.strip()
    return None


def logged_partitions(directory: Path) -> Iterator[tuple[str, int]]:
    """Yields topic and number of each partition that a node's directory has a log of."""
    return ((topic, partition) for topic, partition, _ in _logs(directory / "data"))


def _logs(data: Path) -> Iterator[tuple[str, int, Path]]:
    for path in sorted(data.glob("*-*")):
        yield from _log(path)


def _log(path: Path) -> Iterator[tuple[str, int, Path]]:
    topic, _, number = path.name.rpartition("-")
    if topic not in ("", METADATA_TOPIC) and number.isdigit() and path.is_dir() and not _is_zookeepers(path):
        yield topic, int(number), path


def _segments(log: Path) -> list[Path]:
    return sorted(log.glob("[0-9]*.log"))


def _read_log(
    *,
    node: int,
    topic: str,
    partition: int,
    directory: Path,
    checkpointed_start: int,
    is_clean: bool,
    read: Callable[[Path], ReadFile],
    known: KnownSegments,
) -> ReadLog:
    segments = _segments(directory)
    first_base = int(segments[0].stem) if segments else 0
    end_offset = first_base
    problem: str | None = None
    damaged_crc: int | None = None
    headers: list[Headers] = [np.empty(0, _WITH_MARKER)]
    for segment in segments:
        file = read(segment)
        content = memoryview(file.content)
        if problem is None:
            found, end_offset, problem = _read_segment(content, end_offset, file.digest, known)
            headers.append(found)
            damaged_crc = _damaged_crc(content, found) if problem is not None else None
            problem = None if problem is None else f"{problem} of {segment.name}"
    log_start_offset = max(checkpointed_start, first_base)
    log = FinalLog(
        node=node,
        topic=topic,
        partition=partition,
        topic_id=_topic_id(_text_lines(directory / _TOPIC_ID_FILE, read)),
        log_start_offset=log_start_offset,
        log_end_offset=max(end_offset, checkpointed_start),
        is_clean=is_clean,
        problem=problem,
        damaged_crc=damaged_crc,
    )
    return ReadLog(log, _from_the_start(np.concatenate(headers), log_start_offset))


def _from_the_start(headers: Headers, log_start_offset: int) -> Headers:
    """Returns the batches that end at or above the log start; the first of them may begin below it."""
    last_offsets = headers["base_offset"].astype(np.int64) + headers["last_offset_delta"]
    return np.compress(last_offsets >= log_start_offset, headers)


def _read_segment(
    content: memoryview, end_offset: int, digest: str, known: KnownSegments
) -> tuple[Headers, int, str | None]:
    """Returns the headers of a segment's batches, its end offset, and why reading ended early.

    Args:
        content: of the segment.
        end_offset: log end offset of the previous segment.
        digest: of the content.
        known: segments that were read before, by digest.
    """
    if digest not in known:
        known[digest] = _batches(content)
    begins, headers = known[digest]
    end = _end_of(headers)
    problem = None if end == len(content) else f"{batch_problem(content, end)} at byte {end}"
    bases = headers["base_offset"].astype(np.int64)
    ends = bases + headers["last_offset_delta"] + 1
    falls = np.flatnonzero(bases < np.concatenate([[end_offset], ends])[: len(bases)])
    if len(falls):
        first = int(falls[0])
        headers, ends = headers[:first], ends[:first]
        problem = f"offsets go back at byte {begins[first]}"
    return headers, int(ends[-1]) if len(ends) else end_offset, problem


def _batches(content: memoryview) -> ReadSegment:
    begins = np.array(_begins(content), np.int64)
    if not len(begins):
        return ReadSegment(begins, np.empty(0, _WITH_MARKER))
    places = len(content) - HEADER.size + 1
    headers = np.ndarray((places,), f"V{HEADER.size}", content, strides=(1,))[begins].view(_COLUMNS)
    ends = begins + AFTER_LENGTH + headers["length"]
    is_bad = (headers["magic"] != _MAGIC) | (headers["length"] < _LEAST_LENGTH) | (ends > len(content))
    count = _first(is_bad)
    spans = zip((begins[:count] + _CRC_START).tolist(), ends[:count].tolist(), strict=True)
    crcs = np.fromiter((crc32c(content[begin:end]) for begin, end in spans), np.int64, count)
    count = _first(crcs != headers["crc"][:count])
    return ReadSegment(begins[:count], _with_markers(content, begins[:count], headers[:count]))


def _with_markers(content: memoryview, begins: Ints, headers: Headers) -> Headers:
    """Returns headers with the type and the coordinator epoch of each control batch's control record."""
    found = np.empty(len(headers), _WITH_MARKER)
    for name in _COLUMNS.names or ():
        found[name] = headers[name]
    found["marker"] = found["coordinator_epoch"] = _NO_MARKER
    for place in np.flatnonzero(headers["attributes"] & CONTROL_BIT).tolist():
        marker = _control_record(content, int(begins[place]) + HEADER.size)
        found["marker"][place], found["coordinator_epoch"][place] = marker
    return found


def _control_record(content: memoryview, position: int) -> tuple[int, int]:
    """Returns type and coordinator epoch of the control record at a place (KIP-98): 0 for an abort, 1 for a commit."""
    position = _after_varint(content, position) + 1  # its length, and its attributes
    for _ in ("timestamp delta", "offset delta", "length of the key"):
        position = _after_varint(content, position)
    control_type = int(_CONTROL_KEY.unpack_from(content, position)[1])
    if control_type not in (_ABORT, _COMMIT):
        return control_type, _NO_MARKER
    position = _after_varint(content, position + _CONTROL_KEY.size)  # behind the length of the value
    return control_type, int(_CONTROL_VALUE.unpack_from(content, position)[1])


def _after_varint(content: memoryview, position: int) -> int:
    while content[position] & 0x80:
        position += 1
    return position + 1


def _begins(content: memoryview) -> list[int]:
    """Returns the positions of batches, by the lengths in their headers, up to the last one with a complete header."""
    begins: list[int] = []
    length_at, position, last = _LENGTH.unpack_from, 0, len(content) - HEADER.size
    while position <= last:
        begins.append(position)
        [length] = length_at(content, position + _LENGTH_START)
        if length < _LEAST_LENGTH:
            break
        position += AFTER_LENGTH + length
    return begins


def _first(mask: Mask) -> int:
    """Returns the first place where a mask is true, or its length if it is true nowhere."""
    return int(np.argmax(mask)) if np.any(mask) else len(mask)


def _end_of(headers: Headers) -> int:
    """Returns the number of bytes of a segment's batches."""
    return int((headers["length"].astype(np.int64) + AFTER_LENGTH).sum())


def batch_problem(content: memoryview, position: int) -> str | None:
    """Returns why no complete batch begins at a byte; ``None`` if one does."""
    left = len(content) - position
    if left < HEADER.size:
        return "torn batch"
    header = HEADER.unpack_from(content, position)
    length, magic, crc = header[1], header[3], header[4]
    if magic != _MAGIC or length < _LEAST_LENGTH:
        return "no batch"
    if AFTER_LENGTH + length > left:
        return "torn batch"
    return None if _computed_crc(content, position, length) == crc else _WRONG_CRC


def _damaged_crc(content: memoryview, read: Headers) -> int | None:
    """Returns the computed CRC of the batch at which reading ended, if only its CRC is wrong; else ``None``."""
    position = _end_of(read)
    if batch_problem(content, position) != _WRONG_CRC:
        return None
    [length] = _LENGTH.unpack_from(content, position + _LENGTH_START)
    return _computed_crc(content, position, length)


def _computed_crc(content: memoryview, position: int, length: int) -> int:
    return crc32c(content[position + _CRC_START : position + AFTER_LENGTH + length])


def _topic_id(lines: list[str]) -> str | None:
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "topic_id":
            return value.strip()
    return None


def _log_starts(lines: list[str], only: tuple[str, int] | None) -> dict[tuple[str, int], int]:
    starts = {}
    prefix = "" if only is None else f"{only[0]} {only[1]} "
    for line in lines[2:]:
        if not line.startswith(prefix):
            continue
        words = line.split(" ")
        if len(words) == 3 and words[1].isdigit() and words[2].isdigit():
            starts[words[0], int(words[1])] = int(words[2])
    return starts


def _text_lines(path: Path, read: Callable[[Path], ReadFile]) -> list[str]:
    try:
        return read(path).content.decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _is_zookeepers(directory: Path) -> bool:
    """Returns whether a directory is a ZooKeeper server's transaction log, which no topic ``version`` has."""
    return directory.name == "version-2" and any(directory.glob("log.*"))
