"""Reads the batch headers that a replica's log really holds: the oracle's own reader of Kafka's files.

A log is ``<topic>-<partition>/<20 digits>.log``, a sequence of record batches (big endian)::

     0 base offset i64 | 8 length i32 (of what follows) | 12 leader epoch i32 | 16 magic i8 = 2 | 17 CRC-32C u32
    21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64
    43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32 | 57 record count i32 | 61 records

The CRC covers everything from byte 21 on. Reading ends at the first batch that is cut off, or whose length, magic or
CRC is wrong, and later segments are dropped: that is what recovery would keep of the log of a node that was left down.
A node that stopped in order left ``.kafka_cleanshutdown``: its logs must be whole, so there a bad batch is a finding.
Nothing here is shared with ``emulator.storage``: two readers, one format.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from crc32c import crc32c

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_AFTER_LENGTH: Final = 12
_CRC_START: Final = 21
_CONTROL_BIT: Final = 0x20
_CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
_METADATA_TOPIC: Final = "__cluster_metadata"
"""The controller's own log, which no client writes to."""
_TOPIC_ID_FILE: Final = "partition.metadata"
_LOG_START_FILE: Final = "log-start-offset-checkpoint"


class FinalBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One batch in a final log. Offsets inclusive; ``producer_id`` is ``None`` without idempotence."""

    node: int
    topic: str
    partition: int
    topic_id: str | None
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    record_count: int
    producer_id: int | None
    producer_epoch: int
    base_sequence: int
    is_control: bool


class FinalLog(msgspec.Struct, frozen=True, kw_only=True):
    """One final log: its bounds (end exclusive), and why reading ended early, if it did."""

    node: int
    topic: str
    partition: int
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    is_clean: bool
    problem: str | None


def log_files(directory: Path) -> Iterator[Path]:
    """Yields the files of a node's directory that ``read_node_logs`` reads, as far as they exist."""
    data = directory / "data"
    if (data / _LOG_START_FILE).exists():
        yield data / _LOG_START_FILE
    for _, _, log in _logs(data):
        if (log / _TOPIC_ID_FILE).exists():
            yield log / _TOPIC_ID_FILE
        yield from _segments(log)


def read_node_logs(
    *,
    node: int,
    directory: Path,
    read: Callable[[Path], bytes] = Path.read_bytes,
    only: tuple[str, int] | None = None,
) -> Iterator[FinalBatch | FinalLog]:
    """Yields, log by log, the batches and then the log itself.

    Args:
        node: the node, copied.
        directory: the node's directory, which holds its log directory ``data``.
        read: returns what is in a file, or raises ``OSError``; called for each file once.
        only: topic and number of the partition whose log is read, if not all are.
    """
    data = directory / "data"
    is_clean = (data / _CLEAN_SHUTDOWN_FILE).exists()
    starts = _log_starts(_text_lines(data / _LOG_START_FILE, read))
    for topic, partition, log in _logs(data):
        if only not in (None, (topic, partition)):
            continue
        yield from _read_log(
            node=node,
            topic=topic,
            partition=partition,
            directory=log,
            checkpointed_start=starts.get((topic, partition), 0),
            is_clean=is_clean,
            read=read,
        )


def logged_partitions(directory: Path) -> Iterator[tuple[str, int]]:
    """Yields topic and number of each partition that a node's directory has a log of."""
    return ((topic, partition) for topic, partition, _ in _logs(directory / "data"))


def _logs(data: Path) -> Iterator[tuple[str, int, Path]]:
    for path in sorted(data.glob("*-*")):
        topic, _, number = path.name.rpartition("-")
        if topic not in ("", _METADATA_TOPIC) and number.isdigit() and path.is_dir():
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
    read: Callable[[Path], bytes],
) -> Iterator[FinalBatch | FinalLog]:
    topic_id = _topic_id(_text_lines(directory / _TOPIC_ID_FILE, read))
    segments = _segments(directory)
    first_base = int(segments[0].stem) if segments else 0
    end_offset = first_base
    problem: str | None = None
    for segment in segments:
        content = memoryview(read(segment))
        if problem is not None:
            continue
        position = 0
        while position < len(content):
            problem = _batch_problem(content, position)
            if problem is not None:
                problem = f"{problem} at byte {position} of {segment.name}"
                break
            header = _HEADER.unpack_from(content, position)
            base_offset, length, leader_epoch, _, crc, attributes, delta = header[:7]
            producer_id, producer_epoch, base_sequence, record_count = header[9:13]
            yield FinalBatch(
                node=node,
                topic=topic,
                partition=partition,
                topic_id=topic_id,
                base_offset=base_offset,
                last_offset=base_offset + delta,
                leader_epoch=leader_epoch,
                crc=crc,
                record_count=record_count,
                producer_id=None if producer_id < 0 else producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                is_control=bool(attributes & _CONTROL_BIT),
            )
            end_offset = base_offset + delta + 1
            position += _AFTER_LENGTH + length
    yield FinalLog(
        node=node,
        topic=topic,
        partition=partition,
        topic_id=topic_id,
        log_start_offset=max(checkpointed_start, first_base),
        log_end_offset=max(end_offset, checkpointed_start),
        is_clean=is_clean,
        problem=problem,
    )


def _batch_problem(content: memoryview, position: int) -> str | None:
    left = len(content) - position
    if left < _HEADER.size:
        return "torn batch"
    header = _HEADER.unpack_from(content, position)
    length, magic, crc = header[1], header[3], header[4]
    if magic != 2 or length < _HEADER.size - _AFTER_LENGTH:
        return "no batch"
    if _AFTER_LENGTH + length > left:
        return "torn batch"
    if crc32c(content[position + _CRC_START : position + _AFTER_LENGTH + length]) != crc:
        return "wrong CRC"
    return None


def _topic_id(lines: list[str]) -> str | None:
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "topic_id":
            return value.strip()
    return None


def _log_starts(lines: list[str]) -> dict[tuple[str, int], int]:
    starts = {}
    for line in lines[2:]:
        words = line.split(" ")
        if len(words) == 3 and words[1].isdigit() and words[2].isdigit():
            starts[words[0], int(words[1])] = int(words[2])
    return starts


def _text_lines(path: Path, read: Callable[[Path], bytes]) -> list[str]:
    try:
        return read(path).decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
