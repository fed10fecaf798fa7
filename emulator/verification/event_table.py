"""Events by type, in the order in which their nodes wrote them."""

from collections import defaultdict
from typing import TypeVar, cast

from emulator.core.events import Event
from emulator.verification.timeline import CollectedEvent

_Kind = TypeVar("_Kind", bound=Event)


class EventTable:
    """Events of some part of a run, one list per type, ordered by node, incarnation and sequence."""

    def __init__(self) -> None:
        self._lists: defaultdict[type[Event], list[CollectedEvent[Event]]] = defaultdict(list)

    def add(self, collected: CollectedEvent[Event]) -> None:
        """Takes an event; ``sort`` is called after the last one."""
        self._lists[type(collected.event)].append(collected)

    def sort(self) -> None:
        """Puts every list into its order."""
        for events in self._lists.values():
            events.sort(key=place_of)

    def of(self, kind: type[_Kind]) -> list[CollectedEvent[_Kind]]:
        """The events of one type."""
        return cast("list[CollectedEvent[_Kind]]", self._lists.get(kind, []))


def place_of(collected: CollectedEvent[Event]) -> tuple[int, int, int]:
    """Returns what orders the events of a node; across nodes it says nothing about time."""
    return (collected.node, collected.incarnation, collected.sequence)
