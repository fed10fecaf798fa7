"""A node's monotonic clock: it may run fast or slow, and may differ from other nodes' clocks.

Rates are in parts per million of the driver's time. The mapping is exact on integers in both directions: the time at
which a deadline is due is the driver's first millisecond at which the node's own clock has reached it.
"""

from typing import Final

NORMAL_RATE_PPM: Final = 1_000_000
"""Rate of a clock that runs right."""


class NodeClock:
    """Maps the driver's time to a node's own time. Never goes back."""

    __slots__ = ("_base_local", "_base_ms", "_rate")

    def __init__(self) -> None:
        self._base_ms = 0
        self._base_local = 0
        self._rate = NORMAL_RATE_PPM

    @property
    def has_normal_rate(self) -> bool:
        """The clock runs at the driver's rate."""
        return self._rate == NORMAL_RATE_PPM

    @property
    def rate_ppm(self) -> int:
        """The rate of the clock, in parts per million of the driver's."""
        return self._rate

    def local_ms(self, now_ms: int) -> int:
        """Returns the node's time at a given time of the driver."""
        if self._rate == NORMAL_RATE_PPM:
            return now_ms - self._base_ms + self._base_local
        return (now_ms - self._base_ms) * self._rate // NORMAL_RATE_PPM + self._base_local

    def due_ms(self, local_ms: int) -> int:
        """Returns the driver's first time at which the node's time is not before ``local_ms``."""
        if self._rate == NORMAL_RATE_PPM:
            return local_ms - self._base_local + self._base_ms
        return -(-(local_ms - self._base_local) * NORMAL_RATE_PPM // self._rate) + self._base_ms

    def set_rate(self, rate_ppm: int, *, now_ms: int) -> None:
        """Lets the clock run at another rate from now on."""
        self._base_local = self.local_ms(now_ms)
        self._base_ms = now_ms
        self._rate = rate_ppm

    def jump(self, by_ms: int, *, now_ms: int) -> None:
        """Moves the node's time forward at once."""
        self._base_local = self.local_ms(now_ms) + by_ms
        self._base_ms = now_ms
