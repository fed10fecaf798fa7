"""A table of columns is a list of rows, and rows are matched as tuples of their fields are."""

from enum import Enum

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laststand.emulator.verification.tables.columns import NONE, Table
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import are_among, groups_of, keys_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Element(msgspec.Struct, frozen=True):
    broker_id: int
    end: int | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    other: int | None
    colour: Colour
    members: tuple[int, ...]
    elements: tuple[Element, ...]
    is_control: bool
    topic: str = "orders"


INT64 = st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1)
FEW = st.integers(min_value=-2, max_value=2)
ROWS = st.lists(
    st.builds(
        Row,
        number=INT64 | FEW,
        other=st.none() | FEW,
        colour=st.sampled_from(Colour),
        members=st.tuples(FEW, FEW),
        elements=st.lists(st.builds(Element, FEW, st.none() | FEW), max_size=3).map(tuple),
        is_control=st.booleans(),
    )
)
PAIRS = st.lists(st.tuples(INT64 | FEW, INT64 | FEW))


def table_of(rows: list[Row]) -> Table[Row]:
    table: Table[Row] = Table(Row)
    table.extend(rows)
    return table


@given(ROWS)
def test_words_are_put_in_the_place_of_others(rows: list[Row]) -> None:
    table = table_of(rows)
    others = {Colour.RED: Colour.BLUE}
    expected = [msgspec.structs.replace(row, colour=Colour.BLUE) for row in rows]
    reworded = table.reworded("colour", others)
    assert list(reworded) == expected
    assert list(reworded.reworded("colour", others)) == expected
    assert list(table) == rows


@given(ROWS)
def test_a_table_has_the_rows_that_it_was_given(rows: list[Row]) -> None:
    table = table_of(rows)
    assert list(table) == rows
    assert len(table) == len(rows)
    assert all(row in table for row in rows)


@given(st.lists(ROWS, min_size=1))
def test_tables_are_put_together(several: list[list[Row]]) -> None:
    first, *rest = map(table_of, several)
    assert list(first.joined(rest)) == [row for rows in several for row in rows]


@given(ROWS)
def test_a_part_has_its_rows_and_what_they_have_in_common(rows: list[Row]) -> None:
    table = table_of(rows)
    red = table.part(table.has("colour", Colour.RED), {"topic": "orders", "colour": Colour.RED})
    assert list(red) == [row for row in rows if row.colour is Colour.RED]
    assert list(red.joined([red])) == [*red, *red]


def test_a_part_keeps_only_the_words_that_it_needs() -> None:
    rows = [
        Row(number=number, other=None, colour=Colour.RED, members=(number,), elements=(), is_control=False)
        for number in range(100)
    ]
    part = table_of(rows).part(np.array([7, 3, 7]), {})
    assert sorted(part.words("members")) == [(3,), (7,)]
    assert list(part) == [rows[7], rows[3], rows[7]]


@given(ROWS)
def test_rows_are_chosen_and_ordered(rows: list[Row]) -> None:
    table = table_of(rows)
    assert list(table.rows(table.has("colour", Colour.RED))) == [row for row in rows if row.colour is Colour.RED]
    assert list(table.only(table.has("other", None))) == [row for row in rows if row.other is None]
    table.sort("number")
    assert list(table) == sorted(rows, key=lambda row: row.number)


@given(ROWS)
def test_numbers_of_words_are_shared(rows: list[Row]) -> None:
    assert table_of(rows).numbers("colour", {Colour.BLUE: 7}).tolist() == [
        7 if row.colour is Colour.BLUE else 1 for row in rows
    ]


@pytest.mark.parametrize("number", [2**63, NONE])
def test_an_integer_that_no_column_can_have_is_refused(number: int) -> None:
    table = table_of([Row(number=number, other=None, colour=Colour.RED, members=(), elements=(), is_control=False)])
    with pytest.raises(ValueError, match="number of Row"):
        len(table["number"])


def columns(pairs: list[tuple[int, int]]) -> list[Ints]:
    return [np.array([pair[place] for pair in pairs], np.int64) for place in range(2)]


@given(PAIRS, PAIRS)
def test_rows_have_the_same_key_just_if_they_agree(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    keys = np.concatenate(keys_of(columns(first), columns(second))).tolist()
    rows = first + second
    assert len(set(zip(keys, rows, strict=True))) == len(set(rows)) == len(set(keys))


@given(PAIRS, PAIRS)
def test_rows_are_among_others_as_in_a_set(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    assert are_among(columns(first), columns(second)).tolist() == [pair in set(second) for pair in first]


@given(PAIRS)
def test_groups_are_those_of_a_dictionary(pairs: list[tuple[int, int]]) -> None:
    expected: dict[tuple[int, int], list[int]] = {}
    for place, pair in enumerate(pairs):
        expected.setdefault(pair, []).append(place)
    assert sorted(places.tolist() for places in groups_of(*columns(pairs))) == sorted(expected.values())
