"""Events and operations of packed files, a segment at a time: frequent ones as columns, the others one by one."""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from laststand.emulator.core.history import (
    FinalReadOperation,
    HistorySealed,
    OperationType,
    PollOperation,
    SendOperation,
)
from laststand.emulator.core.packed.layout import KINDS, TEXT
from laststand.emulator.verification.reading.census import SEAL, ConsecutiveLines
from laststand.emulator.verification.reading.line_blocks import (
    HISTORY_LINES,
    DecodedEvents,
    decode_block,
    decode_events,
)
from laststand.emulator.verification.reading.packed_columns import Segment, read_segment
from laststand.emulator.verification.tables.client_history import Poll
from laststand.emulator.verification.tables.columns import NONE, Columns, count_of
from laststand.emulator.verification.tables.event_lines import Line
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.vocabulary import tag

_TAGS: Final = {first_byte: tag(kind) for kind, first_byte in KINDS.items()}


class Writer(NamedTuple):
    """The writer of a segment's events."""

    run: str
    node: int
    incarnation: int


class PackedEvents(NamedTuple):
    """The events of a segment, all of one process.

    Attributes:
        lines: their numbering and types, packed or not.
        rows: columns of the packed lines, by kind.
        texts: those that are not packed.
    """

    writer: Writer
    lines: ConsecutiveLines
    rows: dict[type[msgspec.Struct], Columns]
    texts: DecodedEvents


class PackedOperations(msgspec.Struct, frozen=True, kw_only=True):
    """The operations of a segment of a history.

    Attributes:
        first: position of the first line; ``count`` is their number.
        begun: columns of ``BegunSend``; ``ended`` of ``EndedSend``; ``sent`` of ``SentBatch``, of the same sends;
            ``received`` of ``ReceivedBatch``. ``None`` for a kind without lines.
        polls: in order.
        seal: the seal, if the last line is one.
        seals: JSON of lines that are seals.
    """

    first: int
    count: int
    begun: Columns | None
    ended: Columns | None
    sent: Columns | None
    received: Columns | None
    polls: list[Poll]
    final_reads: list[FinalReadOperation]
    seal: HistorySealed | None
    seals: list[bytes]


def read_events(content: bytes | memoryview) -> PackedEvents:
    """Reads a segment of events.

    Raises:
        ValueError: the lines are not those of one process, numbered in steps of one, or it is no segment.
        msgspec.MsgspecError: a line is invalid.
    """
    segment = read_segment(content)
    writer = msgspec.convert(tuple(segment.constants.get(name) for name in Writer._fields), Writer)
    texts = decode_events(b"\n".join(segment.texts))
    if any((line.run, line.node, line.incarnation) != writer for line in texts.lines):
        raise ValueError("a line is of another process")
    first = _first_of(segment, [line.sequence for line in texts.lines])
    for rows in segment.rows.values():
        count = len(rows.columns["sequence"])
        rows.columns["node"] = np.full(count, writer.node)
        rows.columns["incarnation"] = np.full(count, writer.incarnation)
    return PackedEvents(writer, _consecutive(segment, first, texts.lines), segment.rows, texts)


def _first_of(segment: Segment, of_texts: Sequence[int]) -> int:
    """Returns the number of the first line, if they are numbered in steps of one."""
    numbers = segment.numbers
    numbers[segment.kinds == TEXT] = of_texts
    if not len(numbers) or np.any(np.diff(numbers) != 1):
        raise ValueError("lines are not numbered in steps of one")
    return int(numbers[0])


def _consecutive(segment: Segment, first: int, texts: Sequence[Line]) -> ConsecutiveLines:
    def types_from_the_end() -> Iterator[str]:
        left = list(texts)
        for place in range(len(segment.kinds) - 1, -1, -1):
            kind = int(segment.kinds[place])
            yield tag(type(left.pop())) if kind == TEXT else _TAGS[kind]

    return ConsecutiveLines(
        first=first,
        count=len(segment.kinds),
        first_type=tag(type(texts[0])) if segment.kinds[0] == TEXT else _TAGS[int(segment.kinds[0])],
        last_type=next((name for name in types_from_the_end() if name != SEAL), None),
        is_sealed=next(types_from_the_end()) == SEAL,
    )


def read_operations(content: bytes | memoryview, *, history: str) -> PackedOperations:
    """Reads a segment of the history of that name.

    Raises:
        ValueError: it is no segment, its lines are not numbered in steps of one, or a frequent one is not packed.
        msgspec.MsgspecError: a line is invalid.
    """
    segment = read_segment(content)
    texts = decode_block(HISTORY_LINES, b"\n".join(segment.texts))
    final_reads = [line for line in texts if isinstance(line, FinalReadOperation)]
    seals = [text for line, text in zip(texts, segment.texts, strict=True) if isinstance(line, HistorySealed)]
    if len(final_reads) + len(seals) < len(texts):
        raise ValueError("a frequent operation is not packed")
    first = _first_of(segment, [line.index for line in texts])
    last = texts[-1] if texts and segment.kinds[-1] == TEXT else None
    sends, polls = segment.rows.get(SendOperation), segment.rows.get(PollOperation)
    begun, ended = (None, None) if sends is None else _begun_and_ended(sends)
    return PackedOperations(
        first=first,
        count=len(segment.kinds),
        begun=begun,
        ended=ended,
        sent=None if sends is None or ended is None else _sent(ended, sends.elements["attempts"].columns, history),
        received=None if polls is None else _received(polls),
        polls=[] if polls is None else list(_polls(polls)),
        final_reads=final_reads,
        seal=last if isinstance(last, HistorySealed) else None,
        seals=seals,
    )


def _begun_and_ended(sends: Columns) -> tuple[Columns, Columns]:
    numbers = [number for number, each in enumerate(sends.words["type"]) if each is OperationType.INVOKE]
    is_begun = np.isin(sends.columns["type"], np.array(numbers, np.int64))
    return _picked(sends, np.flatnonzero(is_begun)), _picked(sends, np.flatnonzero(~is_begun))


def _picked(rows: Columns, places: Ints) -> Columns:
    return Columns({name: column[places] for name, column in rows.columns.items()}, rows.words, {})


def _sent(own: Columns, attempts: dict[str, Ints], history: str) -> Columns:
    """Returns columns of ``SentBatch``, made from the columns of ended sends and of their attempts."""
    begins, counts = own.columns["attempts"], own.columns[count_of("attempts")]
    rows = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    crcs = attempts["crc"][np.repeat(begins, counts) + within]
    # Of several attempts with one CRC the first counts.
    _, firsts = np.unique((rows << 32) | crcs, return_index=True)
    firsts.sort()
    crc_counts = np.bincount(rows[firsts], minlength=len(counts))
    last = {name: _last(attempts[name], begins, counts) for name in ("node", "leader_epoch", "crc")}
    columns = {
        **own.columns,
        **last,
        "crcs": np.cumsum(crc_counts) - crc_counts,
        count_of("crcs"): crc_counts,
        "history": np.zeros(len(counts), np.int64),
        "invoked": np.full(len(counts), NONE),
        "completed": own.columns["index"],
        "begun_ns": np.full(len(counts), NONE),
        "ended_ns": own.columns["time_ns"],
        "attempts": counts,
    }
    return Columns(columns, {**own.words, "history": [history]}, {"crcs": Columns({"crc": crcs[firsts]}, {}, {})})


def _last(column: Ints, begins: Ints, counts: Ints) -> Ints:
    return np.where(counts > 0, np.append(column, NONE)[np.where(counts > 0, begins + counts - 1, -1)], NONE)


def _received(polls: Columns) -> Columns:
    counts, batches = polls.columns[count_of("batches")], polls.elements["batches"]
    names = ("process", "phase", "topic", "topic_id", "partition", "node")
    columns = {name: np.repeat(polls.columns[name], counts) for name in names}
    columns["served_epoch"] = np.repeat(polls.columns["leader_epoch"], counts)
    return Columns({**columns, **batches.columns}, {**polls.words, **batches.words}, {})


def _polls(polls: Columns) -> Iterator[Poll]:
    batches = polls.elements["batches"].columns
    firsts, lasts, crcs = (array("q", batches[name].tobytes()) for name in ("base_offset", "last_offset", "crc"))
    fields: dict[str, list[Any]] = {}
    for name in Poll.__struct_fields__:
        if name not in ("firsts", "lasts", "crcs"):
            values = polls.columns[name].tolist()
            words = polls.words.get(name)
            fields[name] = values if words is None else [words[number] for number in values]
    fields["seek"] = [value == 1 for value in fields["seek"]]
    ends = np.cumsum(polls.columns[count_of("batches")]).tolist()
    for begin, end, row in zip([0, *ends], ends, zip(*fields.values(), strict=True), strict=False):
        own = slice(begin, end)
        yield Poll(**dict(zip(fields, row, strict=True)), firsts=firsts[own], lasts=lasts[own], crcs=crcs[own])
