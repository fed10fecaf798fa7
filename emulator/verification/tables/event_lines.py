"""Lines of event files, as whoever reads all of a run decodes them: once each.

Four kinds of events make nearly all of a long run. Their lines are decoded whole; of a line of any other kind only the
envelope is, and where it belongs: there are few of them, to be decoded from their text.
"""

import typing
from typing import Any, Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.verification.tables.vocabulary import EVENT_TYPES, tag


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of every line, by its writer. Lines of frequent events have the same ones."""

    node: int
    incarnation: int
    sequence: int
    run: str = ""
    time_ns: int = 0
    topic: str | None = None
    partition: int | None = None


FREQUENT: Final[tuple[type[events.PartitionEvent], ...]] = (
    events.BatchAppended,
    events.HighWatermarkAdvanced,
    events.FollowerHighWatermarkUpdated,
    events.ProduceAnswered,
)
"""Kinds of events that a run has as many of as batches."""

PLACE: Final = ("node", "incarnation", "sequence", "time_ns")
"""The attributes that give a line's place, beside its content."""

_ENVELOPE: Final[list[tuple[str, Any] | tuple[str, Any, Any]]] = [
    ("node", int),
    ("incarnation", int),
    ("sequence", int),
    ("run", str, ""),
    ("time_ns", int, 0),
]


def _frequent(kind: type[events.PartitionEvent]) -> type[msgspec.Struct]:
    return msgspec.defstruct(
        kind.__name__, _ENVELOPE, bases=(kind,), tag=tag(kind), frozen=True, kw_only=True, gc=False
    )


def _rare(kind: type[events.Event]) -> type[msgspec.Struct]:
    name = tag(kind)
    return msgspec.defstruct(name, [], bases=(Line,), tag_field="type", tag=name, frozen=True, kw_only=True, gc=False)


FREQUENT_LINES: Final = {_frequent(kind): kind for kind in FREQUENT}
_RARE_LINES: Final = tuple(_rare(kind) for kind in EVENT_TYPES if kind not in FREQUENT)

LINES: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(typing.Union[*FREQUENT_LINES, *_RARE_LINES])
