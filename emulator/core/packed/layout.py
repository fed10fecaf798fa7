"""The place of each field in a packed line. ``docs/packed-files.md`` has the table, which a test holds to this module.

A field takes the width that its type or name says here. Fields fill the cells of their line from the widest to the
narrowest, each in the first cell that has room, and never the first byte of a cell.
"""

import types
import typing
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.history import PollOperation, SendOperation
from laststand.emulator.core.types import BrokerId, CauseId, LeaderEpoch, NodeId, ProducerEpoch

VERSION: Final = 1
SUFFIX: Final = ".packed"
CELL: Final = 32
SEGMENT_BYTES: Final = 4 << 20

TEXT: Final = 1
HEADER: Final = 2
WORD: Final = 3

KINDS: Final[dict[type[msgspec.Struct], int]] = {
    events.BatchAppended: 4,
    events.HighWatermarkAdvanced: 5,
    events.FollowerHighWatermarkUpdated: 6,
    events.ProduceAnswered: 7,
    SendOperation: 8,
    PollOperation: 9,
}
"""Kinds of lines that are packed, and the byte that each begins with: of these a run has as many as batches."""

LINE_KINDS: Final = bytes((TEXT, *KINDS.values()))
"""First bytes of cells with which a line begins."""

KINDS_END: Final = max(KINDS.values()) + 1
"""The first byte with which no kind begins."""

NO_NUMBER: Final = -1
"""Stands for the number of an id that ends with no digits."""

NUMBER_END: Final = 1 << 40
"""Digits that say more belong to the word of an id."""

_ROOM: Final = CELL - 1
_WIDTHS: Final = {"q": 8, "i": 4, "I": 4, "H": 2, "h": 2, "b": 1, "B": 1}
_CODES_OF_TYPES: Final[dict[object, str]] = {
    NodeId: "i",
    BrokerId: "i",
    LeaderEpoch: "i",
    ProducerEpoch: "h",
    bool: "B",
}
_CODES_OF_NAMES: Final = {
    "crc": "I",
    "record_count": "i",
    "base_sequence": "i",
    "effective_min_isr": "h",
    "acks": "b",
    "batches": "H",
}
_NUMBERS: Final = ("sequence", "index")
_PARTITION: Final = ("topic", "partition", "topic_id")


class Form(Enum):
    """The encoding of a field's value in a cell."""

    NUMBER = "an integer"
    OPTIONAL = "an integer; the least one for null"
    BOOL = "0 or 1"
    LINE = "position of the line, less that of the segment's first"
    WORD = "number of a word"
    PARTITION = "number of a word: topic, partition and topic id"
    ID_WORD = "number of the word before the last digits"
    ID_NUMBER = "the last digits, or -1"
    COUNT = "how many elements follow, in cells of their own"


class Field(NamedTuple):
    """One integer of a packed line.

    Attributes:
        name: the attribute that the integer encodes.
        code: width and sign, as in Python's ``struct``.
        offset: from the begin of the line.
    """

    name: str
    form: Form
    code: str
    offset: int = 0

    @property
    def least(self) -> int:
        """Stands for null in an optional integer."""
        return -(1 << (8 * _WIDTHS[self.code] - 1))


class Layout(NamedTuple):
    """The places of the fields of one kind of struct.

    Attributes:
        fields: by offset.
        cells: number of cells of a line, without its elements.
        elements: name of the attribute that is a tuple of structs, and the layout of these.
    """

    struct: type[msgspec.Struct]
    fields: tuple[Field, ...]
    cells: int
    elements: "tuple[str, Layout] | None"

    @property
    def format(self) -> str:
        """The layout's format for Python's ``struct``; its first value is the line's first byte."""
        parts, end = ["<B"], 1
        for field in self.fields:
            parts.append(f"{field.offset - end}x{field.code}")
            end = field.offset + _WIDTHS[field.code]
        return "".join([*parts, f"{self.cells * CELL - end}x"])

    @property
    def count_place(self) -> int | None:
        """The field that holds the number of elements."""
        return next((place for place, field in enumerate(self.fields) if field.form is Form.COUNT), None)


def layout_of(struct: type[msgspec.Struct]) -> Layout:
    """Returns the layout of lines of a kind, or of their elements."""
    hints = typing.get_type_hints(struct)
    place = ("sequence", "time_ns") if issubclass(struct, events.Event) else ()
    names = [*place, *struct.__struct_fields__]
    if "topic_id" in names:
        names = [name for name in names if name not in _PARTITION[1:]]
    found = [field for name in names for field in _fields_of(name, hints.get(name, int))]
    room: list[int] = []
    placed: list[Field] = []
    for field in sorted(found, key=lambda each: -_WIDTHS[each.code]):
        width = _WIDTHS[field.code]
        cell = next((number for number, left in enumerate(room) if left >= width), len(room))
        if cell == len(room):
            room.append(_ROOM)
        placed.append(field._replace(offset=(cell + 1) * CELL - room[cell]))
        room[cell] -= width
    elements = [(name, layout_of(kind)) for name in names if (kind := element_of(hints.get(name))) is not None]
    return Layout(
        struct=struct,
        fields=tuple(sorted(placed, key=lambda each: each.offset)),
        cells=len(room),
        elements=elements[0] if elements else None,
    )


def _fields_of(name: str, hint: Any) -> list[Field]:
    if name in _NUMBERS:
        return [Field(name, Form.LINE, "I")]
    if name == _PARTITION[0]:
        return [Field(name, Form.PARTITION, "H")]
    if hint is CauseId:
        return [Field(name, Form.ID_WORD, "H"), Field(name, Form.ID_NUMBER, "q")]
    if element_of(hint) is not None:
        return [Field(name, Form.COUNT, _CODES_OF_NAMES.get(name, "B"))]
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    members = typing.get_args(hint) if is_union else (hint,)
    [kind, *_] = [member for member in members if member is not type(None)]
    if kind is bool:
        return [Field(name, Form.BOOL, _CODES_OF_TYPES[bool])]
    if not _is_integer(kind):
        return [Field(name, Form.WORD, "H")]
    code = _CODES_OF_NAMES.get(name) or _CODES_OF_TYPES.get(kind, "q")
    return [Field(name, Form.OPTIONAL if len(members) > 1 else Form.NUMBER, code)]


def element_of(hint: Any) -> type[msgspec.Struct] | None:
    """Returns the struct of a field that is a tuple of structs; ``None`` for any other field."""
    arguments = typing.get_args(hint)
    is_tuple = typing.get_origin(hint) is tuple and isinstance(arguments[0], type)
    return arguments[0] if is_tuple and issubclass(arguments[0], msgspec.Struct) else None


def _is_integer(kind: object) -> bool:
    while isinstance(kind, typing.NewType):
        kind = kind.__supertype__
    return kind is int


LAYOUTS: Final = {kind: layout_of(kind) for kind in KINDS}
"""Layouts of packed lines, by kind."""


def split_id(text: str) -> tuple[str, int]:
    """Returns an id as the text before its last digits, and their number; ``NO_NUMBER`` if it does not end with digits.

    Digits with a leading zero, or too many digits, are text, so that the id can be put together again.
    """
    word = text.rstrip("0123456789")
    digits = text[len(word) :]
    if not digits or not digits.isascii() or (digits[0] == "0" and digits != "0") or len(digits) > 12:
        return text, NO_NUMBER
    return word, int(digits)


def join_id(word: str, number: int) -> str:
    """Joins the parts of an id that ``split_id`` returned."""
    return word if number == NO_NUMBER else f"{word}{number}"
