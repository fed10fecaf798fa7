"""Finds the moment when the fewest replicas had every record acknowledged with acks=all, and names them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from laststand.emulator.report.axes import Floats
from laststand.emulator.verification.story.run import PartitionStory, Point, RunStory
from laststand.emulator.verification.story.thinning import POINTS_MAX

_THINNED: Final = 1.1 / (POINTS_MAX // 2 - 1)
"""Most difference between a thinned curve and the whole one, as a part of the whole curve's rise."""


class WorstMoment(NamedTuple):
    """The moment when the fewest logs had all promised records, and the brokers of these logs."""

    time_us: int
    holders: tuple[int, ...]


def fewest_copies(partition: PartitionStory, story: RunStory) -> WorstMoment | None:
    """Returns the first such moment; ``None`` if nothing was acknowledged with acks=all."""
    promised = [each for each in partition.promised if each.ends[0].time_us <= story.end_us]
    if not promised:
        return None
    begin_us = min(each.ends[0].time_us for each in promised)
    times = {point.time_us for each in partition.held for point in each.ends}
    grid = np.array(sorted({begin_us, *(time for time in times if begin_us <= time <= story.end_us)}), np.float64)
    nodes = sorted({each.node for each in partition.held})
    held = {(each.node, each.topic_id, each.leader_epoch): each for each in partition.held}
    has_all = {node: np.ones(len(grid), np.bool_) for node in nodes}
    for each in promised:
        asked = _reached(each.ends, grid, before=0)
        for node in nodes:
            own = held.get((node, each.topic_id, each.leader_epoch))
            if own is None:
                has_all[node] &= asked == 0
                continue
            rise = max(point.value for point in own.ends) - own.first
            slack = rise * _THINNED if len(own.ends) >= POINTS_MAX // 2 else 0.0
            has_all[node] &= _reached(own.ends, grid, before=own.first) + slack >= asked
    place = int(np.argmin(sum(found.astype(np.int64) for found in has_all.values())))
    return WorstMoment(int(grid[place]), tuple(node for node in nodes if has_all[node][place]))


def _reached(points: Sequence[Point], grid: Floats, *, before: int) -> Floats:
    """Returns the values that a curve had reached at times, by its last point."""
    places = np.searchsorted([point.time_us for point in points], grid, side="right")
    return np.array([before, *(point.value for point in points)], np.float64)[places]
