"""Curves that grow during a run, and never have more points than a picture can show."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from laststand.emulator.verification.story.run import Point
from laststand.emulator.verification.story.thinning import POINTS_MAX, thinned
from laststand.emulator.verification.tables.integers import Ints

_THINNED_AT: Final = 4 * POINTS_MAX


class RisingCurve:
    """A value that never falls, over time. Times are nanoseconds of a node's clock, and do not fall either."""

    def __init__(self) -> None:
        self._times: Ints = np.empty(0, np.int64)
        self._values: Ints = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def last(self) -> int:
        """The present value; there must be one."""
        return int(self._values[-1])

    def extend(self, times: Ints, values: Ints) -> None:
        """Adds later values; a value that is lower or earlier than the last one counts as the highest so far."""
        self._times = np.maximum.accumulate(np.append(self._times, times))
        self._values = np.maximum.accumulate(np.append(self._values, values))
        if len(self) > _THINNED_AT:
            kept = thinned(self._times, self._values)
            self._times, self._values = self._times[kept], self._values[kept]

    def points(self, origin_ns: int) -> Iterator[Point]:
        """Yields the points, in microseconds since a time."""
        times = (self._times - origin_ns) // 1000
        yield from map(Point, times.tolist(), self._values.tolist())


class HeldCurve:
    """The end of an epoch's records in a log over time: it rises with appends, and falls where the log is cut.

    Args:
        first: the first offset of the epoch that the log has had.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self._pieces = [RisingCurve()]

    def extend(self, times: Ints, ends: Ints) -> None:
        """Adds appends."""
        self._pieces[-1].extend(times, ends)

    def fall(self, time_ns: int, end: int) -> None:
        """Adds a truncation; the log ends at that offset afterwards."""
        last = self._pieces[-1]
        if not len(last) or end >= last.last:
            return
        at = np.array([time_ns])
        last.extend(at, np.array([last.last]))
        self._pieces.append(RisingCurve())
        self.extend(at, np.array([max(end, self.first)]))

    def points(self, origin_ns: int) -> tuple[Point, ...]:
        """Returns the points, in microseconds since a time."""
        return tuple(point for piece in self._pieces for point in piece.points(origin_ns))

    @property
    def end(self) -> int:
        """The present end of these records, exclusive; ``first`` if there are none."""
        return self._pieces[-1].last
