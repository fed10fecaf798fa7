"""Turns the fields of a struct into columns: the form of each field, by its type."""

import types
import typing
from enum import Enum
from functools import cache
from typing import NamedTuple

import msgspec

from laststand.emulator.core.types import CauseId


class Form(Enum):
    """The form in which a column holds the values of a field."""

    INT = "int"
    OPTIONAL = "int | None"
    BOOL = "bool"
    ELEMENTS = "tuple of structs"
    ID = "text with digits at its end"
    WORD = "anything else"


class Field(NamedTuple):
    """A field of a struct.

    Attributes:
        element: the struct, for a field that is a tuple of structs.
    """

    name: str
    form: Form
    element: type[msgspec.Struct] | None = None


@cache
def fields_of(kind: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Returns the fields of a struct, in its order."""
    hints = typing.get_type_hints(kind)
    return tuple(_field_of(name, hints[name]) for name in kind.__struct_fields__)


def _field_of(name: str, hint: object) -> Field:
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is tuple and isinstance(arguments[0], type) and issubclass(arguments[0], msgspec.Struct):
        return Field(name, Form.ELEMENTS, arguments[0])
    if hint is CauseId:
        return Field(name, Form.ID)
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    members = {_plain(member) for member in (arguments if is_union else (hint,))}
    for members_of_form, form in (
        ({int}, Form.INT),
        ({int, type(None)}, Form.OPTIONAL),
        ({bool}, Form.BOOL),
    ):
        if members == members_of_form:
            return Field(name, form)
    return Field(name, Form.WORD)


def _plain(hint: object) -> object:
    """Returns the type that a ``NewType`` is made of."""
    while isinstance(hint, typing.NewType):
        hint = hint.__supertype__
    return hint
