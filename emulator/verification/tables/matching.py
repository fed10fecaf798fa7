"""Finds rows that agree in several columns: fast replacements for sets and dictionaries of tuples."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, cast

import numpy as np

from laststand.emulator.verification.tables.columns import Mask
from laststand.emulator.verification.tables.integers import Ints

_ROOM: Final = 2**62
_FEW: Final = 2**16
"""Up to this number of different keys, a radix sort takes a tenth of the time."""


def keys_of(*sides: Sequence[Ints]) -> list[Ints]:
    """Returns one number per row, for each side: rows have the same number only if they agree in every column.

    Args:
        sides: the same columns of each of several tables.
    """
    lengths = [len(side[0]) for side in sides]
    keys = np.zeros(sum(lengths), np.int64)
    room = 1
    for columns in zip(*sides, strict=True):
        values = np.concatenate(columns) if len(columns) > 1 else columns[0]
        if not len(values):
            break
        low, width = _range(values)
        if width == 1:
            continue
        if room * width > _ROOM:
            values = _ranks(values)
            low, width = _range(values)
        if room * width > _ROOM:
            keys = _ranks(keys)
            room = int(keys.max()) + 1
        keys = keys * width + (values - low)
        room *= width
    ends = list(itertools.accumulate(lengths))
    return [keys[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def _range(values: Ints) -> tuple[int, int]:
    low = int(values.min())
    return low, int(values.max()) - low + 1


def _ranks(values: Ints) -> Ints:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def are_among(rows: Sequence[Ints], others: Sequence[Ints]) -> Mask:
    """Returns, for each row, whether any of the others agrees with it in every column."""
    own, other = keys_of(rows, others)
    if len(own) == len(other) and np.array_equal(own, other):
        return np.ones(len(own), np.bool_)
    if not len(other):
        return np.zeros(len(own), np.bool_)
    # Most rows are nearly in order on both sides, so that this is faster than the hashing of np.isin.
    ordered = np.sort(other)
    places = np.searchsorted(ordered, own)
    places[places == len(ordered)] = 0
    return cast("Mask", ordered[places] == own)


def groups_of(*columns: Ints) -> Iterator[Ints]:
    """Yields the places of rows that agree in every column, in their order, group by group."""
    if not len(columns[0]):
        return
    [keys] = keys_of(columns)
    if (keys == keys[0]).all():
        yield np.arange(len(keys))
        return
    order = (keys.astype(np.uint16) if int(keys.max()) < _FEW else keys).argsort(kind="stable")
    ordered = keys[order]
    begin = 0
    for end in [*((ordered[1:] != ordered[:-1]).nonzero()[0] + 1).tolist(), len(order)]:
        yield order[begin:end]
        begin = end
