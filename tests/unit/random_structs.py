"""Structs with any content that their annotations allow."""

import types
import typing
from enum import Enum
from functools import cache

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from laststand.emulator.core.types import ProducerIdentity, TopicPartition

NUMBERS = st.integers(min_value=0, max_value=2**31 - 1)
TEXTS = st.text(max_size=8)
_PLAIN: dict[type, st.SearchStrategy[object]] = {
    int: NUMBERS,
    str: TEXTS,
    bytes: st.binary(max_size=8),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
}
_SINGLES = {types.NoneType: None, UnsetType: UNSET}


def values(annotation: object) -> st.SearchStrategy[object]:
    """A strategy for any annotation that messages use."""
    while isinstance(annotation, typing.NewType):
        annotation = annotation.__supertype__
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return st.one_of(*map(values, arguments))
    if annotation in _SINGLES:
        return st.just(_SINGLES[annotation])
    if typing.get_origin(annotation) is tuple:
        if arguments[1:] == (Ellipsis,):
            return st.lists(values(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*(values(item) for item in arguments))
    assert isinstance(annotation, type)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    if issubclass(annotation, TopicPartition):
        return st.builds(TopicPartition, TEXTS, NUMBERS)
    if issubclass(annotation, ProducerIdentity):
        return st.builds(ProducerIdentity, NUMBERS, NUMBERS)
    if issubclass(annotation, msgspec.Struct):
        return structs(annotation)
    return _PLAIN[annotation]


@cache
def structs(struct: type[msgspec.Struct], *without: str) -> st.SearchStrategy[typing.Any]:
    """A strategy for a struct; each is made once, as that takes longer than to draw from it."""
    fields = {field.name: values(field.type) for field in msgspec.structs.fields(struct) if field.name not in without}
    return st.builds(struct, **fields)
