"""Finds unknown table and column names in a query before Spark starts.

This is no parser of Spark's SQL: it refuses a name only if its place shows that it is a table or a column, and if it
resembles an existing one. All other names are left to Spark.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from laststand.emulator.analysis.catalogue import TABLE_NAMES, table_columns
from laststand.emulator.core.errors import EmulatorError, suggestion

_WORD_OR_SIGN: Final = re.compile(
    r"""--[^\n]*|/\*.*?\*/|\s+           # passed over
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<number>\d[\w.]*)
    |(?P<name>`[^`]*`|[A-Za-z_]\w*)
    |(?P<sign>->|.)""",
    re.VERBOSE | re.DOTALL,
)
_QUERIES: Final = ("select", "with")
_BEFORE_TABLES: Final = ("from", "join")
_BEFORE_VALUE_WORDS: Final = "select distinct where and or not on by having when then else case between in like"
_BEFORE_VALUES: Final = frozenset((*_BEFORE_VALUE_WORDS.split(), *"(,=<>+-*/%!"))
_KEYWORD_LIST: Final = (
    "all and anti any array as asc between both by case cast cross cube current current_date current_timestamp "
    "current_user date day desc distinct else end except exists extract false filter first following for from full "
    "group grouping having hour if ilike in inner intersect interval into is join last lateral leading left like limit "
    "map minus minute month natural not null nulls offset on or order outer over overlay partition percent pivot "
    "position preceding qualify range recursive right rlike rollup row rows second select semi sets similar some "
    "struct substring tablesample then time timestamp to trailing trim true unbounded union unknown unpivot user using "
    "values view week when where window with within year"
)
_KEYWORDS: Final = frozenset(_KEYWORD_LIST.split())
_COMMON_TABLE: Final = re.compile(r"\w+\s*(\([^()]*\))?\s*\bas\s*\(")
_TEXT: Final = ""


class UnknownNameError(EmulatorError):
    """A query names a table or a column that does not exist, and resembles one that does."""

    def __init__(self, *, kind: str, name: str, among: Sequence[str]) -> None:
        super().__init__(f"no {kind} {name!r}{suggestion(name.lower(), among)}")
        self.name = name


class _Token(NamedTuple):
    name: str
    """The token's name or keyword, in lower case; nothing for a sign, a number or a text."""

    sign: str
    is_in_call: bool
    """The innermost parentheses around the token are those of a function: ``extract(year FROM ...)``."""


_NOTHING: Final = _Token("", "", is_in_call=False)


def check_names(query: str) -> None:
    """Looks for misspelled tables and columns.

    Raises:
        UnknownNameError: the query has a misspelled name.
    """
    tokens = list(_tokens(query))
    if not tokens or tokens[0].name not in _QUERIES:
        return
    defined = _defined(query, tokens)
    tables = _tables(tokens)
    for table in tables.values():
        if table not in TABLE_NAMES and table not in defined:
            _refuse("table", table, (*TABLE_NAMES, *defined))
    known = {table for table in tables.values() if table in TABLE_NAMES and table not in defined}
    if not known:
        return
    columns = {column.name: column.spark_type for table in sorted(known) for column in table_columns(table)}
    fields = {field for spark_type in columns.values() for field in re.findall(r"(\w+):", spark_type)}
    allowed = {name.lower() for name in (*columns, *fields)} | defined | set(tables) | set(tables.values())
    for name in _used(tokens, tables):
        if name not in allowed:
            _refuse("column", name, tuple(columns))


def _refuse(kind: str, name: str, among: Sequence[str]) -> None:
    if suggestion(name, among):
        raise UnknownNameError(kind=kind, name=name, among=among)


def _tokens(query: str) -> Iterator[_Token]:
    calls: list[bool] = []
    before = ""
    for match in _WORD_OR_SIGN.finditer(query):
        if match.lastgroup is None:
            continue
        name = match["name"].strip("`").lower() if match.lastgroup == "name" else ""
        sign = match["sign"] or (_TEXT if match.lastgroup == "name" else "'")
        yield _Token(name, sign, bool(calls) and calls[-1])
        if sign == "(":
            calls.append(bool(before) and before not in _KEYWORDS)
        elif sign == ")" and calls:
            calls.pop()
        before = name


def _defined(query: str, tokens: Sequence[_Token]) -> frozenset[str]:
    """Returns names that a query itself defines: of columns, tables, parameters and windows."""
    names = {name for match in _COMMON_TABLE.finditer(query.lower()) for name in re.findall(r"\w+", match[0])}
    is_list = is_lateral = False
    for number, token in enumerate(tokens):
        is_lateral = token.name == "lateral" or (is_lateral and token.name not in ("select", "from"))
        before = tokens[number - 1] if number else _NOTHING
        after = tokens[number + 1] if number + 1 < len(tokens) else _NOTHING
        ends_value = before.sign in (")", "'", "]") or before.name == "end" or before.name not in ("", *_KEYWORDS)
        is_list = is_list and token.sign != ")"
        if token.name and (before.name == "as" or ends_value or after.sign == "->" or is_list):
            names.add(token.name)
        if token.name and before.name == "as":
            is_list = is_lateral and after.sign == ","
        elif token.name and token.name in _KEYWORDS:
            is_list = False
    return frozenset(names - _KEYWORDS)


def _tables(tokens: Sequence[_Token]) -> dict[str, str]:
    """Returns tables by the names that a query uses for them: table names and aliases."""
    found: dict[str, str] = {}
    for number, token in enumerate(tokens):
        is_table_next = token.name in _BEFORE_TABLES and not token.is_in_call
        if token.name == "from" and number and tokens[number - 1].name == "distinct":
            is_table_next = number > 1 and tokens[number - 2].name not in ("is", "not")
        if not is_table_next:
            continue
        place = number + 1
        while place < len(tokens) and tokens[place].name and tokens[place].name not in _KEYWORDS:
            table, place = tokens[place].name, place + 1
            if place < len(tokens) and tokens[place].sign in (".", "("):
                break  # of a catalogue, or a function
            found[table] = table
            if place < len(tokens) and tokens[place].name == "as":
                place += 1
            if place < len(tokens) and tokens[place].name and tokens[place].name not in _KEYWORDS:
                found[tokens[place].name] = table
                place += 1
            if place >= len(tokens) or tokens[place].sign != ",":
                break
            place += 1
    return found


def _used(tokens: Sequence[_Token], tables: Mapping[str, str]) -> Iterator[str]:
    """Yields names at the places of values."""
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else token
        after = tokens[number + 1] if number + 1 < len(tokens) else _NOTHING
        if not token.name or token.name in _KEYWORDS or after.sign in ("(", "->"):
            continue
        if before.sign == ".":
            qualifier = tokens[number - 2].name if number > 1 else ""
            if tables.get(qualifier) in TABLE_NAMES and (number < 3 or tokens[number - 3].sign != "."):
                yield token.name
        elif (before.name or before.sign) in _BEFORE_VALUES and after.sign != ".":
            yield token.name
