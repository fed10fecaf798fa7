"""Compares two accounts of the same log, which are nearly always equal and in the same order."""

from collections.abc import Sequence

import numpy as np

from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import keys_of


def only_in_each(first: Sequence[Ints], second: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Returns the places of the rows that only ``first`` has and of those that only ``second`` has, in any order.

    Args:
        first: columns of one account.
        second: the same columns of the other.
    """
    if all(map(np.array_equal, first, second)):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    in_first, in_second = keys_of(first, second)
    return np.flatnonzero(~np.isin(in_first, in_second)), np.flatnonzero(~np.isin(in_second, in_first))
