"""Rates over a sliding window, by which quotas are kept (Kafka's ``Rate`` and ``SimpleRate`` of a ``WindowedSum``)."""

from collections import deque
from typing import Final

WINDOW_MS: Final = 1000
"""``quota.window.size.seconds`` and ``replication.quota.window.size.seconds``."""

WINDOWS: Final = 11
"""``quota.window.num`` and ``replication.quota.window.num``: ten whole windows, and the one that runs."""


class Rate:
    """A quantity per second. The time before the first window counts as idle, so that a burst may pass."""

    def __init__(self) -> None:
        self._windows: deque[tuple[int, float]] = deque()

    def record(self, value: float, *, now_ms: int) -> None:
        """Adds to the quantity."""
        start_ms, total = self._windows[-1] if self._windows else (now_ms, 0.0)
        if self._windows and now_ms - start_ms < WINDOW_MS:
            self._windows[-1] = (start_ms, total + value)
        else:
            self._windows.append((now_ms, value))
            self._drop_old(now_ms)

    def per_second(self, *, now_ms: int) -> float:
        """Returns the rate."""
        span_ms = self.span_ms(now_ms=now_ms)
        return 1000 * sum(total for _, total in self._windows) / span_ms

    def span_ms(self, *, now_ms: int) -> int:
        """Returns the length of the time that the rate covers."""
        elapsed_ms = self._elapsed_ms(now_ms)
        return elapsed_ms + max(0, WINDOWS - 1 - elapsed_ms // WINDOW_MS) * WINDOW_MS

    def _elapsed_ms(self, now_ms: int) -> int:
        self._drop_old(now_ms)
        return now_ms - self._windows[0][0] if self._windows else 0

    def _drop_old(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0][0] >= WINDOWS * WINDOW_MS:
            self._windows.popleft()


class SimpleRate(Rate):
    """A rate since the oldest window began, over one window at least."""

    def span_ms(self, *, now_ms: int) -> int:
        """Returns the length of the time that the rate covers."""
        return max(self._elapsed_ms(now_ms), WINDOW_MS)
