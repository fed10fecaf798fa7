"""Curves of a story as they are drawn: what was held at each time, the most so far, and what is left of it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from laststand.emulator.report.axes import Floats
from laststand.emulator.verification.story.run import HeldRecords, PartitionStory, Point

_HOLD: Final = 1 / 24
"""Part of its time from which on a curve is said not to have moved between two points."""


class Curve(NamedTuple):
    """Points with rising times; between two points the curve is straight."""

    times: Floats
    values: Floats

    def at(self, times: Floats) -> Floats:
        """Returns the values at times."""
        return np.asarray(np.interp(times, self.times, self.values), np.float64)

    @property
    def peak(self) -> Floats:
        """The highest value up to each point."""
        return np.maximum.accumulate(self.values)

    def clamped(self, low: float, high: float) -> "Curve":
        """Returns the curve within bounds."""
        return Curve(self.times, np.clip(self.values, low, high))


class Steps(NamedTuple):
    """Points with times that do not fall; the value is the same from each up to the next, and 0 before the first."""

    times: Floats
    values: Floats

    def at(self, times: Floats) -> Floats:
        """Returns the values at times."""
        places = np.searchsorted(self.times, times, side="right")
        return np.asarray(np.append(0.0, self.values)[places], np.float64)


def flushed_steps(partition: PartitionStory) -> dict[tuple[str, int], Steps]:
    """Returns the offsets up to which logs were on the disk, by topic id and node."""
    return {
        (each.topic_id, each.node): Steps(
            np.maximum.accumulate(np.array([point.time_us for point in each.points], np.float64)),
            np.array([point.value for point in each.points], np.float64),
        )
        for each in partition.flushed
        if each.points
    }


def curve(points: Sequence[Point], *, start: float, end_us: int) -> Curve:
    """Returns the curve through points, from where it starts to the end of the run.

    Args:
        points: with times that do not fall.
        start: its value before the first point.
        end_us: the curve's end.
    """
    times, values = [float(min(points[0].time_us, end_us)) - 1.0], [start]
    hold_us = max((points[-1].time_us - points[0].time_us) * _HOLD, 1.0)
    for point in points:
        if point.time_us > end_us:
            break
        if point.value > values[-1] and point.time_us - times[-1] > hold_us:
            times.append(point.time_us - 1.0)
            values.append(values[-1])
        times.append(max(float(point.time_us), times[-1] + 1.0))
        values.append(float(point.value))
    if times[-1] < end_us:
        times.append(float(end_us))
        values.append(values[-1])
    return Curve(np.array(times), np.array(values))


def held_curves(partition: PartitionStory, *, end_us: int) -> dict[tuple[str, int], dict[int, Curve]]:
    """Returns the records held of each epoch, by topic id and epoch, and by node."""
    found: dict[tuple[str, int], dict[int, Curve]] = {}
    for held in partition.held:
        drawn = held_curve(held, end_us=end_us)
        if drawn is not None:
            found.setdefault((held.topic_id, held.leader_epoch), {})[held.node] = drawn
    return found


def held_curve(held: HeldRecords, *, end_us: int) -> Curve | None:
    """Returns the end of an epoch's records in a log over time; ``None`` if it held them only after the run's end."""
    if not held.ends or held.ends[0].time_us > end_us:
        return None
    return curve(held.ends, start=held.first, end_us=end_us)
