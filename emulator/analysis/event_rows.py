"""The rows of event tables: every event, with its place in the run's files."""

from collections.abc import Iterator
from typing import Final

import msgspec

from laststand.emulator.analysis.run_source import RunSource
from laststand.emulator.analysis.tables import Envelope
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.verification.tables.timeline import CollectedEvent
from laststand.emulator.verification.tables.vocabulary import tag

_ENCODER: Final = msgspec.json.Encoder()


def events_of(source: RunSource, kind: type[events.Event]) -> Iterator[CollectedEvent[events.Event]]:
    """Yields the events of one type, in each node's order."""
    facts = source.evidence.facts
    if issubclass(kind, events.PartitionEvent):
        for partition in facts.partitions():
            yield from partition.events.of(kind)
    else:
        yield from facts.cluster.events.of(kind)


def encode_event(collected: CollectedEvent[events.Event]) -> bytes:
    """Returns an event with its envelope as a JSON object."""
    envelope = Envelope(
        node=NodeId(collected.node),
        incarnation=collected.incarnation,
        sequence=collected.sequence,
        type=tag(type(collected.event)),
    )
    # The event names its type, too: two keys of one name would be two columns.
    own = _ENCODER.encode(collected.event).partition(b",")[2]
    return _ENCODER.encode(envelope)[:-1] + b"," + own
