"""A controller's turn without its network: step, write, sync once, and only then release events and messages.

The records of all inputs of a turn share one sync (group commit). The sync is part of the turn, because it takes a
third of a millisecond and nothing important may leave before it anyway. A failed write or sync is a ``StorageError``,
which ends the process: it is then unknown what is durable.
"""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

from laststand.emulator.core import effects
from laststand.emulator.core.controller.controller import Controller
from laststand.emulator.core.events import Event
from laststand.emulator.core.inputs import ControllerInput, MetadataCommitted
from laststand.emulator.core.quorum_controller.effects import ServeMetadata
from laststand.emulator.core.types import MetadataOffset
from laststand.emulator.node.metadata_journal import MetadataJournal

Departure: TypeAlias = (
    effects.SendRequest
    | effects.SendResponse
    | effects.PublishMetadata
    | effects.DrawNumber
    | effects.StopNode
    | ServeMetadata
)
"""A message that leaves the turn, after its events."""


class ControllerTurns:
    """The only controller and its metadata log.

    Args:
        controller: a new one; the log's batches are replayed into it.
        journal: just opened.

    Raises:
        UnsupportedFeatureError: the log has a feature level that the controller's release lacks.

    Attributes:
        active: the controller.
        next_deadline_ms: returns when a timer is due.
    """

    def __init__(self, controller: Controller, journal: MetadataJournal) -> None:
        self.active = controller
        self.next_deadline_ms = controller.next_deadline_ms
        self._journal = journal
        for batch in journal.batches:
            controller.replay(batch)
        controller.check_finalized()

    def run(self, inputs: Sequence[ControllerInput], *, now_ms: int) -> tuple[list[Event], list[Departure]]:
        """Steps the inputs in order and makes their records durable.

        Returns:
            The turn's events, to be written first, and its messages, both in order.

        Raises:
            StorageError: the metadata log could not be written or synced; the process has to end.
        """
        events: list[Event] = []
        departures: list[Departure] = []
        end_offset: MetadataOffset | None = None
        for incoming in inputs:
            for effect in self.active.step(incoming, now_ms=now_ms):
                end_offset = self._execute(effect, events, departures) or end_offset
        if end_offset is not None:
            self._journal.sync()
            synced = MetadataCommitted(cause_id=inputs[-1].cause_id, end_offset=end_offset)
            for effect in self.active.step(synced, now_ms=now_ms):
                self._execute(effect, events, departures)
        return events, departures

    def _execute(
        self, effect: effects.ControllerEffect, events: list[Event], departures: list[Departure]
    ) -> MetadataOffset | None:
        match effect:
            case effects.AppendMetadata(batch=batch, events=batch_events):
                self._journal.append(batch, batch_events)
                return batch.end_offset
            case effects.RecordEvent(event=event):
                events.append(event)
            case (
                effects.SendRequest()
                | effects.SendResponse()
                | effects.PublishMetadata()
                | effects.DrawNumber()
                | effects.StopNode()
            ):
                departures.append(effect)
            case _:
                assert_never(effect)
        return None
