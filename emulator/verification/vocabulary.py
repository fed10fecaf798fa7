"""Spark schemas, derived from the structs of the event vocabulary.

A frequent event has a table of its own; rare ones share a wide row with every field of each of them. So a field that is
added to an event reaches the oracle without a second list.
"""

import re
import typing
from enum import Enum
from types import NoneType, UnionType
from typing import Final

import msgspec

from emulator.core import events


def _members(union: object) -> tuple[type[msgspec.Struct], ...]:
    return typing.get_args(union)


EVENT_TYPES: Final = _members(events.AnyEvent)


def spark_type(annotation: object) -> str:
    """Returns the Spark SQL type of a field's type; an optional field has the type of its value.

    Raises:
        TypeError: the vocabulary uses a type that has no rule here.
    """
    origin = typing.get_origin(annotation)
    if isinstance(annotation, typing.NewType):
        return spark_type(annotation.__supertype__)
    if origin in (UnionType, typing.Union):
        (value,) = (argument for argument in typing.get_args(annotation) if argument is not NoneType)
        return spark_type(value)
    if origin is tuple:
        return f"ARRAY<{spark_type(typing.get_args(annotation)[0])}>"
    if origin is dict:
        key, value = (spark_type(argument) for argument in typing.get_args(annotation))
        return f"MAP<{key},{value}>"
    if isinstance(annotation, type):
        if issubclass(annotation, msgspec.Struct):
            inner = ",".join(f"{name}:{kind}" for name, kind in struct_columns(annotation).items())
            return f"STRUCT<{inner}>"
        for python, spark in ((bool, "BOOLEAN"), (int, "BIGINT"), (str, "STRING"), (Enum, "STRING")):
            if issubclass(annotation, python):
                return spark
    raise TypeError(f"no Spark type for {annotation!r}")


def struct_columns(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Returns the fields of a struct and their Spark types, in order."""
    hints = typing.get_type_hints(struct)
    return {name: spark_type(hints[name]) for name in struct.__struct_fields__}


def wide_columns(structs: tuple[type[msgspec.Struct], ...]) -> dict[str, str]:
    """Returns the union of all fields.

    Raises:
        TypeError: two structs give one name to different types.
    """
    columns: dict[str, str] = {}
    for struct in structs:
        for name, kind in struct_columns(struct).items():
            if columns.setdefault(name, kind) != kind:
                raise TypeError(f"{name} is {columns[name]} and, in {struct.__name__}, {kind}")
    return columns


def view_name(struct: type[msgspec.Struct]) -> str:
    """Returns the name of the view that holds one event: ``BatchAppended`` becomes ``batch_appended``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", struct.__name__).lower()


def tag(struct: type[msgspec.Struct]) -> str:
    """Returns the text by which a line names its type."""
    value = struct.__struct_config__.tag
    assert isinstance(value, str)
    return value


def ddl(columns: dict[str, str]) -> str:
    """Returns a schema in Spark's notation."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
