"""Yields the offset up to which each replica's log is known to be on the disk, over time: for ``story.json``.

The event of an opened log has its recovery point, a flush is an event of its own, and a power loss leaves the flushed
part. If the process before stopped in order, the log had been flushed up to there when it ended. The final log of a
process that stopped in order is flushed, too.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.copies import Taking, end_after, takings_of
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.story.cluster import time_us
from laststand.emulator.verification.story.run import Flushed, Point
from laststand.emulator.verification.story.thinning import thinned
from laststand.emulator.verification.tables.timeline import CollectedEvent

_Process = tuple[int, int]
"""Node and incarnation."""

_FlushOrCopy = CollectedEvent[events.LogFlushed] | CollectedEvent[Taking]


def flushed_logs(facts: PartitionFacts, origin_ns: int) -> Iterator[Flushed]:
    """Yields the flushed offsets over time, by node and topic id, of nodes that recorded opened logs."""
    ended: dict[_Process, CollectedEvent[events.IncarnationEnded]] = {
        (each.event.ended_node, each.event.ended_incarnation): each
        for each in facts.cluster.events.of(events.IncarnationEnded)
    }
    for node, own_events in _flushes_and_copies_by_node(facts).items():
        if not any(isinstance(each.event, events.LogOpened) for each in own_events):
            continue
        for topic_id in dict.fromkeys(each.event.topic_id for each in own_events):
            points: list[Point] = []
            for each in own_events:
                if each.event.topic_id == topic_id:
                    before = ended.get((node, each.incarnation - 1))
                    now = points[-1].value if points else 0
                    points.append(Point(time_us(_since_ns(each, before, ended), origin_ns), _point_after(each, now)))
            last = ended.get((node, facts.cluster.last_incarnation.get(node, 0)))
            end = _final_end(facts, node, topic_id)
            if last is not None and last.event.end is events.IncarnationEnd.STOPPED and end is not None:
                points.append(Point(time_us(last.time_ns, origin_ns), end))
            yield Flushed(node=node, topic_id=topic_id, points=tuple(thinned_steps(points)))


def _final_end(facts: PartitionFacts, node: int, topic_id: str) -> int | None:
    final = facts.final_batches
    own = np.flatnonzero(final.has("node", node) & final.has("topic_id", topic_id))
    return int(final["last_offset"][own].max()) + 1 if len(own) else None


def _flushes_and_copies_by_node(facts: PartitionFacts) -> dict[int, list[_FlushOrCopy]]:
    """Returns the events about each node's log, in the order of its own events."""
    placed: dict[int, list[tuple[tuple[int, float], _FlushOrCopy]]] = {
        node: [(place, taking) for place, taking in takings] for node, takings in takings_of(facts).items()
    }
    for each in facts.events.of(events.LogFlushed):
        placed.setdefault(each.node, []).append(((each.incarnation, each.sequence), each))
    return {
        node: [own_events for _, own_events in sorted(own, key=lambda found: found[0])]
        for node, own in sorted(placed.items())
    }


def _since_ns(
    collected: _FlushOrCopy,
    before: CollectedEvent[events.IncarnationEnded] | None,
    ended: dict[_Process, CollectedEvent[events.IncarnationEnded]],
) -> int:
    """Returns the time since which the log was flushed up to the offset of an event."""
    match collected.event:
        case events.LogOpened() if before is not None and before.event.end is events.IncarnationEnd.STOPPED:
            return before.time_ns
        case events.LogFlushed() | events.LogOpened() | events.LogDeleted() | events.LogTruncated():
            return collected.time_ns
        case _:  # a power loss is noted once the files were read; the process had ended before
            end = ended.get((collected.event.lost_node, collected.event.lost_incarnation))
            return collected.time_ns if end is None else min(collected.time_ns, end.time_ns)


def _point_after(collected: _FlushOrCopy, now: int) -> int:
    match collected.event:
        case events.LogFlushed() | events.LogOpened():
            return collected.event.recovery_point
        case events.LogDeleted() | events.LogTruncated():
            return min(now, end_after(collected.event))
        case _:
            return end_after(collected.event)


def thinned_steps(points: Sequence[Point]) -> Iterator[Point]:
    """Yields the points that a curve of steps needs to look the same; all its falls are kept."""
    begin = 0
    for end in range(1, len(points) + 1):
        if end == len(points) or points[end].value < points[end - 1].value:
            piece = points[begin:end]
            times = np.maximum.accumulate([point.time_us for point in piece])
            for place in thinned(times, np.array([point.value for point in piece])).tolist():
                yield piece[place]
            begin = end
