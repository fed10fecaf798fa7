"""The event vocabulary as a reader of lines needs it."""

import typing
from typing import Final

import msgspec

from emulator.core import events


def _members(union: object) -> tuple[type[msgspec.Struct], ...]:
    return typing.get_args(union)


EVENT_TYPES: Final = _members(events.AnyEvent)


def tag(struct: type[msgspec.Struct]) -> str:
    """Returns the text by which a line names its type."""
    value = struct.__struct_config__.tag
    assert isinstance(value, str)
    return value
