"""Observers of a simulated cluster: called for its events, its clients' history, and the end of each step."""

from typing import Protocol

from laststand.emulator.core import events
from laststand.emulator.core.client.steps import ClientRecord
from laststand.emulator.core.types import NodeId


class Observer(Protocol):
    """Called in order of occurrence; it must not change anything."""

    def happened(self, node_id: NodeId, incarnation: int, event: events.Event, *, now_ms: int) -> None:
        """Called when a node wrote an event."""
        ...

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Called when a client wrote a line of the history."""
        ...

    def stepped(self, node_id: NodeId) -> None:
        """Called when a node's step is over and its effects are executed."""
        ...


class NullObserver:
    """An observer that ignores everything; a base class for observers with few methods."""

    def happened(self, node_id: NodeId, incarnation: int, event: events.Event, *, now_ms: int) -> None:
        """Does nothing."""

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Does nothing."""

    def stepped(self, node_id: NodeId) -> None:
        """Does nothing."""
