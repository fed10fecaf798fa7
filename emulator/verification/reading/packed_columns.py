"""Reads a segment of a packed file (``laststand.emulator.core.packed``) as columns, with a reader of the oracle's own.

Only unpacked lines are read one by one. Any error in the format is a ``ValueError``; the caller then reads line by
line, to report the wrong line.
"""

import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from laststand.emulator.core.packed.layout import (
    CELL,
    HEADER,
    KINDS,
    KINDS_END,
    LAYOUTS,
    LINE_KINDS,
    NO_NUMBER,
    NUMBER_END,
    SEGMENT_BYTES,
    TEXT,
    VERSION,
    WORD,
    Form,
    Layout,
)
from laststand.emulator.verification.tables.columns import NONE, Columns, count_of
from laststand.emulator.verification.tables.integers import Ints, id_column

_Cells = NDArray[np.uint8]
_Content = bytes | memoryview

_PARTITION: Final = tuple[Any, Any, Any]
_LINE_STARTS: Final = np.isin(np.arange(256), np.frombuffer(LINE_KINDS, np.uint8))
_LAYOUTS: Final = {first_byte: LAYOUTS[kind] for kind, first_byte in KINDS.items()}


class Segment(NamedTuple):
    """The content of a segment.

    Attributes:
        constants: the values that are the same in all its lines, by name.
        numbers: position of each line in the file; -1 for a line that is not packed.
        kinds: of each line, its first byte.
        texts: the lines that are not packed.
        rows: columns of the packed lines, by kind.
    """

    constants: Mapping[str, Any]
    numbers: Ints
    kinds: _Cells
    texts: list[bytes]
    rows: dict[type[msgspec.Struct], Columns]


def segments(file: BinaryIO) -> Iterator[bytes]:
    """Yields the segments of a packed file from its current position; a stretch without a header comes in parts."""
    rest = b""
    while block := file.read(SEGMENT_BYTES):
        rest += block
        first_bytes = rest[::CELL]
        begin = 0
        while (cell := first_bytes.find(HEADER, begin // CELL + 1)) > 0 and (cell + 1) * CELL <= len(rest):
            yield rest[begin : cell * CELL]
            begin = cell * CELL
        if len(rest) - begin > 4 * SEGMENT_BYTES:
            end = len(rest) // CELL * CELL
            yield rest[begin:end]
            begin = end
        rest = rest[begin:]
    if rest:
        yield rest


def read_segment(content: _Content) -> Segment:
    """Returns the content of a segment, all of whose lines are complete.

    Raises:
        ValueError: it is no segment.
        msgspec.MsgspecError: a word is not of its field's type.
    """
    if len(content) % CELL:
        raise ValueError("cells are not whole")
    cells = np.frombuffer(content, np.uint8).reshape(-1, CELL)
    first_bytes = cells[:, 0]
    starts = np.flatnonzero((first_bytes > 0) & (first_bytes < KINDS_END))
    if not len(starts) or starts[0] != 0:
        raise ValueError("it does not begin with a header")
    kinds = first_bytes[starts]
    lengths = np.diff(np.append(starts, len(cells)))
    header, words, texts = _texts(content, starts, lengths, kinds)
    is_line = _LINE_STARTS[kinds]
    numbers = np.full(len(starts), -1, np.int64)
    rows: dict[type[msgspec.Struct], Columns] = {}
    for first_byte, layout in _LAYOUTS.items():
        places = np.flatnonzero(kinds == first_byte)
        if len(places):
            found = _rows(layout, cells, starts[places], lengths[places], words)
            number = next(field.name for field in layout.fields if field.form is Form.LINE)
            found.columns[number] = numbers[places] = found.columns[number] + header["first"]
            rows[layout.struct] = found
    constants = {name: value for name, value in header.items() if name not in ("version", "first")}
    return Segment(constants, numbers[is_line], kinds[is_line], texts, rows)


def _texts(content: _Content, starts: Ints, lengths: Ints, kinds: _Cells) -> tuple[Any, list[Any], list[bytes]]:
    header: Any = None
    words: list[Any] = []
    texts: list[bytes] = []
    for place in np.flatnonzero(kinds <= WORD).tolist():
        begin, end = int(starts[place]) * CELL, int(starts[place] + lengths[place]) * CELL
        text = bytes(content[begin + 1 : end]).rstrip(b"\n")
        if not 0 < end - begin - 1 - len(text) <= CELL:
            raise ValueError("a text does not fill its cells")
        match kinds[place]:
            case _ if kinds[place] == TEXT:
                texts.append(text)
            case _ if kinds[place] == WORD:
                words.append(msgspec.json.decode(text))
            case _:
                if header is not None:
                    raise ValueError("several headers")
                header = msgspec.json.decode(text)
    if not isinstance(header, dict) or header.get("version") != VERSION:
        raise ValueError("the header is of another version")
    first = header.get("first")
    if not isinstance(first, int) or not 0 <= first < 1 << 62:
        raise ValueError("the header does not say which line is the first")
    return header, words, texts


def _rows(layout: Layout, cells: _Cells, starts: Ints, lengths: Ints, words: Sequence[Any]) -> Columns:
    data = _gathered(layout, cells, starts)
    count = layout.count_place
    counts = np.zeros(len(starts), np.int64) if count is None else data[str(count)].astype(np.int64)
    element_cells = 0 if layout.elements is None else layout.elements[1].cells
    if not np.array_equal(lengths, layout.cells + counts * element_cells):
        raise ValueError("a line has too few cells or too many")
    found = _columns(layout, data, words)
    if layout.elements is not None:
        name, element = layout.elements
        begins = np.cumsum(counts) - counts
        within = np.arange(int(counts.sum())) - np.repeat(begins, counts)
        places = np.repeat(starts + layout.cells, counts) + within * element.cells
        found.columns[name], found.columns[count_of(name)] = begins, counts
        found.elements[name] = _columns(element, _gathered(element, cells, places), words)
    return found


def _gathered(layout: Layout, cells: _Cells, starts: Ints) -> NDArray[np.void]:
    places = len(cells) - layout.cells + 1
    if len(starts) and starts.max() >= places:
        raise ValueError("a line has too few cells")
    # A view with a line at every possible position: selecting from it copies all wanted lines in one step.
    form = _dtype(layout)
    lines = np.ndarray((max(places, 0),), np.dtype((np.void, form.itemsize)), cells, strides=(CELL,))
    return lines[starts].view(form)


@cache
def _dtype(layout: Layout) -> "np.dtype[np.void]":
    return np.dtype(
        {
            "names": [str(place) for place in range(len(layout.fields))],
            "formats": [f"<{np.dtype(field.code).str[1:]}" for field in layout.fields],
            "offsets": [field.offset for field in layout.fields],
            "itemsize": layout.cells * CELL,
        }
    )


@cache
def _hints(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return typing.get_type_hints(struct)


def _columns(layout: Layout, data: NDArray[np.void], words: Sequence[Any]) -> Columns:
    found = Columns({}, {}, {})
    hints = _hints(layout.struct)
    for place, field in enumerate(layout.fields):
        column = data[str(place)].astype(np.int64)
        match field.form:
            case Form.WORD:
                _add_words(found, field.name, column, words, hints[field.name])
            case Form.PARTITION:
                _add_partitions(found, column, words, hints)
            case Form.ID_WORD:
                _add_words(found, field.name, column, words, str)
                found.columns[field.name] = id_column(found.columns[field.name], _digits(layout, data))
            case Form.OPTIONAL:
                found.columns[field.name] = np.where(column == field.least, NONE, column)
            case Form.BOOL | Form.NUMBER | Form.LINE:
                if len(column) and column.min() == NONE:
                    raise ValueError(f"{field.name} has more than 64 bits")
                found.columns[field.name] = column
            case Form.COUNT | Form.ID_NUMBER:
                pass
    return found


def _digits(layout: Layout, data: NDArray[np.void]) -> Ints:
    [place] = [place for place, field in enumerate(layout.fields) if field.form is Form.ID_NUMBER]
    column = data[str(place)].astype(np.int64)
    if len(column) and not NO_NUMBER <= column.min() <= column.max() < NUMBER_END:
        raise ValueError("an id has too many digits")
    return column


def _add_words(found: Columns, name: str, column: Ints, words: Sequence[Any], hint: Any) -> None:
    used, found.columns[name] = _used(column, words)
    found.words[name] = [msgspec.convert(words[number], hint) for number in used]


def _add_partitions(found: Columns, column: Ints, words: Sequence[Any], hints: Mapping[str, Any]) -> None:
    used, numbers = _used(column, words)
    kinds = (str, int, hints["topic_id"])
    names = [tuple(map(msgspec.convert, msgspec.convert(words[number], _PARTITION), kinds)) for number in used]
    found.columns["topic"] = found.columns["topic_id"] = numbers
    found.columns["partition"] = np.array([partition for _, partition, _ in names], np.int64)[numbers]
    found.words["topic"] = [topic for topic, _, _ in names]
    found.words["topic_id"] = [topic_id for _, _, topic_id in names]


def _used(column: Ints, words: Sequence[Any]) -> tuple[list[int], Ints]:
    """Returns the numbers of the words that a column uses, and the column with places among these numbers instead."""
    if len(column) and column.max() >= len(words):
        raise ValueError("a word is missing")
    is_used = np.bincount(column, minlength=len(words)) > 0
    return np.flatnonzero(is_used).tolist(), (np.cumsum(is_used) - 1)[column]
