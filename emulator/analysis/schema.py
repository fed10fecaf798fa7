"""The columns of a table, derived from the struct that describes its rows: name, Spark type, unit, meaning.

Units follow from the types of the fields (an ``Offset`` is an offset), meanings from the ``Attributes`` of the struct's
docstring, or from the glossary where events leave them out.
"""

import enum
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Final, NewType

import msgspec

from laststand.emulator.analysis.glossary import MEANINGS
from laststand.emulator.core.struct_docs import field_meanings

Nanoseconds = NewType("Nanoseconds", int)
"""The machine's monotonic clock, virtual in the simulator."""

Seconds = NewType("Seconds", float)
"""A span of time, or a point of time since the run's first event."""

Milliseconds = NewType("Milliseconds", float)
Records = NewType("Records", int)

_UNITS: Final[Mapping[str, str]] = {
    "Nanoseconds": "ns",
    "Seconds": "s",
    "Milliseconds": "ms",
    "Records": "records",
    "Offset": "offset",
    "MetadataOffset": "metadata offset",
    "LeaderEpoch": "leader epoch",
    "PartitionEpoch": "partition epoch",
    "BrokerEpoch": "broker epoch",
    "ProducerEpoch": "producer epoch",
    "NodeId": "node id",
    "BrokerId": "node id",
}
"""The unit of each field's type, by name."""

_SUFFIX_UNITS: Final[Mapping[str, str]] = {"_ns": "ns", "_ms": "ms", "_s": "s", "record_count": "records"}
_PRIMITIVES: Final[Mapping[object, str]] = {int: "bigint", float: "double", str: "string", bool: "boolean"}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column of a table.

    Attributes:
        name: its name.
        spark_type: as Spark SQL writes it.
        unit: unit of a number; empty if there is none.
        meaning: in words; empty if no docstring has it.
    """

    name: str
    spark_type: str
    unit: str
    meaning: str


def columns_of(struct: type[msgspec.Struct]) -> tuple[Column, ...]:
    """Returns the columns for the fields of a struct, in their order.

    Raises:
        TypeError: a field has a type that no column can hold.
    """
    hints = typing.get_type_hints(struct)
    documented = field_meanings(struct)
    return tuple(
        Column(
            name=name,
            spark_type=_spark_type(hints[name]),
            unit=_unit(name, hints[name]),
            meaning=_meaning(struct, name, documented),
        )
        for name in struct.__struct_fields__
    )


def ddl_of(columns: tuple[Column, ...]) -> str:
    """Returns the schema in the form that Spark's readers take."""
    return ", ".join(f"`{column.name}` {column.spark_type}" for column in columns)


def _spark_type(hint: object) -> str:
    hint = _bare(hint)
    if hint in _PRIMITIVES:
        return _PRIMITIVES[hint]
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case origin if origin is tuple:
            return f"array<{_spark_type(arguments[0])}>"
        case origin if origin is dict:
            return f"map<{_spark_type(arguments[0])},{_spark_type(arguments[1])}>"
        case _:
            pass
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return "bigint" if issubclass(hint, int) else "string"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = typing.get_type_hints(hint)
        return f"struct<{','.join(f'{name}:{_spark_type(hints[name])}' for name in hint.__struct_fields__)}>"
    raise TypeError(f"no column holds {hint}")


def _bare(hint: object) -> object:
    """Returns the type behind a ``NewType``, without ``None``."""
    while True:
        if isinstance(hint, NewType):
            hint = hint.__supertype__
        elif typing.get_origin(hint) in (typing.Union, types.UnionType):
            hint = next(each for each in typing.get_args(hint) if each is not type(None))
        else:
            return hint


def _unit(name: str, hint: object) -> str:
    for named in _names(hint):
        if named in _UNITS:
            return _UNITS[named]
    return next((unit for suffix, unit in _SUFFIX_UNITS.items() if name.endswith(suffix)), "")


def _names(hint: object) -> Iterator[str]:
    if isinstance(hint, NewType):
        yield hint.__name__
    elif typing.get_origin(hint) in (typing.Union, types.UnionType, tuple):
        for each in typing.get_args(hint)[:1]:
            yield from _names(each)


def _meaning(struct: type[msgspec.Struct], name: str, documented: Mapping[str, str]) -> str:
    meaning = documented.get(name) or MEANINGS.get(f"{struct.__name__}.{name}") or MEANINGS.get(name, "")
    return meaning.rstrip(".")
