"""Keeps all events and the clients' history of a simulated cluster, and their digest.

The digest is over the lines of the event log in the order in which they happened: two plays of the same actions are
the same run if and only if they have the same digest.
"""

import hashlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.client.steps import ClientRecord
from laststand.emulator.core.types import NodeId

_ENCODER: Final = msgspec.json.Encoder()


class JournalEntry(NamedTuple):
    """One event, with its place and time."""

    now_ms: int
    node_id: NodeId
    incarnation: int
    event: events.Event

    def line(self) -> bytes:
        """Returns the entry's canonical form."""
        return b"%d %d-%d " % (self.now_ms, self.node_id, self.incarnation) + _ENCODER.encode(self.event)


class HistoryEntry(NamedTuple):
    """One line of the clients' history."""

    now_ms: int
    client: str
    record: ClientRecord


class Journal:
    """An observer that keeps everything.

    Attributes:
        entries: events of all nodes in order.
        history: what clients recorded, in order.
    """

    def __init__(self) -> None:
        self.entries: list[JournalEntry] = []
        self.history: list[HistoryEntry] = []

    def happened(self, node_id: NodeId, incarnation: int, event: events.Event, *, now_ms: int) -> None:
        """Keeps an event."""
        self.entries.append(JournalEntry(now_ms, node_id, incarnation, event))

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Keeps a line of the history."""
        self.history.append(HistoryEntry(now_ms, client, record))

    def stepped(self, node_id: NodeId) -> None:
        """Keeps nothing."""

    def lines(self) -> Iterator[bytes]:
        """Yields every event, then every line of the history, in canonical form."""
        for entry in self.entries:
            yield entry.line()
        for now_ms, client, record in self.history:
            yield b"%d %s " % (now_ms, client.encode()) + _ENCODER.encode([type(record).__name__, record])

    def digest(self) -> str:
        """Returns the digest of all lines."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(line + b"\n")
        return digest.hexdigest()
