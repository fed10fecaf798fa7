"""Rows of one kind, whose fields can be read as columns: a check over millions of rows is a few operations of NumPy.

A column is an array of 64-bit integers. The column of an integer field has its values, and ``NONE`` for ``None``; that
of a truth value has 0 and 1. A field that is a tuple of structs has its elements in a table of their own, and its
column has their first rows there (``elements``). The column of any other field has numbers that stand for ``words``.
Row objects are made only for the rows that a check reports.
"""

import itertools
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from laststand.emulator.core.packed.layout import join_id, split_id
from laststand.emulator.verification.tables.fields import Field, Form, fields_of
from laststand.emulator.verification.tables.integers import (
    Ints,
    Piece,
    id_column,
    id_numbers,
    id_words,
    joined,
    narrowed,
    shifted,
)

Mask = NDArray[np.bool_]
Places = Mask | Ints | slice
"""A selection of rows."""

ALL: Final = slice(None)

NONE: Final = -(2**63)
"""Stands for ``None`` in the column of an integer field."""

_PENDING_MAX: Final = 1 << 12
"""Most rows that are kept as objects before they become columns: few enough for the processor's cache."""

_SHARED_MAX: Final = 64
"""A part of a table keeps unused words only up to this number of words."""

_Row = TypeVar("_Row")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class Columns(NamedTuple):
    """Rows that were read as columns.

    Attributes:
        columns: of all fields; a field that is a tuple of structs has two.
        words: the values that the numbers of a column stand for, by field; for ids the text before the digits.
        elements: of fields that are tuples of structs.
    """

    columns: dict[str, Ints]
    words: dict[str, Sequence[Any]]
    elements: dict[str, "Columns"]


class _Shape(NamedTuple):
    """The columns that all tables of a kind have: a run of many slices makes thousands of tables.

    Attributes:
        fields: of a row.
        ids: the fields that are ids.
        words: the fields whose columns have numbers of words.
        elements: the fields that are tuples of structs, each with its struct.
        names: of all columns.
    """

    fields: tuple[Field, ...]
    ids: frozenset[str]
    words: tuple[str, ...]
    elements: tuple[tuple[str, type[msgspec.Struct]], ...]
    names: tuple[str, ...]


@cache
def _shape_of(kind: type[msgspec.Struct], more: tuple[str, ...]) -> _Shape:
    fields = (*fields_of(kind), *(Field(name, Form.INT) for name in more))
    elements = tuple((field.name, field.element) for field in fields if field.element)
    return _Shape(
        fields=fields,
        ids=frozenset(field.name for field in fields if field.form is Form.ID),
        words=tuple(field.name for field in fields if field.form in (Form.WORD, Form.ID)),
        elements=elements,
        names=(*(field.name for field in fields), *(count_of(name) for name, _ in elements)),
    )


class Table(Collection[_Row]):
    """Rows of one kind, in the order in which they were added.

    Args:
        kind: a struct with the fields of a row.
        more: names of further integer fields, which the struct does not have.
    """

    def __init__(self, kind: type[msgspec.Struct], more: Iterable[str] = ()) -> None:
        self._kind = kind
        self._constants: dict[str, Any] = {}
        shape = _shape_of(kind, tuple(more))
        self._fields, self._ids = shape.fields, shape.ids
        self._words: dict[str, list[Any]] = {name: [] for name in shape.words}
        self._numbers: dict[str, dict[Hashable, int]] = {name: {} for name in shape.words}
        self._elements: dict[str, Table[Any]] = {name: Table(element) for name, element in shape.elements}
        self._pending: list[Any] = []
        self._count = 0
        self._pieces: dict[str, list[Piece]] = {name: [] for name in shape.names}
        self._chosen: tuple[Table[Any], Ints] | None = None

    @classmethod
    def built(
        cls, kind: type[msgspec.Struct], columns: Mapping[str, Ints], numbers: Mapping[str, Mapping[Hashable, int]]
    ) -> "Table[Any]":
        """Returns a table with these columns; ``numbers`` has the number of each word, by field."""
        table = Table[Any](kind)
        table._numbers = {name: dict(numbers[name]) for name in table._numbers}
        table._words = {name: list(numbers[name]) for name in table._numbers}
        table._add({field.name: columns[field.name] for field in table._fields})
        return table

    def joined(self, others: Iterable[Self]) -> Self:
        """Returns a table of these rows and those of others; all have the same kind and lack the same fields."""
        found = self.part(ALL, {})
        found._words = {name: list(words) for name, words in self._words.items()}
        found._numbers = {name: dict(numbers) for name, numbers in self._numbers.items()}
        for other in others:
            pieces = other._own_pieces()
            for name in found._words:
                pieces[name] = found._taken_words(name, pieces[name], other._words[name])
            for name, elements in found._elements.items():
                pieces[name] = [shifted(piece, len(elements)) for piece in pieces[name]]
                found._elements[name] = elements.joined([other._elements[name]])
            for name, own in pieces.items():
                found._pieces[name].extend(own)
            found._count += len(other)
        return found

    def append(self, row: msgspec.Struct) -> None:
        """Adds a row, or any object with its fields."""
        self._pending.append(row)
        if len(self._pending) >= _PENDING_MAX:
            self._append_pending()

    def extend(self, rows: Sequence[msgspec.Struct]) -> None:
        """Adds rows."""
        self._pending.extend(rows)
        if len(self._pending) >= _PENDING_MAX:
            self._append_pending()

    def append_columns(self, rows: Columns) -> None:
        """Appends rows that were read as columns."""
        self._append_pending()
        columns: dict[str, Piece] = {name: rows.columns[name] for name in self._names()}
        for name in self._words:
            [columns[name]] = self._taken_words(name, [columns[name]], rows.words[name])
        for name, elements in self._elements.items():
            columns[name] = shifted(columns[name], len(elements))
            elements.append_columns(rows.elements[name])
        self._add(columns)

    def _taken_words(self, name: str, pieces: list[Piece], words: Sequence[Hashable]) -> list[Piece]:
        """Returns pieces of another table's column of words with this table's numbers; new words get a number."""
        own, numbers = self._words[name], self._numbers[name]
        taken = self._renumbered(name, pieces, words, numbers)
        own.extend(itertools.islice(numbers, len(own), None))
        return taken

    def _add(self, columns: Mapping[str, Piece]) -> None:
        for name, column in columns.items():
            self._pieces[name].append(column)
        self._count += len(next(iter(columns.values())))

    def __len__(self) -> int:
        if self._chosen is not None:
            return len(self._chosen[1])
        return len(self._pending) + self._count

    def __iter__(self) -> Iterator[_Row]:
        return self.rows(ALL)

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)

    def __getitem__(self, name: str) -> Ints:
        """The column of a field."""
        pieces = self._pieces[name]
        if len(pieces) == 1 and not self._pending and isinstance(pieces[0], np.ndarray):
            return pieces[0]
        if self._chosen is not None and not pieces:
            table, places = self._chosen
            column = table[name][places]
        else:
            column = joined(self._own_pieces_of(name))
        pieces[:] = [column]
        return column

    def _own_pieces_of(self, name: str) -> list[Piece]:
        self._append_pending()
        pieces = self._pieces[name]
        if not pieces:
            pieces.append(np.empty(0, np.int64) if self._chosen is None else self._chosen[0][name][self._chosen[1]])
        return pieces

    def _own_pieces(self) -> dict[str, list[Piece]]:
        """Returns the pieces of all columns, in lists of their own."""
        return {name: list(self._own_pieces_of(name)) for name in self._names()}

    def words(self, name: str) -> Sequence[Any]:
        """Returns the texts that the numbers of a column stand for."""
        self._append_pending()
        return self._words[name]

    def elements(self, name: str) -> tuple[Ints, "Table[Any]"]:
        """Returns the number of elements per row in a field of structs, and the table of all elements."""
        return self[count_of(name)], self._elements[name]

    def numbers(self, name: str, numbers: dict[Hashable, int]) -> Ints:
        """Returns a field by the numbers of a dictionary, which gets its new words: so two tables can be compared."""
        return joined(self._renumbered(name, [self[name]], self.words(name), numbers))

    def _renumbered(
        self, name: str, pieces: list[Piece], words: Sequence[Hashable], numbers: dict[Hashable, int]
    ) -> list[Piece]:
        places = [numbers.setdefault(word, len(numbers)) for word in words]
        if places == list(range(len(places))):
            return pieces
        new = np.array(places, np.int64)
        columns = [joined([piece]) for piece in pieces]
        if name in self._ids:
            return [id_column(new[id_words(column)], id_numbers(column)) for column in columns]
        return [new[column] for column in columns]

    def has(self, name: str, value: Hashable) -> Mask:
        """Returns the rows in which a field has a value."""
        if name in self._ids:
            word, number = split_id(str(value))
            own = np.array([self._numbers[name].get(word, -1)])
            return cast("Mask", self[name] == id_column(own, np.array([number])))
        if name in self._words:
            return cast("Mask", self[name] == self._numbers[name].get(value, -1))
        return cast("Mask", self[name] == (NONE if value is None else value))

    def has_any(self, name: str, values: Collection[str]) -> Mask:
        """Returns the rows in which a field of words or ids has one of some values."""
        numbers = self._numbers[name]
        if name not in self._ids:
            wanted = np.array([numbers[value] for value in values if value in numbers], np.int64)
        else:
            split = [split_id(value) for value in values]
            pairs = [(numbers[word], number) for word, number in split if word in numbers]
            words, own = np.array(pairs, np.int64).reshape(-1, 2).T
            wanted = id_column(words, own)
        return np.isin(self[name], wanted)

    def rows(self, places: Places) -> Iterator[_Row]:
        """The rows at these places."""
        if not len(self):
            return
        positions = self._positions(places)
        if not len(positions):
            return
        values = [self._values(field, positions) for field in self._fields]
        names = [field.name for field in self._fields]
        for row in zip(*values, strict=True):
            yield self._row(dict(zip(names, row, strict=True)))

    def _positions(self, places: Places) -> Ints:
        if isinstance(places, slice):
            return np.arange(*places.indices(len(self)))
        return places.nonzero()[0] if places.dtype == np.bool_ else cast("Ints", places)

    def _values(self, field: Field, positions: Ints) -> list[Any]:
        column = self[field.name][positions]
        found: list[Any] = column.tolist()
        match field.form:
            case Form.INT:
                return found
            case Form.OPTIONAL:
                return [None if value == NONE else value for value in found]
            case Form.BOOL:
                return [value == 1 for value in found]
            case Form.WORD:
                words = self._words[field.name]
                return [words[number] for number in found]
            case Form.ID:
                prefixes = self._words[field.name]
                pairs = zip(id_words(column).tolist(), id_numbers(column).tolist(), strict=True)
                return [join_id(prefixes[word], number) for word, number in pairs]
            case Form.ELEMENTS:
                counts, elements = self.elements(field.name)
                ends = [begin + count for begin, count in zip(found, counts[positions].tolist(), strict=True)]
                return [tuple(elements.rows(slice(*ends))) for ends in zip(found, ends, strict=True)]

    def _row(self, values: dict[str, Any]) -> _Row:
        return cast("_Row", self._struct(values))

    def _struct(self, values: dict[str, Any]) -> Any:
        return self._kind(**self._constants, **values)

    def only(self, places: Places) -> Self:
        """A table of the rows at these places. Its columns are made when they are first used."""
        found = self._copied()
        found._chosen = (self, self._positions(places))
        found._pieces = {name: [] for name in self._pieces}
        return found

    def _copied(self) -> Self:
        self._append_pending()
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, _pending=[])
        return found

    def part(self, places: Places, constants: Mapping[str, Any]) -> Self:
        """Returns a table of the rows at these indexes, without the fields that are the same in all of them.

        Args:
            places: of the rows.
            constants: these fields and their values.
        """
        is_all = isinstance(places, slice) and places == ALL
        found = self._copied() if is_all else self.only(places)
        pieces = found._own_pieces()
        found._chosen, found._count = None, len(found)
        found._elements = dict(self._elements)
        found._constants = {**self._constants, **constants}
        found._fields = tuple(field for field in self._fields if field.name not in constants)
        found._pieces = {name: own for name, own in pieces.items() if name not in constants}
        found._words = {name: words for name, words in self._words.items() if name not in constants}
        found._numbers = {name: self._numbers[name] for name in found._words}
        if not is_all:
            found._drop_words()
            found._drop_elements()
        return found

    def placed(self, constants: Mapping[str, Any]) -> Self:
        """Returns a table of the rows of a part, with other values for the fields that all its rows share."""
        found = self._copied()
        found._constants = {**self._constants, **constants}
        return found

    def _drop_words(self) -> None:
        """Removes words that no row has, if there are many."""
        for name, words in self._words.items():
            if len(words) > _SHARED_MAX:
                column, is_id = self[name], name in self._ids
                used, places_of = np.unique(id_words(column) if is_id else column, return_inverse=True)
                self._pieces[name] = [id_column(places_of, id_numbers(column)) if is_id else places_of]
                self._words[name] = [words[number] for number in used.tolist()]
                self._numbers[name] = {word: number for number, word in enumerate(self._words[name])}

    def _drop_elements(self) -> None:
        """Forgets elements that no row has."""
        for name, elements in self._elements.items():
            counts = self[count_of(name)]
            ends = np.cumsum(counts)
            used = np.repeat(self[name] - (ends - counts), counts) + np.arange(int(counts.sum()))
            self._elements[name], self._pieces[name] = elements.only(used), [ends - counts]

    def replaced(self, columns: Mapping[str, Ints]) -> Self:
        """Returns a table with other columns of integer fields, by name."""
        found = self.part(ALL, {})
        found._pieces.update({name: [column] for name, column in columns.items()})
        return found

    def reworded(self, name: str, others: Mapping[Any, Any]) -> Self:
        """Returns a table in which some words of a field are replaced by others."""
        known = self.words(name)
        words = [others.get(word, word) for word in known]
        if words == list(known):
            return self
        found, numbers = self.part(ALL, {}), dict[Hashable, int]()
        places = np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64)
        found._pieces[name] = [places[self[name]]]
        found._words[name], found._numbers[name] = list(numbers), numbers
        return found

    def sort(self, *names: str) -> None:
        """Sorts the rows by integer fields, by the first one first."""
        columns = [self[name] for name in names]
        if not _is_sorted(columns):
            order = np.lexsort(columns[::-1])
            self._pieces = {name: [self[name][order]] for name in self._names()}

    def _names(self) -> list[str]:
        return [*(field.name for field in self._fields), *map(count_of, self._elements)]

    def _append_pending(self) -> None:
        if self._pending:
            rows, self._pending = self._pending, []
            columns: dict[str, Ints] = {}
            for field in self._fields:
                self._add_columns(field, list(map(attrgetter(field.name), rows)), columns)
            self._add(columns)

    def _add_columns(self, field: Field, values: list[Any], columns: dict[str, Ints]) -> None:
        match field.form:
            case Form.WORD:
                columns[field.name] = self._word_column(field, values)
            case Form.ID:
                pairs = [split_id(value) for value in values]
                own = np.array([number for _, number in pairs], np.int64)
                columns[field.name] = id_column(self._word_column(field, [word for word, _ in pairs]), own)
            case Form.ELEMENTS:
                elements = self._elements[field.name]
                counts = np.fromiter(map(len, values), np.int64, len(values))
                columns[count_of(field.name)] = counts
                columns[field.name] = np.cumsum(counts) - counts + len(elements)
                elements.extend(list(itertools.chain.from_iterable(values)))
            case Form.OPTIONAL:
                columns[field.name] = self._ints(field, [NONE if value is None else value for value in values])
            case Form.INT | Form.BOOL:
                columns[field.name] = self._ints(field, values)
                if len(values) and columns[field.name].min() == NONE:
                    raise self._too_large(field)

    def _word_column(self, field: Field, values: list[Any]) -> Ints:
        words, numbers = self._words[field.name], self._numbers[field.name]
        for word in dict.fromkeys(values):
            if word not in numbers:
                numbers[word] = len(words)
                words.append(word)
        return np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))

    def _ints(self, field: Field, values: list[int]) -> Ints:
        try:
            return np.array(values, np.int64)
        except OverflowError as error:
            raise self._too_large(field) from error

    def _too_large(self, field: Field) -> ValueError:
        return ValueError(f"{field.name} of {self._kind.__name__} has more than 64 bits")

    def __getstate__(self) -> dict[str, Any]:
        pieces = {name: [narrowed(piece) for piece in own] for name, own in self._own_pieces().items()}
        return {**self.__dict__, "_pieces": pieces, "_count": len(self), "_chosen": None}


def table_of(kind: type[_Struct], rows: Columns) -> Table[_Struct]:
    """Returns a table of rows that were read as columns."""
    table: Table[_Struct] = Table(kind)
    table.append_columns(rows)
    return table


def count_of(name: str) -> str:
    """Returns the name of the column with the number of elements in a field of each row."""
    return f"{name}, count"


def _is_sorted(columns: Sequence[Ints]) -> bool:
    is_after = np.zeros(max(len(columns[0]) - 1, 0), np.bool_)
    is_equal = ~is_after
    for column in columns:
        is_after |= is_equal & (column[1:] > column[:-1])
        is_equal &= column[1:] == column[:-1]
    return bool(np.all(is_after | is_equal))
