"""Arrays of 64-bit integers: ids as integers, and columns for the way to another process."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_ID_BITS: Final = 41
"""Of an id's column, what its last digits take."""
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


def narrowed(column: Ints) -> tuple[int, NDArray[Any]]:
    """Returns the least value of a column, and how much the others are above it, in as few bytes as there are widths.

    Most fields of most parts of a run have few values, or near ones.
    """
    if not len(column):
        return 0, column
    least, most = int(column.min()), int(column.max())
    width = next((width for width in _WIDTHS if most - least <= np.iinfo(width).max), None)
    return (0, column) if width is None else (least, (column - least).astype(width))


def widened(least: int, above: NDArray[Any]) -> Ints:
    """Returns the column that ``narrowed`` was given."""
    return above.astype(np.int64) + least
