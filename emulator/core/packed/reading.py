"""Restores the JSON lines of a packed file, one by one: for people, and for readers that need no speed."""

import struct
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

import msgspec

from laststand.emulator.core.packed.layout import (
    CELL,
    HEADER,
    KINDS,
    KINDS_END,
    LAYOUTS,
    LINE_KINDS,
    SUFFIX,
    TEXT,
    VERSION,
    WORD,
    Field,
    Form,
    Layout,
    join_id,
)

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder()
_LINE_END: Final = 10
_OWN: Final = ("version", "first")
_SEALS: Final = (b'"type":"FileSealed"', b'"f":"sealed"')


class _BrokenError(Exception):
    """Cells that do not form a line."""


class LineReader:
    """Reads a packed file in blocks of any length.

    Attributes:
        rest: bytes that were not read yet, because their line is incomplete.
    """

    def __init__(self) -> None:
        self.rest = b""
        self._position = 0
        self._header: dict[str, Any] = {}
        self._first = 0
        self._words: list[Any] = []

    def lines(self, block: bytes) -> Iterator[bytes]:
        """Yields the lines that end in a block, without line ends; damaged cells yield a text that says so."""
        content, begin = self.rest + block, 0
        while begin < len(content):
            size = _size(content, begin)
            if size is None:
                break
            try:
                line = self._line(content[begin : begin + size])
            except (_BrokenError, msgspec.MsgspecError, UnicodeDecodeError, LookupError, struct.error):
                line = b"the cells at byte %d are no line" % (self._position + begin)
            if line is not None:
                yield line
            begin += size
        self.rest, self._position = content[begin:], self._position + begin

    def _line(self, cells: bytes) -> bytes | None:
        kind = cells[0]
        if kind in _LAYOUTS:
            return self._unpacked(_LAYOUTS[kind], cells)
        text = cells[1:].rstrip(b"\n")
        match kind:
            case _ if len(text) + 1 + CELL < len(cells):
                raise _BrokenError
            case _ if kind == TEXT:
                return text
            case _ if kind == WORD:
                self._words.append(_DECODER.decode(text))
            case _ if kind == HEADER:
                self._header, self._words = _DECODER.decode(text), []
                self._first = self._header["first"]
                if self._header["version"] != VERSION:
                    raise _BrokenError
            case _:
                raise _BrokenError
        return None

    def _unpacked(self, layout: Layout, cells: bytes) -> bytes:
        values = self._values(layout, cells)
        place = {}
        if "sequence" in values:
            constants = {name: value for name, value in self._header.items() if name not in _OWN}
            place = {**constants, "sequence": values["sequence"], "time_ns": values["time_ns"]}
        config = layout.struct.__struct_config__
        names = layout.struct.__struct_fields__
        return _ENCODER.encode({**place, config.tag_field: config.tag, **{name: values[name] for name in names}})

    def _values(self, layout: Layout, cells: bytes) -> dict[str, Any]:
        _, *numbers = struct.unpack_from(layout.format, cells)
        values: dict[str, Any] = {}
        for field, number in zip(layout.fields, numbers, strict=True):
            match field.form:
                case Form.PARTITION:
                    values["topic"], values["partition"], values["topic_id"] = self._words[number]
                case Form.ID_WORD:
                    values[field.name] = join_id(self._words[number], _id_number(layout, numbers))
                case Form.ID_NUMBER:
                    pass
                case Form.COUNT:
                    values[field.name] = list(self._elements(layout, cells, number))
                case _:
                    values[field.name] = self._value(field, number)
        return values

    def _value(self, field: Field, number: int) -> Any:
        match field.form:
            case Form.WORD:
                return self._words[number]
            case Form.LINE:
                return self._first + number
            case Form.BOOL:
                return number == 1
            case Form.OPTIONAL:
                return None if number == field.least else number
            case _:
                return number

    def _elements(self, layout: Layout, cells: bytes, count: int) -> Iterator[dict[str, Any]]:
        assert layout.elements is not None
        _, element = layout.elements
        for number in range(count):
            found = self._values(element, cells[(layout.cells + number * element.cells) * CELL :])
            yield {name: found[name] for name in element.struct.__struct_fields__}


_LAYOUTS: Final = {first_byte: LAYOUTS[kind] for kind, first_byte in KINDS.items()}


def _id_number(layout: Layout, numbers: list[int]) -> int:
    return next(number for field, number in zip(layout.fields, numbers, strict=True) if field.form is Form.ID_NUMBER)


def _size(content: bytes | memoryview, begin: int) -> int | None:
    """Returns the size of the line that begins at an offset; ``None`` where the line is incomplete."""
    layout = _LAYOUTS.get(content[begin])
    if layout is not None:
        return _packed_size(layout, content, begin)
    for end in range(begin + CELL, len(content) + 1, CELL):
        if content[end - 1] == _LINE_END or (end < len(content) and 0 < content[end] < KINDS_END):
            return end - begin
    return None


def _packed_size(layout: Layout, content: bytes | memoryview, begin: int) -> int | None:
    size = layout.cells * CELL
    if begin + size > len(content):
        return None
    if layout.elements is not None:
        numbers = struct.unpack_from(layout.format, content, begin)
        [count] = [number for field, number in zip(layout.fields, numbers[1:], strict=True) if field.form is Form.COUNT]
        size += count * layout.elements[1].cells * CELL
    return size if begin + size <= len(content) else None


def is_packed(name: str | PurePath) -> bool:
    """Returns whether a file of that name is packed."""
    return PurePath(name).suffix == SUFFIX


def json_lines(content: bytes) -> bytes:
    """Returns the lines of a packed file, each with a line end; a torn last line is left out."""
    return b"".join([line + b"\n" for line in LineReader().lines(content)])


def text_lines(content: bytes) -> bytes:
    """Returns the whole lines that begin in cells and are not packed, each with its line end."""
    first_bytes, found = content[::CELL], list[bytes]()
    cell = first_bytes.find(TEXT)
    while cell >= 0:
        size = _size(content, cell * CELL)
        if size is not None:
            found.append(content[cell * CELL + 1 : cell * CELL + size].rstrip(b"\n") + b"\n")
        cell = first_bytes.find(TEXT, cell + 1)
    return b"".join(found)


def count_lines(cells: bytes | memoryview) -> int:
    """Returns the number of lines that begin in cells."""
    first_bytes = bytes(cells[::CELL])
    return sum(map(first_bytes.count, LINE_KINDS))


def whole_end(content: bytes | memoryview) -> int:
    """Returns where the last whole line, word or header ends; ``content`` begins at the begin of one."""
    begin = next((place for place in range(_last_cell(content), -1, -CELL) if 0 < content[place] < KINDS_END), 0)
    if not content or _size(content, begin) is None:
        return begin
    return len(content) // CELL * CELL


def content_end(tail: bytes) -> int | None:
    """Returns where the whole lines of a file end, without the line that seals it.

    Args:
        tail: the last cells of the file; the last of them may be torn.

    Returns:
        The place in ``tail``, or ``None`` where the last line does not begin in it.
    """
    begin = next((place for place in range(_last_cell(tail), -1, -CELL) if 0 < tail[place] < KINDS_END), None)
    if begin is None:
        return None
    size = _size(tail, begin)
    if size is None or (tail[begin] == TEXT and any(seal in tail[begin : begin + size] for seal in _SEALS)):
        return begin
    return len(tail) // CELL * CELL


def _last_cell(content: bytes | memoryview) -> int:
    return (len(content) - 1) // CELL * CELL
