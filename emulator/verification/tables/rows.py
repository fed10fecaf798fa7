"""Facts of which a run has as many as batches, as they are read: as columns, of all partitions, and then of each."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from laststand.emulator.core.events import Event
from laststand.emulator.verification.tables.client_history import ReceivedBatch, SentBatch
from laststand.emulator.verification.tables.columns import ALL, Columns, Places, Table
from laststand.emulator.verification.tables.event_lines import FREQUENT, FREQUENT_LINES, Line
from laststand.emulator.verification.tables.events import EventRows
from laststand.emulator.verification.tables.late_topic_ids import LateTopicIds
from laststand.emulator.verification.tables.matching import groups_of

PartitionName = tuple[str, int]
"""Topic and number."""

_TOPIC_ID: Final = "topic_id"
_LINE_OF: Final = {kind: line for line, kind in FREQUENT_LINES.items()}


class PartitionRows(msgspec.Struct, kw_only=True):
    """The frequent facts of one partition."""

    events: dict[type[Event], EventRows[Any]]
    sent: Table[SentBatch]
    received: Table[ReceivedBatch]

    @classmethod
    def none(cls, topic: str, partition: int) -> "PartitionRows":
        """Returns the rows of a partition without evidence."""
        name = (topic, partition)
        return cls(
            events={kind: _none(EventRows(kind), name) for kind in FREQUENT},
            sent=_none(Table(SentBatch), name),
            received=_none(Table(ReceivedBatch), name),
        )

    def joined(self, others: Sequence["PartitionRows"]) -> "PartitionRows":
        """Returns these facts and those of others."""
        return PartitionRows(
            events={kind: rows.joined([other.events[kind] for other in others]) for kind, rows in self.events.items()},
            sent=self.sent.joined([other.sent for other in others]),
            received=self.received.joined([other.received for other in others]),
        )

    def knowing_ids(self, ids: LateTopicIds) -> "PartitionRows":
        """Returns these facts with the ids of topics in the place of what stands for them."""
        if not ids:
            return self
        return PartitionRows(
            events={kind: rows.reworded(_TOPIC_ID, ids) for kind, rows in self.events.items()},
            sent=self.sent.reworded(_TOPIC_ID, ids),
            received=self.received.reworded(_TOPIC_ID, ids),
        )


class RowTables:
    """The frequent facts of any number of partitions."""

    def __init__(self) -> None:
        self.events = {kind: EventRows(kind) for kind in FREQUENT}
        self.sent: Table[SentBatch] = Table(SentBatch)
        self.received: Table[ReceivedBatch] = Table(ReceivedBatch)

    def add_lines(self, lines: Sequence[Line]) -> None:
        """Takes those lines that are of frequent events."""
        for kind, rows in self.events.items():
            line_type = _LINE_OF[kind]
            rows.extend([line for line in lines if type(line) is line_type])

    def add_columns(self, rows: Mapping[type[msgspec.Struct], Columns]) -> None:
        """Takes frequent events that were read as columns."""
        for kind, found in rows.items():
            if kind in self.events:
                self.events[kind].append_columns(found)

    def parts(self) -> dict[PartitionName, PartitionRows]:
        """Returns the facts by partition."""
        events = {kind: dict(parts_of(rows)) for kind, rows in self.events.items()}
        sent, received = dict(parts_of(self.sent)), dict(parts_of(self.received))
        names = dict.fromkeys(chain(*events.values(), sent, received))
        return {
            name: PartitionRows(
                events={kind: parts.get(name) or _none(EventRows(kind), name) for kind, parts in events.items()},
                sent=sent.get(name) or _none(Table(SentBatch), name),
                received=received.get(name) or _none(Table(ReceivedBatch), name),
            )
            for name in names
        }


def parts_of(table: Table[Any]) -> Iterator[tuple[PartitionName, Any]]:
    """Yields the rows of each partition in a table of all."""
    topics, partitions = table["topic"], table["partition"]
    for places in groups_of(topics, partitions):
        name = (table.words("topic")[topics[places[0]]], int(partitions[places[0]]))
        yield name, _part(table, places, name)


def _none(table: Table[Any], name: PartitionName) -> Any:
    """Returns a table that was just made, and has no rows, as one of a partition."""
    return _part(table, ALL, name)


def _part(table: Table[Any], places: Places, name: PartitionName) -> Any:
    topic, partition = name
    return table.part(places, {"topic": topic, "partition": partition})
