"""Two accounts of a log: what only one of them has."""

import pytest

from emulator.verification.comparison import only_in_each


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2], [1, 2], (set(), set())),
        ([1, 2], [2, 1], (set(), set())),
        ([1, 2, 2], [1, 2], (set(), set())),
        ([1, 2, 3], [2, 4], ({1, 3}, {4})),
        ([], [1], (set(), {1})),
    ],
)
def test_only_in_each(first: list[int], second: list[int], expected: tuple[set[int], set[int]]) -> None:
    assert only_in_each(first, second) == tuple(map(frozenset, expected))
