"""One step under way: its time, its cause, its effects, and the partitions that it changed.

All parts of a broker add their effects here during a step. ``effects`` returns them in the order that the driver relies
on: file effects, then events, then messages, and last the end of the process. Changes of a partition on which requests
may wait (its log grew, its high watermark rose, its role changed) are collected too, and handled once at the end of the
step; so no part calls back into another.
"""

from laststand.emulator.core import events
from laststand.emulator.core.broker.replicas.isr import IsrProposal
from laststand.emulator.core.effects import BrokerEffect, CloseLogs, FileEffect, MessageEffect, RecordEvent, StopNode
from laststand.emulator.core.types import CauseId, TopicPartition


class Turn:
    """Collects the outcome of one ``step``.

    Attributes:
        now_ms: the step's time.
        cause_id: of the input; while a timer with an older cause is handled, that cause's id.
        grown: partitions whose log got new batches.
        advanced: partitions whose high watermark moved, or whose log start did on the leader.
        turned: partitions whose role, leader epoch or ISR changed, or that are gone.
        proposals: ISR changes to be sent to the controller.
    """

    __slots__ = (
        "_events",
        "_exit",
        "_files",
        "_messages",
        "advanced",
        "cause_id",
        "grown",
        "now_ms",
        "proposals",
        "turned",
    )

    def __init__(self, *, now_ms: int, cause_id: CauseId) -> None:
        self.now_ms = now_ms
        self.cause_id = cause_id
        self.grown: dict[TopicPartition, None] = {}
        self.advanced: dict[TopicPartition, None] = {}
        self.turned: dict[TopicPartition, None] = {}
        self.proposals: list[IsrProposal] = []
        self._files: list[FileEffect] = []
        self._events: list[RecordEvent] = []
        self._messages: list[MessageEffect] = []
        self._exit: CloseLogs | StopNode | None = None

    def write(self, effect: FileEffect) -> None:
        """Adds a file effect."""
        self._files.append(effect)

    def record(self, event: events.BrokerEvent) -> None:
        """Adds a line of the event log."""
        self._events.append(RecordEvent(event=event))

    def send(self, effect: MessageEffect) -> None:
        """Adds a message."""
        self._messages.append(effect)

    def exit(self, effect: CloseLogs | StopNode) -> None:
        """Ends the process after everything else."""
        self._exit = effect

    def effects(self) -> list[BrokerEffect]:
        """Returns all effects in the order of execution."""
        effects: list[BrokerEffect] = [*self._files, *self._events, *self._messages]
        if self._exit is not None:
            effects.append(self._exit)
        return effects
