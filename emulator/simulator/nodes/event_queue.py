"""Callbacks ordered by virtual time; those of equal times in order of insertion."""

import heapq
from collections.abc import Callable
from typing import TypeAlias

Callback: TypeAlias = Callable[[], None]


class EventQueue:
    """A queue of callbacks; ``now_ms`` is the time of the last one taken."""

    __slots__ = ("_heap", "_order", "now_ms")

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, Callback]] = []
        self._order = 0

    def after(self, delay_ms: int, callback: Callback) -> None:
        """Schedules a callback ``delay_ms`` from now."""
        self._order += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._order, callback))

    def at(self, at_ms: int, callback: Callback) -> None:
        """Schedules a callback at a time, or now if that is past."""
        self._order += 1
        now_ms = self.now_ms
        heapq.heappush(self._heap, (at_ms if at_ms > now_ms else now_ms, self._order, callback))

    def pop(self, *, until_ms: int) -> Callback | None:
        """Advances to the next callback and returns it; ``None`` if none comes by ``until_ms``."""
        heap = self._heap
        if not heap or heap[0][0] > until_ms:
            return None
        self.now_ms, _, callback = heapq.heappop(heap)
        return callback
