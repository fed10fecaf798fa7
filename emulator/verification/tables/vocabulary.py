"""The event vocabulary for readers of lines."""

import typing
from typing import Final

import msgspec

from laststand.emulator.core import events


def _members(union: object) -> tuple[type[events.Event], ...]:
    return typing.get_args(union)


EVENT_TYPES: Final = _members(events.AnyEvent)
COMMITTED: Final[tuple[type[events.Event], ...]] = tuple(
    kind for kind in _members(events.ControllerEvent) if "metadata_offset" in kind.__struct_fields__
)
"""Events of metadata records. Every record leaves at least one."""


def tag(struct: type[msgspec.Struct]) -> str:
    """Returns the text by which a line names its type."""
    value = struct.__struct_config__.tag
    assert isinstance(value, str)
    return value
