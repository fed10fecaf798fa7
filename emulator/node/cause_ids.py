"""Cause ids of events that begin inside a node: its start, its timers, its end."""

from itertools import count

from laststand.emulator.core.types import CauseId, NodeId


class CauseIds:
    """Makes cause ids that no other process of the run makes."""

    def __init__(self, *, node_id: NodeId, incarnation: int) -> None:
        self._suffix = f"{node_id}-{incarnation}"
        self._numbers = count()

    def start(self) -> CauseId:
        """Returns the cause id of everything that follows from the start of the process."""
        return CauseId(f"start-{self._suffix}")

    def shutdown(self) -> CauseId:
        """Returns the cause id of everything that follows from the order to end."""
        return CauseId(f"shutdown-{self._suffix}")

    def timer(self) -> CauseId:
        """Returns a new timer's cause."""
        return CauseId(f"timer-{self._suffix}-{next(self._numbers)}")

    def stream(self) -> CauseId:
        """Returns the cause of a newly opened metadata stream."""
        return CauseId(f"stream-{self._suffix}-{next(self._numbers)}")

    def draw(self) -> CauseId:
        """Returns the cause of a new draw."""
        return CauseId(f"draw-{self._suffix}-{next(self._numbers)}")
