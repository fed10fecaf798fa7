"""Shapes that the lanes of a picture share."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from laststand.emulator.report.axes import Floats, RecordAxis, TimeAxis
from laststand.emulator.report.curves import Curve, Steps
from laststand.emulator.report.gone import GoneRecords
from laststand.emulator.verification.story.run import PartitionStory, RunStory, StateChange


class Box(NamedTuple):
    """A lane's place."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top

    def y(self, part: float) -> float:
        """Returns the place of a part of its height, from below."""
        return self.bottom - part * (self.bottom - self.top)

    def ys(self, parts: Floats) -> Floats:
        """Returns the places of parts of its height."""
        return np.asarray(self.bottom - parts * (self.bottom - self.top), np.float64)


@dataclass(frozen=True, kw_only=True)
class PartitionPicture:
    """The data of a partition's picture.

    Attributes:
        story: of the run; ``partition``: of the partition.
        brokers: that ever were replicas.
        changes: committed states before the end.
        time, records: the axes.
        held: the records held of each epoch, by topic id and epoch, and by node.
        flushed: the offset up to which logs were on disk, by topic id and node, as far as it is known.
        gone: the records that no log has any more.
        final_left, final_right: edges of the final logs.
    """

    story: RunStory
    partition: PartitionStory
    brokers: tuple[int, ...]
    changes: tuple[StateChange, ...]
    time: TimeAxis
    records: RecordAxis
    held: Mapping[tuple[str, int], Mapping[int, Curve]]
    flushed: Mapping[tuple[str, int], Steps]
    gone: tuple[GoneRecords, ...]
    final_left: float
    final_right: float

    @cached_property
    def promise(self) -> tuple[Floats, Floats]:
        """Times, and at each time the height of the highest record acknowledged with acks=all so far."""
        points = [(np.empty(0), np.empty(0))]
        for promised in self.partition.promised:
            span = self.records.span(promised.topic_id, promised.leader_epoch)
            if span is not None:
                times, ends = np.array([(point.time_us, point.value) for point in promised.ends], np.float64).T
                points.append((times, self.records.heights(span, ends)))
        times, heights = (np.concatenate(each) for each in zip(*points, strict=True))
        order = np.lexsort((heights, times))
        order = order[times[order] <= self.story.end_us]
        return times[order], np.maximum.accumulate(heights[order])

    def promised_end(self, key: tuple[str, int]) -> int:
        """Returns the offset up to which an epoch was acknowledged with acks=all in the end."""
        return self._promised_ends.get(key, 0)

    def final_ends(self, key: tuple[str, int]) -> Mapping[int, int]:
        """Returns the ends of final logs in an epoch, by node."""
        return self._final_ends.get(key, {})

    @cached_property
    def _promised_ends(self) -> Mapping[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}
        for each in self.partition.promised:
            key = (each.topic_id, each.leader_epoch)
            found[key] = max(found.get(key, 0), each.ends[-1].value)
        return found

    @cached_property
    def _final_ends(self) -> Mapping[tuple[str, int], Mapping[int, int]]:
        found: dict[tuple[str, int], dict[int, int]] = {}
        for each in self.partition.final:
            found.setdefault((each.topic_id, each.leader_epoch), {})[each.node] = each.last + 1
        return found
