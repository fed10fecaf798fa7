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
    """Returns the column of ids: the numbers of their words, and their digits."""
    return (words << _ID_BITS) | (numbers + 1)


def id_words(column: Ints) -> Ints:
    """Returns the numbers of the words in a column of ids."""
    return column >> _ID_BITS


def id_numbers(column: Ints) -> Ints:
    """Returns the digits in a column of ids, -1 where there are none."""
    return (column & ((1 << _ID_BITS) - 1)) - 1


class Narrowed(NamedTuple):
    """A column in as few bytes as there are widths: its least value, and how much the others are above it.

    Most fields of most parts of a run have few values, or near ones.
    """

    least: int
    above: NDArray[Any]

    def __len__(self) -> int:
        return len(self.above)


Piece = Ints | Narrowed
"""Some rows of a column."""


def narrowed(column: Piece) -> Narrowed:
    """Returns a column in few bytes."""
    if isinstance(column, Narrowed):
        return column
    if not len(column):
        return Narrowed(0, column)
    least, most = int(column.min()), int(column.max())
    width = next((width for width in _WIDTHS if most - least <= np.iinfo(width).max), None)
    return Narrowed(0, column) if width is None else Narrowed(least, (column - least).astype(width))


def shifted(column: Piece, by: int) -> Piece:
    """Returns a column whose values are higher by a number."""
    return Narrowed(column.least + by, column.above) if isinstance(column, Narrowed) else column + by


def joined(pieces: Sequence[Piece]) -> Ints:
    """Returns the column that consists of these pieces."""
    if len(pieces) == 1 and not isinstance(pieces[0], Narrowed):
        return pieces[0]
    found = np.empty(sum(map(len, pieces)), np.int64)
    begin = 0
    for piece in pieces:
        own = found[begin : begin + len(piece)]
        if isinstance(piece, Narrowed):
            np.add(piece.above, np.int64(piece.least), out=own)
        else:
            own[:] = piece
        begin += len(piece)
    return found
