"""Arrays of 64-bit integers: ids as integers, and columns for the way to another process."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_ID_BITS: Final = 41
"""The bits of an id's column that its last digits take."""
_WIDTHS: Final = (np.uint8, np.uint16, np.uint32)


def id_column(words: Ints, numbers: Ints) -> Ints:
    """Returns a column of ids, from the numbers of their words and their digits."""
    return (words << _ID_BITS) | (numbers + 1)


def id_words(column: Ints) -> Ints:
    """Returns the numbers of the words in a column of ids."""
    return column >> _ID_BITS


def id_numbers(column: Ints) -> Ints:
    """Returns the digits in a column of ids, -1 for an id without digits."""
    return (column & ((1 << _ID_BITS) - 1)) - 1


class Narrowed(NamedTuple):
    """A column in few bytes per value: its least value, and the difference of each value from it.

    In most parts of a run, the values of most fields are close to each other.
    """

    least: int
    above: NDArray[Any]

    def __len__(self) -> int:
        return len(self.above)


class Repeated(NamedTuple):
    """A column with the same value in each row, such as the broker, epoch or ISR of a partition for some time."""

    value: int
    length: int

    def __len__(self) -> int:
        return self.length


Piece = Ints | Narrowed | Repeated
"""Some rows of a column."""


def narrowed(column: Piece) -> Narrowed | Repeated:
    """Returns a column in few bytes."""
    if not isinstance(column, np.ndarray):
        return column
    if not len(column):
        return Repeated(0, 0)
    least, most = int(column.min()), int(column.max())
    if least == most:
        return Repeated(least, len(column))
    width = next((width for width in _WIDTHS if most - least <= np.iinfo(width).max), None)
    return Narrowed(0, column) if width is None else Narrowed(least, (column - least).astype(width))


def shifted(column: Piece, by: int) -> Piece:
    """Returns a column with a number added to each value."""
    match column:
        case Narrowed(least, above):
            return Narrowed(least + by, above)
        case Repeated(value, length):
            return Repeated(value + by, length)
        case _:
            return column + by


def joined(pieces: Sequence[Piece]) -> Ints:
    """Returns the column that consists of these pieces."""
    if len(pieces) == 1 and isinstance(pieces[0], np.ndarray):
        return pieces[0]
    found = np.empty(sum(map(len, pieces)), np.int64)
    begin = 0
    for piece in pieces:
        own = found[begin : begin + len(piece)]
        match piece:
            case Narrowed(least, above):
                np.add(above, np.int64(least), out=own)
            case Repeated(value):
                own[:] = value
            case _:
                own[:] = piece
        begin += len(piece)
    return found
