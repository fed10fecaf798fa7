"""Maps times and records to places in a picture.

Time runs evenly between two happenings, and is stretched where many happen at once: a stretch is as wide as the square
root of its duration. Height is not the offset but the record, in order of leader epoch and offset: a record keeps its
place when another one takes its offset. An epoch is as high as the square root of its number of offsets.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laststand.emulator.verification.story.run import PartitionStory

US_PER_S: Final = 1_000_000
_NEAREST: Final = 1 / 400
"""Happenings that are nearer to each other than this part of the run are one."""

_TICK_GAP: Final = 34.0
_STEPS_S: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_TICKS_MAX: Final = 14

Floats = NDArray[np.float64]


class TimeAxis:
    """Horizontal places of times.

    Attributes:
        left: place of time 0; ``right``: place of the run's end.
        end_us: when that is.
    """

    def __init__(self, happenings_us: Iterable[int], *, end_us: int, left: float, right: float) -> None:
        self.left, self.right, self.end_us = left, right, max(end_us, 1)
        knots = [0]
        for time_us in sorted(happenings_us):
            if time_us - knots[-1] >= self.end_us * _NEAREST and self.end_us - time_us >= self.end_us * _NEAREST:
                knots.append(time_us)
        knots.append(self.end_us)
        widths = [sqrt(after - before) for before, after in pairwise(knots)]
        self._knots = np.array(knots, np.float64)
        self._places = left + np.cumsum([0.0, *widths]) * (right - left) / sum(widths)

    @property
    def knots(self) -> list[tuple[int, float]]:
        """Times between which time runs evenly, and their places."""
        return [(int(time_us), float(x)) for time_us, x in zip(self._knots, self._places, strict=True)]

    def x(self, time_us: float) -> float:
        """Returns the place of a time; for a time outside the run, the place of its beginning or end."""
        return float(np.interp(time_us, self._knots, self._places))

    def xs(self, times_us: Floats) -> Floats:
        """Returns the places of times."""
        return np.asarray(np.interp(times_us, self._knots, self._places), np.float64)

    def times(self, places: Floats) -> Floats:
        """Returns the times at places."""
        return np.asarray(np.interp(places, self._places, self._knots), np.float64)

    def ticks(self) -> list[tuple[float, str]]:
        """Returns round seconds with their places, as many as have room."""
        end_s = self.end_us / US_PER_S
        step = next((step for step in _STEPS_S if end_s / step <= _TICKS_MAX), _STEPS_S[-1])
        ticks: list[tuple[float, str]] = []
        for number in range(int(end_s / step) + 1):
            x = self.x(number * step * US_PER_S)
            if not ticks or x - ticks[-1][0] >= _TICK_GAP:
                ticks.append((x, f"{number * step:g} s"))
        return ticks


class EpochSpan(NamedTuple):
    """The offsets that an epoch ever used, and their place in the picture: parts of the height, from below."""

    topic_id: str
    leader_epoch: int
    first: int
    end: int
    low: float
    high: float

    @property
    def key(self) -> tuple[str, int]:
        """Topic id and epoch."""
        return self.topic_id, self.leader_epoch


class RecordAxis:
    """Vertical places of records, as parts of the height of a lane."""

    def __init__(self, partition: PartitionStory) -> None:
        topics = list(dict.fromkeys(change.topic_id for change in partition.changes))
        bounds: dict[tuple[int, int], tuple[int, int]] = {}
        for held in partition.held:
            if held.topic_id not in topics:
                topics.append(held.topic_id)
            key = (topics.index(held.topic_id), held.leader_epoch)
            first, end = bounds.get(key, (held.first, held.first))
            bounds[key] = (min(first, held.first), max(end, *(point.value for point in held.ends)))
        heights = {key: sqrt(max(end - first, 1)) for key, (first, end) in bounds.items()}
        total, low = sum(heights.values()) or 1.0, 0.0
        spans = []
        for key in sorted(bounds):
            high = low + heights[key] / total
            spans.append(EpochSpan(topics[key[0]], key[1], *bounds[key], low, high))
            low = high
        self.spans: tuple[EpochSpan, ...] = tuple(spans)
        self._by_key = {span.key: span for span in spans}

    def span(self, topic_id: str, leader_epoch: int) -> EpochSpan | None:
        """Returns the place of an epoch; ``None`` if no log ever held records of it."""
        return self._by_key.get((topic_id, leader_epoch))

    def heights(self, span: EpochSpan, ends: Floats | Sequence[float]) -> Floats:
        """Returns the places of offsets of an epoch."""
        part = (np.asarray(ends, np.float64) - span.first) / max(span.end - span.first, 1)
        return np.asarray(span.low + np.clip(part, 0.0, 1.0) * (span.high - span.low), np.float64)

    def height(self, span: EpochSpan, offset: float) -> float:
        """Returns the place of one offset of an epoch."""
        return float(self.heights(span, [offset])[0])
