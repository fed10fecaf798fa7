"""The content of each replica's log over time, by leader epoch, and its losses: for ``story.json``.

A log's end rises with its appends, and falls where it was cut. One node's events are ordered by its own sequence.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.copies import Taking, end_after, fate_of, takings_of
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.story.cluster import time_us
from laststand.emulator.verification.story.run import Cut, FinalRecords, HeldRecords, Point
from laststand.emulator.verification.story.thinning import thinned
from laststand.emulator.verification.tables.events import EventRows
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.timeline import CollectedEvent, EventPlace


class _Fall(NamedTuple):
    """A cut of one log: the number of its node's appends before, the time, and the log end offset after it."""

    after: int
    time_ns: int
    topic_id: str
    end: int
    event: CollectedEvent[Taking]


class _Log(NamedTuple):
    """The appends of one node, in its order, and the cuts of its log."""

    node: int
    rows: EventRows[events.BatchAppended]
    falls: Sequence[_Fall]


def held_and_cut(facts: PartitionFacts, origin_ns: int) -> tuple[tuple[HeldRecords, ...], tuple[Cut, ...]]:
    """Returns the records that logs held, by node and epoch, and those that they lost, by node."""
    held: list[HeldRecords] = []
    cuts: list[Cut] = []
    for log in _logs(facts):
        held.extend(_held(log, origin_ns))
        cuts.extend(_cuts(log, facts, origin_ns))
    return tuple(held), tuple(cuts)


def final_records(facts: PartitionFacts) -> Iterator[FinalRecords]:
    """Yields the records in final logs, by node and epoch."""
    final = facts.final_batches
    found = []
    for places in groups_of(final["node"], final["topic_id"], final["leader_epoch"]):
        [first] = final.rows(places[:1])
        found.append(
            FinalRecords(
                node=first.node,
                topic_id=first.topic_id or "",
                leader_epoch=first.leader_epoch,
                first=int(final["base_offset"][places].min()),
                last=int(final["last_offset"][places].max()),
            )
        )
    yield from sorted(found, key=lambda each: (each.node, each.topic_id, each.leader_epoch))


def _logs(facts: PartitionFacts) -> Iterator[_Log]:
    appended = facts.events.rows(events.BatchAppended)
    takings = takings_of(facts)
    ended: dict[tuple[int, int], int] = {
        (each.event.ended_node, each.event.ended_incarnation): each.time_ns
        for each in facts.cluster.events.of(events.IncarnationEnded)
    }
    for places in groups_of(appended["node"]):
        rows = appended.only(places)
        node = int(rows["node"][0])
        incarnations, sequences = rows["incarnation"], rows["sequence"]
        falls = []
        for (incarnation, sequence), taking in takings.get(node, ()):
            is_before = (incarnations < incarnation) | ((incarnations == incarnation) & (sequences < sequence))
            time_ns = taking.time_ns
            if isinstance(
                taking.event, events.PowerLost
            ):  # noted once the files were read; the process had ended before
                time_ns = min(time_ns, ended.get((node, incarnation), time_ns))
            falls.append(_Fall(int(is_before.sum()), time_ns, taking.event.topic_id, end_after(taking.event), taking))
        yield _Log(node, rows, falls)


def _held(log: _Log, origin_ns: int) -> list[HeldRecords]:
    rows = log.rows
    held = []
    for places in groups_of(rows["topic_id"], rows["leader_epoch"]):
        [first] = rows.rows(places[:1])
        topic_id = first.event.topic_id
        start = int(rows["base_offset"][places].min())
        falls = [fall for fall in log.falls if fall.topic_id == topic_id]
        held.append(
            HeldRecords(
                node=log.node,
                topic_id=topic_id,
                leader_epoch=first.event.leader_epoch,
                first=start,
                ends=tuple(_ends(rows, places, falls, start=start, origin_ns=origin_ns)),
            )
        )
    # The order of groups depends on how columns number texts, which is different if a run is read in slices.
    return sorted(held, key=lambda each: (each.topic_id, each.leader_epoch))


def _ends(
    rows: EventRows[events.BatchAppended], places: Ints, falls: Sequence[_Fall], *, start: int, origin_ns: int
) -> Iterator[Point]:
    """Yields the end of an epoch's records in a log over time: it rises with appends, and falls at cuts."""
    times, ends = rows["time_ns"][places], rows["last_offset"][places] + 1
    begin, end_before = 0, start
    for fall in falls:
        until = int(np.searchsorted(places, fall.after))
        piece = _rising(times[begin:until], ends[begin:until], origin_ns)
        yield from piece
        end_before = piece[-1].value if piece else end_before
        begin = until
        end = max(start, min(end_before, fall.end))
        if end < end_before:
            at = time_us(fall.time_ns, origin_ns)
            yield Point(at, end_before)
            yield Point(at, end)
            end_before = end
    yield from _rising(times[begin:], ends[begin:], origin_ns)


def _rising(times: Ints, ends: Ints, origin_ns: int) -> list[Point]:
    if not len(times):
        return []
    times, ends = np.maximum.accumulate(times), np.maximum.accumulate(ends)
    kept = thinned(times, ends)
    return [
        Point(time_us(time_ns, origin_ns), end)
        for time_ns, end in zip(times[kept].tolist(), ends[kept].tolist(), strict=True)
    ]


def _cuts(log: _Log, facts: PartitionFacts, origin_ns: int) -> Iterator[Cut]:
    ends = log.rows["last_offset"] + 1
    old_end, seen = 0, 0
    for fall in log.falls:
        if fall.after > seen:
            old_end, seen = int(ends[fall.after - 1]), fall.after
        if fall.end < old_end:
            yield cut_by(
                fall.event.event,
                node=log.node,
                time_us=time_us(fall.time_ns, origin_ns),
                old_end=old_end,
                new_end=fall.end,
                place=facts.cluster.place(fall.event),
            )
        old_end = min(old_end, fall.end)


def cut_by(event: Taking, *, node: int, time_us: int, old_end: int, new_end: int, place: EventPlace) -> Cut:
    """Returns the cut of a log by an event.

    Args:
        event: the truncation or other loss.
        node: the replica.
        time_us: when the log was truncated.
        old_end: the log end offset before.
        new_end: the log end offset after it.
        place: of the event.
    """
    truncated = event if isinstance(event, events.LogTruncated) else None
    return Cut(
        node=node,
        time_us=time_us,
        topic_id=event.topic_id,
        became=fate_of(event),
        old_end=old_end,
        new_end=new_end,
        leader=None if truncated is None else truncated.leader,
        leader_epoch=None if truncated is None else truncated.leader_epoch,
        reason=None if truncated is None else truncated.reason.replace("_", " "),
        event=place,
    )
