"""Reads a large run in slices, each by a process of its own: ranges of bytes of its event files and histories.

A slice has the lines that begin in its range. Those of frequent events and of operations are sorted by partition, still
as text, for the process that judges the partition. All other events are rare; every partition is judged beside all of
them::

    slices -> sort_slice -> rare lines of the run -----> merge_slices -+-> judge_lines -> finish
                         -> lines of each partition -------------------+   (each partition)

The last three are in ``slice_judgement``, and ``sliced`` has Spark do it.

Only a run without any fault in its form is read this way: each line is an event of the file's one process, numbered
without gaps, each send has its outcome. Of any other run one process has to say what is wrong with it.
"""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from emulator.core.errors import EmulatorError
from emulator.core.events import BatchAppended, FollowerHighWatermarkUpdated, HighWatermarkAdvanced, ProduceAnswered
from emulator.core.history import HistorySealed
from emulator.verification.census import HISTORY_SEAL, SEAL, Envelope
from emulator.verification.line_reader import decode_block
from emulator.verification.run_directory import RunDirectory
from emulator.verification.run_plan import RunPlan
from emulator.verification.vocabulary import tag

SLICE_BYTES: Final = 16 << 20
"""Small enough for some in the memory of each process, large enough for a task not to cost more than its work."""

_FREQUENT: Final = frozenset(
    {tag(BatchAppended), tag(HighWatermarkAdvanced), tag(FollowerHighWatermarkUpdated), tag(ProduceAnswered)}
)

PartitionName = tuple[str, int]
"""Topic and number."""


class UnfitError(EmulatorError):
    """A run that has to be read by one process."""


class FileKind(Enum):
    """What a file's lines are."""

    EVENTS = "events"
    HISTORY = "history"


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """A range of bytes of a file.

    Attributes:
        number: among those of its run: files by name, and ranges in their order.
        path: of the file in the run's directory.
        begin: first byte; ``end`` is exclusive.
    """

    number: int
    kind: FileKind
    path: str
    begin: int
    end: int


class SliceCensus(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a slice.

    Attributes:
        size: bytes that were read.
        process: node and incarnation; ``None`` where there are none.
        first: number of the first line, if there is a line; ``last`` of the last one.
        last_type: of the last event but for a seal, if there is one; ``is_sealed``: whether the last line is a seal.
        seal: of a history, where the last line is one.
        runs: ids of the runs that lines name.
        torn: text after the file's last line end that is no event.
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


class SortedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a slice.

    Attributes:
        rare: of events that are no partition's alone, and of a history those that are about no partition.
        mentioned: partitions that rare events are about.
        partitions: frequent events or operations of each partition.
    """

    census: SliceCensus
    rare: bytes
    mentioned: frozenset[PartitionName]
    partitions: dict[PartitionName, bytes]


class SliceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A sorted slice without the lines of its partitions.

    Attributes:
        lines: how many each partition has; ``sizes``: of how many bytes.
    """

    census: SliceCensus
    rare: bytes
    mentioned: frozenset[PartitionName]
    lines: dict[PartitionName, int]
    sizes: dict[PartitionName, int]


class _EventLine(Envelope, frozen=True, kw_only=True):
    topic: str | None = None
    partition: int | None = None


class _OperationLine(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    f: str
    topic: str | None = None
    partition: int | None = None


_EVENT_LINE: Final = msgspec.json.Decoder(_EventLine)
_OPERATION_LINE: Final = msgspec.json.Decoder(_OperationLine)
_HISTORY_SEAL: Final = msgspec.json.Decoder(HistorySealed)


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
        UnfitError: a line is not what it should be.
        OSError: the file cannot be read.
    """
    content = _lines_from(run.path / piece.path, piece)
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
            return _sorted_events(piece, whole, size=size, torn=torn)
        case FileKind.HISTORY:
            if torn is not None:
                raise UnfitError(f"{piece.path} ends within a line")
            return _sorted_operations(piece, whole)


def _lines_from(path: Path, piece: Slice) -> bytes:
    with path.open("rb") as file:
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
        _EVENT_LINE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _sorted_events(piece: Slice, whole: bytes, *, size: int, torn: str | None) -> SortedSlice:
    try:
        lines = decode_block(_EVENT_LINE, whole)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnfitError(f"{piece.path} has a line that is no event") from error
    if not lines:
        census = SliceCensus(slice=piece, size=size, lines=0, torn=torn)
        return SortedSlice(census=census, rare=b"", mentioned=frozenset(), partitions={})
    first = lines[0]
    rare: list[bytes] = []
    mentioned: set[PartitionName] = set()
    sorted_lines: dict[PartitionName, list[bytes]] = {}
    for number, (line, text) in enumerate(zip(lines, whole.split(b"\n"), strict=False), first.sequence):
        if (line.node, line.incarnation, line.sequence) != (first.node, first.incarnation, number):
            raise UnfitError(f"{piece.path} is not one process's events in order")
        if line.topic is None or line.partition is None:
            rare.append(text)
        elif line.type in _FREQUENT:
            sorted_lines.setdefault((line.topic, line.partition), []).append(text)
        else:
            rare.append(text)
            mentioned.add((line.topic, line.partition))
    census = SliceCensus(
        slice=piece,
        size=size,
        lines=len(lines),
        process=(first.node, first.incarnation),
        first=first.sequence,
        last=lines[-1].sequence,
        first_type=first.type,
        last_type=next((line.type for line in lines[:-3:-1] if line.type != SEAL), None),
        is_sealed=lines[-1].type == SEAL,
        runs=frozenset(line.run for line in lines),
        torn=torn,
    )
    return SortedSlice(
        census=census, rare=_joined(rare), mentioned=frozenset(mentioned), partitions=_all_joined(sorted_lines)
    )


def _sorted_operations(piece: Slice, whole: bytes) -> SortedSlice:
    try:
        lines = decode_block(_OPERATION_LINE, whole)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnfitError(f"{piece.path} has a line that is no operation") from error
    first = lines[0].index if lines else 0
    rare: list[bytes] = []
    seal: HistorySealed | None = None
    sorted_lines: dict[PartitionName, list[bytes]] = {}
    for number, (line, text) in enumerate(zip(lines, whole.split(b"\n"), strict=False), first):
        if line.index != number:
            raise UnfitError(f"{piece.path} is not numbered in steps of one")
        seal = _HISTORY_SEAL.decode(text) if line.f == HISTORY_SEAL else None
        if line.topic is None or line.partition is None:
            rare.append(text)
        else:
            sorted_lines.setdefault((line.topic, line.partition), []).append(text)
    census = SliceCensus(
        slice=piece, size=len(whole), lines=len(lines), first=first, last=first + len(lines) - 1, seal=seal
    )
    return SortedSlice(census=census, rare=_joined(rare), mentioned=frozenset(), partitions=_all_joined(sorted_lines))


def _joined(lines: list[bytes]) -> bytes:
    return b"".join([line + b"\n" for line in lines])


def _all_joined(lines: Mapping[PartitionName, list[bytes]]) -> dict[PartitionName, bytes]:
    return {name: _joined(found) for name, found in lines.items()}


def summary_of(found: SortedSlice) -> SliceSummary:
    """Returns what whoever deals out the partitions has to know of a slice."""
    return SliceSummary(
        census=found.census,
        rare=found.rare,
        mentioned=found.mentioned,
        lines={name: text.count(b"\n") for name, text in found.partitions.items()},
        sizes={name: len(text) for name, text in found.partitions.items()},
    )
