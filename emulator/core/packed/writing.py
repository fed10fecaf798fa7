"""Packs lines. A file has one packer, which knows where each line will stand."""

import struct
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.history import HistorySealed
from laststand.emulator.core.packed.layout import (
    CELL,
    HEADER,
    KINDS,
    LAYOUTS,
    SEGMENT_BYTES,
    TEXT,
    VERSION,
    WORD,
    Form,
    Layout,
    split_id,
)

_ENCODER: Final = msgspec.json.Encoder()
_LAST: Final = (events.FileSealed, HistorySealed)
"""Nothing follows these."""
_WORDS_MAX: Final = 1 << 16
_NOT_AN_ATTRIBUTE: Final = "__class__"
"""In place of what the writer of an event knows: its position and its time."""

NumberOf = Callable[[Any], int]


class LinePacker:
    """Makes the bytes of one file, line by line.

    Args:
        constants: the values that are the same in all lines, by name.
        segment_bytes: after which the next segment begins.
    """

    def __init__(self, constants: Mapping[str, object], *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._segment_bytes = segment_bytes
        self._constants = constants
        self._words: dict[Any, int] = {}
        self._first = 0
        self._segment_end = 0
        self._position = 0
        self._parts: list[bytes] = []
        self._begin_segment(0)

    def add(self, line: msgspec.Struct, *, number: int, time_ns: int, text: Callable[[], bytes]) -> None:
        """Adds a line.

        Args:
            line: an event, or an operation.
            number: position of the line in the file.
            time_ns: when it is written.
            text: returns its JSON, if it cannot be packed.
        """
        packing = _PACKINGS.get(type(line))
        packed = None if packing is None else packing.packed(line, number - self._first, time_ns, self._number_of)
        self._add(packed or _filled(TEXT, text()))
        # At once, not with the next line: a seal covers all content before its own begin.
        if self._position >= self._segment_end and not isinstance(line, _LAST):
            self._begin_segment(number + 1)

    def pop(self) -> bytes:
        """Returns the lines added since the last call."""
        content = b"".join(self._parts)
        self._parts.clear()
        return content

    def _begin_segment(self, number: int) -> None:
        self._words.clear()
        self._first = number
        self._segment_end = self._position + self._segment_bytes
        self._add(_filled(HEADER, _ENCODER.encode({"version": VERSION, "first": number, **self._constants})))

    def _number_of(self, word: Any) -> int:
        number = self._words.get(word)
        if number is None:
            number = len(self._words)
            if number == _WORDS_MAX:
                raise OverflowError("no number is left for a word")
            self._words[word] = number
            self._add(_filled(WORD, _ENCODER.encode(word)))
        return number

    def _add(self, content: bytes) -> None:
        self._parts.append(content)
        self._position += len(content)


def _filled(kind: int, text: bytes) -> bytes:
    content = b"%c%s\n" % (kind, text)
    return content.ljust(-(-len(content) // CELL) * CELL, b"\n")


class _Packing:
    """The packing of one kind of line. Brokers pack every batch, so all decisions are made once, here."""

    def __init__(self, layout: Layout, first_byte: int) -> None:
        self._first_byte = first_byte
        self._pack = struct.Struct(layout.format).pack
        known = frozenset(layout.struct.__struct_fields__)
        self._get = attrgetter(*(f.name if f.name in known else _NOT_AN_ATTRIBUTE for f in layout.fields))
        forms: dict[Form, list[int]] = {form: [] for form in Form}
        for place, field in enumerate(layout.fields):
            forms[field.form].append(place)
        self._line = next(iter(forms[Form.LINE]), None)
        times = [place for place, field in enumerate(layout.fields) if field.name == "time_ns"]
        self._time = times[0] if times and "time_ns" not in known else None
        self._words = tuple(forms[Form.WORD])
        self._partition = next(iter(forms[Form.PARTITION]), None)
        self._ids = tuple(zip(forms[Form.ID_WORD], forms[Form.ID_NUMBER], strict=True))
        self._optional = tuple((place, layout.fields[place].least) for place in forms[Form.OPTIONAL])
        self._count = next(iter(forms[Form.COUNT]), None)
        self._element = None if layout.elements is None else _Packing(layout.elements[1], 0)

    def packed(self, line: Any, number: int, time_ns: int, number_of: NumberOf) -> bytes | None:
        """Returns the packed line; ``None`` where a value does not fit its field."""
        try:
            return self._packed(line, number, time_ns, number_of)
        except (struct.error, OverflowError):
            return None

    def _packed(self, line: Any, number: int, time_ns: int, number_of: NumberOf) -> bytes:
        values = list(self._get(line))
        if self._time is not None:
            values[self._time] = time_ns
        if self._line is not None:
            values[self._line] = number
        if self._partition is not None:
            values[self._partition] = number_of((line.topic, line.partition, line.topic_id))
        for place in self._words:
            values[place] = number_of(values[place])
        for word_place, number_place in self._ids:
            word, values[number_place] = split_id(values[word_place])
            values[word_place] = number_of(word)
        for place, least in self._optional:
            if values[place] is None:
                values[place] = least
            elif values[place] == least:
                raise OverflowError("a value that stands for null")
        if self._count is None or self._element is None:
            return self._pack(self._first_byte, *values)
        elements, values[self._count] = values[self._count], len(values[self._count])
        element = self._element
        head = self._pack(self._first_byte, *values)
        return b"".join([head, *[element._packed(each, number, time_ns, number_of) for each in elements]])


_PACKINGS: Final = {kind: _Packing(LAYOUTS[kind], first_byte) for kind, first_byte in KINDS.items()}
