"""Reads a large run in slices, each in a separate process: ranges of bytes of its event files and histories.

A slice has the lines that begin in its range. Frequent events and operations become columns, divided into shares of
whole partitions, for the process that judges the partitions of a share. All other events are rare, and are used for
every partition::

    slices -> sort_slice -> rare lines of the run -----> merge_slices -+-> judge_rows -> finish
                         -> rows of each share ------------------------+   (each partition)

The last three are in ``slices.judgement``; ``slices.jobs`` lets Spark do it.

Only a run whose files have no formal error is read this way: each line is an event of the file's one process, numbered
without gaps, and each send has its outcome. Any other run is read completely by one process, which reports the errors.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec
import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.history import HistoryLine, HistorySealed
from laststand.emulator.core.packed.layout import CELL, HEADER, SEGMENT_BYTES
from laststand.emulator.core.packed.reading import count_lines, is_packed, json_lines, whole_end
from laststand.emulator.user_files import open_file
from laststand.emulator.verification.reading.census import ConsecutiveLines, PartCensus, consecutive, is_consecutive
from laststand.emulator.verification.reading.digest import DigestPart, digest_range
from laststand.emulator.verification.reading.line_blocks import (
    HISTORY_LINES,
    DecodedEvents,
    decode_block,
    decode_events,
)
from laststand.emulator.verification.reading.packed_lines import PackedOperations, read_events, read_operations
from laststand.emulator.verification.reading.run_directory import RunDirectory
from laststand.emulator.verification.reading.run_plan import RunPlan
from laststand.emulator.verification.slices.rows import SliceTables
from laststand.emulator.verification.tables.columns import Columns
from laststand.emulator.verification.tables.event_lines import LINES
from laststand.emulator.verification.tables.rows import PartitionName

SLICE_BYTES: Final = 16 << 20
"""Small enough for several slices in the memory of each process, large enough to be worth a task."""

_BLOCK_BYTES: Final = 1 << 18
_LONGEST_REST: Final = 4 * SEGMENT_BYTES


class UnfitError(EmulatorError):
    """The run has to be read by one process: slices cannot report its errors."""


class FileKind(Enum):
    """The kind of lines in a file."""

    EVENTS = "events"
    HISTORY = "history"


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """A range of bytes of a file.

    Attributes:
        number: its number in the run: files are ordered by name, and their ranges in order.
        path: of the file in the run's directory.
        begin: first byte; ``end`` is exclusive.
    """

    number: int
    kind: FileKind
    path: str
    begin: int
    end: int


class SliceCensus(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a slice.

    Attributes:
        size: bytes that were read.
        process: node and incarnation; ``None`` for a history.
        first: number of the first line, if there is a line; ``last`` is that of the last one.
        last_type: of the last event that is no seal, if there is one; ``is_sealed``: whether the last line is a seal.
        seal: of a history, if the last line is one.
        runs: ids of the runs that lines name.
        torn: text after the file's last line end that is no event.
        digest: the slice's part of its file's digest.
    """

    slice: Slice
    size: int
    lines: int
    process: tuple[int, int] | None = None
    first: int = 0
    last: int = -1
    first_type: str | None = None
    last_type: str | None = None
    is_sealed: bool = False
    seal: HistorySealed | None = None
    runs: frozenset[str] = frozenset()
    torn: str | None = None
    digest: DigestPart = DigestPart(0, b"")


class SortedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a slice.

    Attributes:
        rare: lines of rare events; of a history, the line of its seal.
        mentioned: partitions that rare events are about.
        lines: number of frequent events or operations of each partition; ``tables`` has them.
    """

    census: SliceCensus
    rare: bytes
    mentioned: frozenset[PartitionName]
    lines: Mapping[PartitionName, int]
    tables: SliceTables


class SliceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A sorted slice without the rows of its partitions.

    Attributes:
        lines: number of lines of each partition.
    """

    census: SliceCensus
    rare: bytes
    mentioned: frozenset[PartitionName]
    lines: Mapping[PartitionName, int]


def slices_of(plan: RunPlan, *, slice_bytes: int = SLICE_BYTES) -> list[Slice]:
    """Returns the slices of a run's event files and histories."""
    files = [
        *((FileKind.EVENTS, path) for path in plan.run.event_files()),
        *((FileKind.HISTORY, path) for path in plan.run.histories),
    ]
    ranges = [
        (kind, str(path.relative_to(plan.run.path)), begin)
        for kind, path in files
        for begin in range(0, max(plan.sizes[str(path.relative_to(plan.run.path))], 1), slice_bytes)
    ]
    return [
        Slice(number=number, kind=kind, path=path, begin=begin, end=min(begin + slice_bytes, plan.sizes[path]))
        for number, (kind, path, begin) in enumerate(ranges)
    ]


def sort_slice(run: RunDirectory, piece: Slice) -> SortedSlice:
    """Reads a slice and sorts its lines.

    Raises:
        UnfitError: a line is invalid.
        OSError: the file cannot be read.
    """
    path = run.path / piece.path
    try:
        found = _sorted_packed(path, piece) if is_packed(path) else _sorted_lines(path, piece)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnfitError(f"{piece.path} has a line that is not what it should be") from error
    except ValueError as error:
        raise UnfitError(f"{piece.path}: {error}") from error
    digest = digest_range(path, piece.begin, piece.end)
    return msgspec.structs.replace(found, census=msgspec.structs.replace(found.census, digest=digest))


def _sorted_lines(path: Path, piece: Slice) -> SortedSlice:
    content = _lines_from(path, piece)
    size = len(content)
    whole, torn = content, None
    if content and not content.endswith(b"\n"):
        end = content.rfind(b"\n") + 1
        whole, tail = content[:end], content[end:]
        if _is_event(tail) and piece.kind is FileKind.EVENTS:
            whole = content + b"\n"
        else:
            torn = tail.decode(errors="replace")
    match piece.kind:
        case FileKind.EVENTS:
            return _sorted_events(piece, map(_decoded, _blocks(whole)), size=size, torn=torn)
        case FileKind.HISTORY:
            if torn is not None:
                raise UnfitError(f"{piece.path} ends within a line")
            return _sorted_operations(piece, map(_decoded_operations, _blocks(whole)), size=size)


def _sorted_packed(path: Path, piece: Slice) -> SortedSlice:
    """Sorts the segments that begin in a slice."""
    blocks = list(_segments_from(path, piece))
    size = sum(map(len, blocks))
    ends = [whole_end(block) for block in blocks]
    torn = "".join(bytes(block[end:]).decode(errors="replace") for block, end in zip(blocks, ends, strict=True))
    whole = (block[:end] for block, end in zip(blocks, ends, strict=True) if count_lines(block[:end]))
    match piece.kind:
        case FileKind.EVENTS:
            return _sorted_events(piece, map(_unpacked_events, whole), size=size, torn=torn or None)
        case FileKind.HISTORY:
            if torn:
                raise UnfitError(f"{piece.path} ends within a line")
            name = path.name
            return _sorted_operations(piece, (_unpacked_operations(block, name) for block in whole), size=size)


def _segments_from(path: Path, piece: Slice) -> Iterator[memoryview]:
    with open_file(path) as file:
        begin, end = (-(-place // CELL) * CELL for place in (piece.begin, piece.end))
        file.seek(begin)
        own = file.read(max(end - begin, 0))
        starts = _headers(own)
        if begin == 0 and (not starts or starts[0] != 0):
            starts.insert(0, 0)
        if not starts:
            return
        content = memoryview(own + _up_to_header(file))
    for start, stop in zip(starts, [*starts[1:], len(content)], strict=True):
        yield content[start:stop]


def _up_to_header(file: BinaryIO) -> bytes:
    """Returns the bytes from the file's position to the next segment; a limited part of them if no header follows."""
    rest = b""
    while len(rest) <= _LONGEST_REST and (block := file.read(SEGMENT_BYTES)):
        rest += block
        if starts := _headers(rest):
            return rest[: starts[0]]
    return rest


def _headers(content: bytes) -> list[int]:
    """Returns the positions of headers: of the cells that begin with a header's first byte."""
    first_bytes = np.frombuffer(content, np.uint8)[: len(content) // CELL * CELL : CELL]
    return (np.flatnonzero(first_bytes == HEADER) * CELL).tolist()


def _lines_from(path: Path, piece: Slice) -> bytes:
    with open_file(path) as file:
        if piece.begin:
            file.seek(piece.begin - 1)
            file.readline()
        begin = file.tell()
        content = file.read(max(piece.end - begin, 0))
        if content and not content.endswith(b"\n"):
            content += file.readline()
        return content


def _is_event(line: bytes) -> bool:
    try:
        LINES.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


class _EventBlock(NamedTuple):
    """Events of one process that are numbered in steps of one."""

    writers: set[tuple[str, int, int]]
    lines: ConsecutiveLines
    decoded: DecodedEvents
    rows: Mapping[type[msgspec.Struct], Columns]


def _decoded(block: bytes) -> _EventBlock:
    decoded = decode_events(block)
    if not is_consecutive([line.sequence for line in decoded.lines]):
        raise ValueError("lines are not numbered in steps of one")
    writers = {(line.run, line.node, line.incarnation) for line in decoded.lines}
    return _EventBlock(writers, consecutive(decoded.lines), decoded, {})


def _unpacked_events(block: memoryview) -> _EventBlock:
    found = read_events(block)
    return _EventBlock({found.writer}, found.lines, found.texts, found.rows)


def _sorted_events(piece: Slice, blocks: Iterable[_EventBlock], *, size: int, torn: str | None) -> SortedSlice:
    found, parts = SliceTables(), PartCensus()
    rare: list[bytes] = []
    writers: set[tuple[str, int, int]] = set()
    mentioned: set[PartitionName] = set()
    for block in blocks:
        decoded = block.decoded
        found.tables.add_columns(block.rows)
        found.tables.add_lines(decoded.lines)
        if any(isinstance(event, events.MarkersSent) for event in decoded.events):
            raise UnfitError(f"{piece.path} is about transactions, which one process has to judge together")
        rare.extend(decoded.contents)
        writers.update(block.writers)
        mentioned.update(
            (line.topic, line.partition) for line in decoded.rare if line.topic and line.partition is not None
        )
        if parts.first is not None and block.lines.first != parts.first + parts.count:
            raise UnfitError(f"{piece.path} is not one process's events in order")
        parts.add_all(block.lines)
    processes = {(node, incarnation) for _, node, incarnation in writers}
    if len(processes) > 1:
        raise UnfitError(f"{piece.path} has several processes' events")
    first = parts.first or 0
    census = SliceCensus(
        slice=piece,
        size=size,
        lines=parts.count,
        process=next(iter(processes), None),
        first=first,
        last=first + parts.count - 1,
        first_type=parts.first_type,
        last_type=parts.last_type,
        is_sealed=parts.is_sealed,
        runs=frozenset(run for run, _, _ in writers),
        torn=torn,
    )
    return SortedSlice(
        census=census,
        rare=_joined(rare),
        mentioned=frozenset(mentioned),
        lines=found.count_lines(),
        tables=found,
    )


class _OperationBlock(NamedTuple):
    """Operations that are numbered in steps of one, as lines or as columns."""

    first: int
    count_of_lines: int
    seal: HistorySealed | None
    seals: list[bytes]
    found: list[HistoryLine] | PackedOperations


def _decoded_operations(block: bytes) -> _OperationBlock:
    lines = decode_block(HISTORY_LINES, block)
    if not is_consecutive([line.index for line in lines]):
        raise ValueError("lines are not numbered in steps of one")
    seals = [line for line in lines if isinstance(line, HistorySealed)]
    texts = block.split(b"\n") if seals else []
    seal = lines[-1] if isinstance(lines[-1], HistorySealed) else None
    return _OperationBlock(lines[0].index, len(lines), seal, [texts[lines.index(each)] for each in seals], lines)


def _unpacked_operations(block: memoryview, history: str) -> _OperationBlock:
    try:
        found = read_operations(block, history=history)
    except (ValueError, msgspec.MsgspecError):
        return _decoded_operations(json_lines(bytes(block)))
    return _OperationBlock(found.first, found.count, found.seal, found.seals, found)


def _sorted_operations(piece: Slice, blocks: Iterable[_OperationBlock], *, size: int) -> SortedSlice:
    tables, name, rare = SliceTables(), Path(piece.path).name, list[bytes]()
    first, count = 0, 0
    seal: HistorySealed | None = None
    for block in blocks:
        first = first if count else block.first
        if block.first != first + count:
            raise UnfitError(f"{piece.path} is not numbered in steps of one")
        count += block.count_of_lines
        seal = block.seal
        rare.extend(block.seals)
        if isinstance(block.found, PackedOperations):
            tables.add_columns(block.found)
        else:
            tables.add_operations(block.found, history=name)
    census = SliceCensus(slice=piece, size=size, lines=count, first=first, last=first + count - 1, seal=seal)
    return SortedSlice(
        census=census, rare=_joined(rare), mentioned=frozenset(), lines=tables.count_lines(), tables=tables
    )


def _blocks(whole: bytes) -> Iterator[bytes]:
    """Yields lines in blocks that fit into the processor's cache once they are decoded."""
    begin = 0
    while begin < len(whole):
        end = whole.find(b"\n", begin + _BLOCK_BYTES) + 1 or len(whole)
        yield whole[begin:end]
        begin = end


def _joined(lines: list[bytes]) -> bytes:
    return b"".join([line + b"\n" for line in lines])


def summary_of(found: SortedSlice) -> SliceSummary:
    """Returns a sorted slice without its rows, for the process that assigns partitions to tasks."""
    return SliceSummary(
        census=found.census,
        rare=found.rare,
        mentioned=found.mentioned,
        lines=found.lines,
    )
