"""Types for decoding the lines of event files, each line once.

Nearly all events of a long run are of four kinds. Their lines are decoded whole. Of the few other lines only the
envelope, topic and partition are decoded at first, and the rest later from the text.
"""

import typing
from typing import Any, Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.verification.tables.vocabulary import EVENT_TYPES, tag


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes that the writer adds to every line, with topic and partition if the event has them."""

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
"""Frequent kinds of events: about as many as a run has batches."""

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
