"""Events by type, in the order of their nodes' files.

The few frequent kinds, with as many events as a run has batches, are columns (``columns``); others are single events.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, TypeVar, cast

from laststand.emulator.core.events import Event
from laststand.emulator.verification.tables.columns import Table
from laststand.emulator.verification.tables.event_lines import PLACE
from laststand.emulator.verification.tables.late_topic_ids import LateTopicIds, with_known_id
from laststand.emulator.verification.tables.timeline import CollectedEvent

_Kind = TypeVar("_Kind", bound=Event)


class EventRows(Table[CollectedEvent[_Kind]]):
    """The events of one frequent kind."""

    def __init__(self, kind: type[_Kind]) -> None:
        super().__init__(kind, more=PLACE)

    def _row(self, values: dict[str, Any]) -> CollectedEvent[_Kind]:
        place = {name: values.pop(name) for name in PLACE}
        return CollectedEvent(**place, event=super()._struct(values))


class EventTable:
    """Events of some part of a run, those of each type ordered by node, incarnation and sequence."""

    def __init__(self) -> None:
        self._lists: defaultdict[type[Event], list[CollectedEvent[Event]]] = defaultdict(list)

    def add(self, collected: CollectedEvent[Event]) -> None:
        """Adds an event; ``sort`` must be called after the last one."""
        self._lists[type(collected.event)].append(collected)

    def add_all(self, others: "EventTable") -> None:
        """Adds the events of another table."""
        for kind, events in others._lists.items():
            self._lists[kind].extend(events)

    def replace_late_ids(self, ids: LateTopicIds) -> None:
        """Replaces the placeholders of topic ids that became known late."""
        for events in self._lists.values():
            events[:] = [with_known_id(each, ids) for each in events]

    def sort(self) -> None:
        """Sorts the events of each type."""
        for events in self._lists.values():
            events.sort(key=place_of)

    def of(self, kind: type[_Kind]) -> Collection[CollectedEvent[_Kind]]:
        """The events of one type."""
        return cast("list[CollectedEvent[_Kind]]", self._lists.get(kind, []))


class PartitionEventTable(EventTable):
    """Events about one partition."""

    def __init__(self, rows: Mapping[type[Event], EventRows[Any]]) -> None:
        super().__init__()
        self._rows = rows

    def append_rows(self, rows: Mapping[type[Event], EventRows[Any]]) -> None:
        """Appends the events of the frequent kinds; ``sort`` is called afterwards."""
        self._rows = rows

    def sort(self) -> None:
        """Puts all events into their order."""
        super().sort()
        for rows in self._rows.values():
            rows.sort("node", "incarnation", "sequence")

    def of(self, kind: type[_Kind]) -> Collection[CollectedEvent[_Kind]]:
        """The events of one type."""
        return self._rows[kind] if kind in self._rows else super().of(kind)

    def rows(self, kind: type[_Kind]) -> EventRows[_Kind]:
        """The events of a frequent type, as columns."""
        return self._rows[kind]


def place_of(collected: CollectedEvent[Event]) -> tuple[int, int, int]:
    """Returns the sort key of a node's events; it does not order events of different nodes by time."""
    return (collected.node, collected.incarnation, collected.sequence)
