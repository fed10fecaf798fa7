"""Collects the events of nodes and the harness in a run; each is passed to the observer."""

from typing import Final

from laststand.emulator.core import events
from laststand.emulator.core.types import CauseId
from laststand.emulator.plan.nodes import HARNESS
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import InputT, Node
from laststand.emulator.simulator.nodes.observer import Observer

NS_PER_MS: Final = 1_000_000


class EventLog:
    """Stamps each event with its writer and with virtual time.

    Args:
        queue: virtual time.
        observer: gets every event.

    Attributes:
        cause_id: cause of the harness's present action.
    """

    def __init__(self, queue: EventQueue, observer: Observer) -> None:
        self.cause_id = CauseId("harness")
        self._queue = queue
        self._observer = observer

    @property
    def now_ns(self) -> int:
        """Virtual time in the form of the event log's lines."""
        return self._queue.now_ms * NS_PER_MS

    def write(self, node: Node[InputT], event: events.Event) -> None:
        """Writes an event of a node."""
        self._observer.happened(node.node_id, node.incarnation, event, now_ms=self._queue.now_ms)

    def note(self, event: events.Event) -> None:
        """Writes an event of the harness."""
        self._observer.happened(HARNESS, 0, event, now_ms=self._queue.now_ms)
