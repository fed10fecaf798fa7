"""Frequent facts (about as many as a run has batches) as columns: first of all partitions, then of each."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final, TypeVar
from zlib import crc32

import msgspec
import numpy as np

from laststand.emulator.core.events import Event, PartitionEvent
from laststand.emulator.verification.tables.client_history import ReceivedBatch, SentBatch
from laststand.emulator.verification.tables.columns import ALL, Columns, Places, Table
from laststand.emulator.verification.tables.event_lines import FREQUENT, FREQUENT_LINES, Line
from laststand.emulator.verification.tables.events import EventRows
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.late_topic_ids import LateTopicIds
from laststand.emulator.verification.tables.matching import groups_of

PartitionName = tuple[str, int]
"""Topic and number."""

_Table = TypeVar("_Table", bound=Table[Any])

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
            events={kind: rows_of_none(kind, name) for kind in FREQUENT},
            sent=rows_of_none(SentBatch, name),
            received=rows_of_none(ReceivedBatch, name),
        )

    def knowing_ids(self, ids: LateTopicIds) -> "PartitionRows":
        """Returns these facts with the ids of topics in place of their placeholders."""
        if not ids:
            return self
        return PartitionRows(
            events={kind: rows.reworded(_TOPIC_ID, ids) for kind, rows in self.events.items()},
            sent=self.sent.reworded(_TOPIC_ID, ids),
            received=self.received.reworded(_TOPIC_ID, ids),
        )


class RowTables:
    """The frequent facts of any number of partitions; empty unless tables are given."""

    def __init__(
        self,
        events: dict[type[PartitionEvent], EventRows[Any]] | None = None,
        sent: Table[SentBatch] | None = None,
        received: Table[ReceivedBatch] | None = None,
    ) -> None:
        self.events: dict[type[PartitionEvent], EventRows[Any]] = events or {kind: EventRows(kind) for kind in FREQUENT}
        self.sent: Table[SentBatch] = Table(SentBatch) if sent is None else sent
        self.received: Table[ReceivedBatch] = Table(ReceivedBatch) if received is None else received

    def add_lines(self, lines: Sequence[Line]) -> None:
        """Adds the lines of frequent events; other lines are ignored."""
        for kind, rows in self.events.items():
            line_type = _LINE_OF[kind]
            rows.extend([line for line in lines if type(line) is line_type])

    def add_columns(self, rows: Mapping[type[msgspec.Struct], Columns]) -> None:
        """Adds frequent events that were read as columns."""
        for kind, found in rows.items():
            if kind in self.events:
                self.events[kind].append_columns(found)

    def joined(self, others: Sequence["RowTables"]) -> "RowTables":
        """Returns these facts together with those of others."""
        return RowTables(
            {kind: rows.joined([other.events[kind] for other in others]) for kind, rows in self.events.items()},
            self.sent.joined([other.sent for other in others]),
            self.received.joined([other.received for other in others]),
        )

    def shares(self, count: int) -> dict[int, "RowTables"]:
        """Divides the facts into ``count`` shares, and returns the non-empty ones."""
        events = {kind: share_rows(rows, count) for kind, rows in self.events.items()}
        sent, received = share_rows(self.sent, count), share_rows(self.received, count)
        return {
            share: RowTables(
                {kind: found.get(share) or EventRows(kind) for kind, found in events.items()},
                sent.get(share),
                received.get(share),
            )
            for share in {*chain(*events.values(), sent, received)}
        }

    def parts(self) -> dict[PartitionName, PartitionRows]:
        """Returns the facts by partition."""
        events = {kind: dict(parts_of(rows)) for kind, rows in self.events.items()}
        sent, received = dict(parts_of(self.sent)), dict(parts_of(self.received))
        names = dict.fromkeys(chain(*events.values(), sent, received))
        return {
            name: PartitionRows(
                events={kind: parts.get(name) or rows_of_none(kind, name) for kind, parts in events.items()},
                sent=sent.get(name) or rows_of_none(SentBatch, name),
                received=received.get(name) or rows_of_none(ReceivedBatch, name),
            )
            for name in names
        }


def share_of(name: PartitionName, count: int) -> int:
    """Returns the number of a partition's share, out of ``count``; consecutive partitions have consecutive shares."""
    topic, partition = name
    return (crc32(topic.encode(errors="replace")) + partition) % count


def share_rows(table: _Table, count: int) -> dict[int, _Table]:
    """Divides the rows of a table into ``count`` shares of whole partitions, and returns the non-empty ones."""
    if not len(table):
        return {}
    topics = np.array([share_of((topic, 0), count) for topic in table.words("topic")], np.int64)
    numbers = (topics[table["topic"]] + table["partition"] % count) % count
    return {int(numbers[places[0]]): table.part(places, {}) for places in groups_of(numbers)}


def count_rows(table: Table[Any]) -> Iterator[tuple[PartitionName, int]]:
    """Yields the number of rows of each partition in a table of all."""
    for name, places in _by_partition(table):
        yield name, len(places)


def parts_of(table: Table[Any]) -> Iterator[tuple[PartitionName, Any]]:
    """Yields the rows of each partition in a table of all."""
    for name, places in _by_partition(table):
        yield name, _part(table, ALL if len(places) == len(table) else places, name)


def _by_partition(table: Table[Any]) -> Iterator[tuple[PartitionName, Ints]]:
    if not len(table):
        return
    topics, partitions = table["topic"], table["partition"]
    for places in groups_of(topics, partitions):
        yield (table.words("topic")[topics[places[0]]], int(partitions[places[0]])), places


def rows_of_none(kind: type[msgspec.Struct], name: PartitionName) -> Any:
    """Returns an empty table for one partition."""
    topic, partition = name
    return _without_rows(kind).placed({"topic": topic, "partition": partition})


@cache
def _without_rows(kind: type[msgspec.Struct]) -> Table[Any]:
    table: Table[Any] = EventRows(kind) if issubclass(kind, Event) else Table(kind)
    return _part(table, ALL, ("", 0))


def _part(table: Table[Any], places: Places, name: PartitionName) -> Table[Any]:
    topic, partition = name
    return table.part(places, {"topic": topic, "partition": partition})
