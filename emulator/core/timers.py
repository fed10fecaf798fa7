"""Deadlines that a state machine keeps itself.

The core never sleeps: it returns when it has to be called again (``next_deadline_ms``), the driver sends ``TimerFired``
at or after that time, and the state machine handles the deadlines that are due.
"""

import heapq
from collections.abc import Hashable, Iterable
from typing import Final, Generic, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)

_SLACK: Final = 256
"""Disarmed deadlines that are kept before the queue is rebuilt."""


class Timed(Protocol):
    """A set of deadlines, with keys of any type."""

    earliest_ms: int | None


def earliest_of(deadlines: Iterable[int | None]) -> int | None:
    """Returns the earliest of deadlines of which some are not set; ``None`` if none is. It is asked after each step."""
    earliest: int | None = None
    for deadline in deadlines:
        if deadline is not None and (earliest is None or deadline < earliest):
            earliest = deadline
    return earliest


class TimerQueue(Generic[Key]):
    """Deadlines by key, ordered by time, and for equal times in the order of setting. Setting a key again moves it.

    The head of the heap is always armed, as the earliest deadline is read far more often than deadlines are set.

    Attributes:
        earliest_ms: the earliest deadline; ``None`` when nothing is armed.
    """

    def __init__(self) -> None:
        self.earliest_ms: int | None = None
        self._heap: list[tuple[int, int, Key]] = []
        self._live: dict[Key, tuple[int, int, Key]] = {}
        self._sequence = 0

    def set(self, key: Key, *, at_ms: int) -> None:
        """Arms ``key`` for ``at_ms``, replacing its earlier deadline."""
        self._sequence += 1
        entry = self._live[key] = (at_ms, self._sequence, key)
        heapq.heappush(self._heap, entry)
        self._drop_disarmed()

    def cancel(self, key: Key) -> None:
        """Disarms ``key``; no effect if it is not armed."""
        if self._live.pop(key, None) is None:
            return
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            # Deadlines that never come due (answered requests) would otherwise pile up until their time.
            self._heap = list(self._live.values())
            heapq.heapify(self._heap)
        self._drop_disarmed()

    def is_set(self, key: Key) -> bool:
        """Returns whether ``key`` is armed."""
        return key in self._live

    def pop_due(self, *, now_ms: int) -> list[Key]:
        """Disarms and returns the keys whose deadline is at or before ``now_ms``, in order."""
        due: list[Key] = []
        while self.earliest_ms is not None and self.earliest_ms <= now_ms:
            _, _, key = heapq.heappop(self._heap)
            del self._live[key]
            due.append(key)
            self._drop_disarmed()
        return due

    def _drop_disarmed(self) -> None:
        heap = self._heap
        while heap and self._live.get(heap[0][2]) != heap[0]:  # by value: mypyc unboxes tuples
            heapq.heappop(heap)
        self.earliest_ms = heap[0][0] if heap else None
