"""Brokers' ids in messages, where a cluster numbers its brokers otherwise than the scenario that is played on it."""

import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

from kio.schema.types import BrokerId as KafkaBrokerId
from kio.static.primitive import i32

_EntityT = TypeVar("_EntityT")

BrokerNumbers: TypeAlias = Mapping[int, int]
"""The cluster's own ids of brokers, by those of the scenario; empty where they are the same."""

SAME_NUMBERS: Final[BrokerNumbers] = {}


def renumbered(entity: _EntityT, numbers: BrokerNumbers) -> _EntityT:
    """Returns a message with other broker ids in all fields that hold one by the schema; other fields stay."""
    return _renumbered(entity, numbers) if numbers else entity


def _renumbered(value: Any, numbers: BrokerNumbers) -> Any:
    if isinstance(value, tuple):
        return tuple(_renumbered(each, numbers) for each in value)
    kind = type(value)
    if not is_dataclass(kind):
        return value
    changes = {}
    for name, has_ids in _places(kind):
        found = getattr(value, name)
        changes[name] = _renumbered_ids(found, numbers) if has_ids else _renumbered(found, numbers)
    return replace(value, **changes) if changes else value


def _renumbered_ids(value: Any, numbers: BrokerNumbers) -> Any:
    if isinstance(value, tuple):
        return tuple(_renumbered_ids(each, numbers) for each in value)
    return None if value is None else KafkaBrokerId(i32(numbers.get(value, value)))


@functools.cache
def _places(kind: type) -> tuple[tuple[str, bool], ...]:
    """Returns the fields that hold ids of brokers (true), or entities that may."""
    hints = typing.get_type_hints(kind)
    found = []
    for field in fields(kind):
        members = set(_members(hints[field.name]))
        if KafkaBrokerId in members or any(map(is_dataclass, members)):
            found.append((field.name, KafkaBrokerId in members))
    return tuple(found)


def _members(hint: Any) -> tuple[Any, ...]:
    """Returns the types in a union or a tuple; for any other hint the hint itself."""
    if typing.get_origin(hint) in (tuple, typing.Union, types.UnionType):
        return tuple(member for each in typing.get_args(hint) for member in _members(each))
    return (hint,)
