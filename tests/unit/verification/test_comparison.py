"""Two accounts of a log: what only one of them has."""

import numpy as np
import pytest

from laststand.emulator.verification.tables.comparison import only_in_each


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2], [1, 2], ([], [])),
        ([1, 2], [2, 1], ([], [])),
        ([1, 2, 2], [1, 2], ([], [])),
        ([1, 2, 3], [2, 4], ([0, 2], [1])),
        ([], [1], ([], [0])),
    ],
)
def test_only_in_each(first: list[int], second: list[int], expected: tuple[list[int], list[int]]) -> None:
    found = only_in_each([np.array(first, np.int64)], [np.array(second, np.int64)])
    assert tuple(places.tolist() for places in found) == expected


def test_a_row_agrees_only_in_all_columns() -> None:
    first = [np.array([1, 1]), np.array([5, 6])]
    second = [np.array([1, 2]), np.array([5, 6])]
    assert [places.tolist() for places in only_in_each(first, second)] == [[1], [1]]
