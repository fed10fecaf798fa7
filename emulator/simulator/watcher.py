"""What may be seen of a simulated cluster from outside: its events, its clients' history, the end of each step."""

from typing import Protocol, TypeAlias

from emulator.core.client.steps import FinalReadRecorded, PollRecorded, SendRecorded
from emulator.core.events import Event
from emulator.core.types import NodeId

ClientRecord: TypeAlias = SendRecorded | PollRecorded | FinalReadRecorded
"""What a client puts into the history."""


class Watcher(Protocol):
    """Is told what happens, in order, and must not change anything."""

    def happened(self, node_id: NodeId, incarnation: int, event: Event, *, now_ms: int) -> None:
        """A node wrote an event."""
        ...

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """A client wrote a line of the history."""
        ...

    def stepped(self, node_id: NodeId) -> None:
        """A node's step is over, and its effects are executed."""
        ...


class NobodyWatches:
    """A watcher that looks away."""

    def happened(self, node_id: NodeId, incarnation: int, event: Event, *, now_ms: int) -> None:
        """Does nothing."""

    def recorded(self, client: str, record: ClientRecord, *, now_ms: int) -> None:
        """Does nothing."""

    def stepped(self, node_id: NodeId) -> None:
        """Does nothing."""
