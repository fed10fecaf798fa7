"""Decodes many lines of JSON at once, and rejects lines that no writer produces."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from laststand.emulator.core import events as e
from laststand.emulator.core.history import HistoryLine
from laststand.emulator.verification.tables.event_lines import FREQUENT_LINES, LINES, Line

_Line = TypeVar("_Line")

EVENTS: Final[msgspec.json.Decoder[e.AnyEvent]] = msgspec.json.Decoder(e.AnyEvent)
HISTORY_LINES: Final[msgspec.json.Decoder[HistoryLine]] = msgspec.json.Decoder(HistoryLine)

_LINE_END, _VALUE_BEGIN, _VALUE_END = b"\n{}"
_NUMBER_END: Final = 1 << 63
_LARGEST: Final = b"%d" % (_NUMBER_END - 1)
_DIGIT_BEGIN, _DIGIT_END = b"0:"


class DecodedEvents(NamedTuple):
    """A block of lines of events.

    Attributes:
        rare: lines of no frequent kind; ``contents`` has their JSON, ``events`` their events.
    """

    lines: list[Line]
    rare: list[Line]
    contents: list[bytes]
    events: list[e.AnyEvent]


def decode_events(block: bytes) -> DecodedEvents:
    """Decodes a block of lines of events.

    Raises:
        msgspec.DecodeError: a line is invalid, or a value is not one line.
        UnicodeDecodeError: a line is no text.
    """
    lines = decode_block(LINES, block)
    places = [place for place, line in enumerate(lines) if type(line) not in FREQUENT_LINES]
    texts = block.split(b"\n") if places else []
    contents = [texts[place] for place in places]
    return DecodedEvents(
        lines, [lines[place] for place in places], contents, decode_block(EVENTS, b"\n".join(contents))
    )


def decode_block(decoder: "msgspec.json.Decoder[_Line]", block: bytes) -> list[_Line]:
    """Decodes a block of lines at once, which costs half of line by line.

    Raises:
        msgspec.DecodeError: a line is invalid, or a value is not one line.
        UnicodeDecodeError: a line is no text.
    """
    if not block:
        return []
    decoded = decoder.decode_lines(block)
    # The decoder skips empty lines, and takes several values on a line or one on several.
    text = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(text[:-1] == _LINE_END)
    between_values = (text[ends - 1] == _VALUE_END) & (text[ends + 1] == _VALUE_BEGIN)
    if len(decoded) != len(ends) + 1 or not np.all(between_values):
        raise msgspec.DecodeError("lines and values do not pair up")
    if _has_digits_of_more_than_64_bits(block, text):
        check_numbers(decoded)
    return decoded


def _has_digits_of_more_than_64_bits(block: bytes, text: NDArray[np.uint8]) -> bool:
    in_row = (text >= _DIGIT_BEGIN) & (text < _DIGIT_END)
    for distance in (1, 2, 4, 8, 3):  # 2, 4, 8, 16 and 19 digits, as many as the largest number has
        in_row = in_row[:-distance] & in_row[distance:]
    if np.any(in_row[:-1] & in_row[1:]):
        return True
    return any(block[place : place + len(_LARGEST)] > _LARGEST for place in np.flatnonzero(in_row))


def check_numbers(values: object) -> None:
    """Checks that all numbers have at most 64 bits, including the sign: tables could not hold others.

    Raises:
        msgspec.ValidationError: a number has more.
    """
    if not all(-_NUMBER_END <= number < _NUMBER_END for number in _numbers(msgspec.to_builtins(values))):
        raise msgspec.ValidationError("an integer has more than 64 bits")


def _numbers(value: object) -> Iterator[int]:
    match value:
        case int():
            yield value
        case Mapping():
            for each in (*value.keys(), *value.values()):
                yield from _numbers(each)
        case list() | tuple():
            for each in value:
                yield from _numbers(each)
