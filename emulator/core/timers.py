"""Deadlines that a state machine keeps itself.

The core never sleeps: it names when it wants to be called again (``next_deadline_ms``), the driver sends ``TimerFired``
at or after that time, and the state machine pops what is due.
"""

import heapq
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

_SLACK: Final = 256
"""Disarmed deadlines that are kept before the queue is rebuilt."""


class TimerQueue(Generic[Key]):
    """Named deadlines in order of time, and of setting among equals. Setting a name again moves it.

    The head of the heap is always armed: the earliest deadline is asked for far more often than any is set.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Key]] = []
        self._live: dict[Key, tuple[int, int]] = {}
        self._sequence = 0

    def set(self, key: Key, *, at_ms: int) -> None:
        """Arms ``key`` for ``at_ms``, replacing its earlier deadline."""
        self._sequence += 1
        self._live[key] = (at_ms, self._sequence)
        heapq.heappush(self._heap, (at_ms, self._sequence, key))
        self._drop_disarmed()

    def cancel(self, key: Key) -> None:
        """Disarms ``key``; no effect if it is not armed."""
        if self._live.pop(key, None) is None:
            return
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            # Deadlines that never come due (answered requests) would otherwise pile up until their time.
            self._heap = [(at_ms, sequence, live) for live, (at_ms, sequence) in self._live.items()]
            heapq.heapify(self._heap)
        self._drop_disarmed()

    def is_set(self, key: Key) -> bool:
        """Whether ``key`` is armed."""
        return key in self._live

    def next_deadline_ms(self) -> int | None:
        """Returns the earliest deadline, or ``None`` when nothing is armed."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, *, now_ms: int) -> list[Key]:
        """Disarms and returns the keys whose deadline is at or before ``now_ms``, in order."""
        due: list[Key] = []
        while self._heap and self._heap[0][0] <= now_ms:
            _, _, key = heapq.heappop(self._heap)
            del self._live[key]
            due.append(key)
            self._drop_disarmed()
        return due

    def _drop_disarmed(self) -> None:
        while self._heap:
            at_ms, sequence, key = self._heap[0]
            if self._live.get(key) == (at_ms, sequence):
                return
            heapq.heappop(self._heap)
