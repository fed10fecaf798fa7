"""A partition's logs and acknowledgements during a run, as curves that grow.

The oracle derives the same for a run that has ended, from all its evidence
(``laststand.emulator.verification.story.partition``). Here acknowledgements are those that brokers record, because the
clients' history comes later.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.live.curves import HeldCurve, RisingCurve
from laststand.emulator.verification.facts.copies import Taking, end_after
from laststand.emulator.verification.facts.partition import ACKS_ALL
from laststand.emulator.verification.story.cluster import time_us
from laststand.emulator.verification.story.held_logs import cut_by
from laststand.emulator.verification.story.partition import PAUSE_US
from laststand.emulator.verification.story.run import (
    Acknowledged,
    Cut,
    FinalRecords,
    Flushed,
    HeldRecords,
    Point,
    Promised,
)
from laststand.emulator.verification.tables.columns import NONE
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.timeline import EventPlace

_PAUSES_MAX: Final = 200

_LogKey = tuple[int, str, int]
"""Node, topic id and leader epoch."""


class _Cut(NamedTuple):
    node: int
    time_ns: int
    event: Taking
    old_end: int
    new_end: int
    place: EventPlace


class PartitionRecord:
    """The logs and acknowledgements of one partition."""

    def __init__(self) -> None:
        self._held: dict[_LogKey, HeldCurve] = {}
        self._cuts: list[_Cut] = []
        self._flushed: defaultdict[tuple[int, str], HeldCurve] = defaultdict(lambda: HeldCurve(0))
        self._promised: defaultdict[tuple[str, int], RisingCurve] = defaultdict(RisingCurve)
        self._acked: defaultdict[int, RisingCurve] = defaultdict(RisingCurve)
        self._pauses: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._acked_at: dict[int, int] = {}

    def append(self, node: int, topic_id: str, epochs: Ints, times: Ints, bases: Ints, ends: Ints) -> None:
        """Records batches that a node appended, in its order."""
        for epoch in np.unique(epochs).tolist():
            own = epochs == epoch
            key = (node, topic_id, epoch)
            if key not in self._held:
                self._held[key] = HeldCurve(int(bases[own].min()))
            self._held[key].extend(times[own], ends[own])

    def cut(self, node: int, time_ns: int, event: Taking, place: EventPlace) -> None:
        """Records where a node's log ended at a time, from an event that contains the end."""
        self._note_flush_state(node, time_ns, event)
        own = [held for key, held in self._held.items() if key[:2] == (node, event.topic_id)]
        old_end, new_end = max((held.end for held in own if held.end > held.first), default=0), end_after(event)
        if new_end < old_end:
            for held in own:
                held.fall(time_ns, new_end)
            self._cuts.append(_Cut(node, time_ns, event, old_end, new_end, place))

    def flush(self, node: int, time_ns: int, topic_id: str, recovery_point: int) -> None:
        """Records that a node's log is flushed up to an offset, from a time on."""
        self._flushed[node, topic_id].extend(np.array([time_ns]), np.array([recovery_point]))

    def stop(self, node: int, time_ns: int) -> None:
        """Records that a node's process stopped in order, and so flushed its logs."""
        for (owner, topic_id), _ in list(self._flushed.items()):
            ends = [
                held.end for key, held in self._held.items() if key[:2] == (node, topic_id) and held.end > held.first
            ]
            if owner == node and ends:
                self.flush(node, time_ns, topic_id, max(ends))

    def _note_flush_state(self, node: int, time_ns: int, event: Taking) -> None:
        if isinstance(event, events.LogOpened):
            self._flushed[node, event.topic_id].fall(time_ns, event.recovery_point)
            self.flush(node, time_ns, event.topic_id, event.recovery_point)
        elif (node, event.topic_id) in self._flushed:
            self._flushed[node, event.topic_id].fall(time_ns, end_after(event))
            if isinstance(event, events.PowerLost):
                self.flush(node, time_ns, event.topic_id, end_after(event))

    def acknowledge(self, topic_id: str, acks: Ints, epochs: Ints, times: Ints, ends: Ints, counts: Ints) -> None:
        """Records responses that acknowledged batches, in the order of one broker."""
        for kind in np.unique(acks).tolist():
            own = acks == kind
            self._note_pauses(kind, times[own])
            curve = self._acked[kind]
            curve.extend(times[own], np.cumsum(counts[own]) + (curve.last if len(curve) else 0))
        of_all = (acks == ACKS_ALL) & (epochs != NONE)
        for epoch in np.unique(epochs[of_all]).tolist():
            own = of_all & (epochs == epoch)
            self._promised[topic_id, epoch].extend(times[own], ends[own])

    def _note_pauses(self, acks: int, times: Ints) -> None:
        all_times = np.append(self._acked_at.get(acks, times[0]), times)
        gaps = np.diff(all_times)
        for place in np.flatnonzero(gaps > PAUSE_US * 1000).tolist():
            self._pauses[acks].append((int(all_times[place]), int(gaps[place])))
        del self._pauses[acks][:-_PAUSES_MAX]
        self._acked_at[acks] = int(all_times.max())

    # --- As a story has it ----------------------------------------------------------------------------------------

    def held(self, origin_ns: int) -> Iterator[HeldRecords]:
        """Yields the records that logs held of each epoch, by node and epoch."""
        for (node, topic_id, epoch), held in sorted(self._held.items()):
            ends = held.points(origin_ns)
            yield HeldRecords(node=node, topic_id=topic_id, leader_epoch=epoch, first=held.first, ends=ends)

    def holds_now(self) -> Iterator[FinalRecords]:
        """Yields the records that logs hold now of each epoch, by node and epoch."""
        for (node, topic_id, epoch), held in sorted(self._held.items()):
            if held.end > held.first:
                last = held.end - 1
                yield FinalRecords(node=node, topic_id=topic_id, leader_epoch=epoch, first=held.first, last=last)

    def cuts(self, origin_ns: int) -> Iterator[Cut]:
        """Yields the records that logs lost."""
        for cut in self._cuts:
            yield cut_by(
                cut.event,
                node=cut.node,
                time_us=time_us(cut.time_ns, origin_ns),
                old_end=cut.old_end,
                new_end=cut.new_end,
                place=cut.place,
            )

    def flushed(self, origin_ns: int) -> Iterator[Flushed]:
        """Yields the offset up to which each log is on the disk, by node."""
        for (node, topic_id), curve in sorted(self._flushed.items()):
            yield Flushed(node=node, topic_id=topic_id, points=curve.points(origin_ns))

    def promised(self, origin_ns: int) -> Iterator[Promised]:
        """Yields the offset up to which each epoch was acknowledged with acks=all."""
        for (topic_id, epoch), curve in sorted(self._promised.items()):
            yield Promised(topic_id=topic_id, leader_epoch=epoch, ends=tuple(curve.points(origin_ns)))

    def acknowledged(self, origin_ns: int) -> Iterator[Acknowledged]:
        """Yields the number of records acknowledged, by acks."""
        for acks, curve in sorted(self._acked.items()):
            pauses = tuple(Point(time_us(begin, origin_ns), gap // 1000) for begin, gap in self._pauses[acks])
            yield Acknowledged(acks=acks, records=tuple(curve.points(origin_ns)), pauses=pauses)

    @property
    def acked_records(self) -> int:
        """The number of records acknowledged so far, with any acks."""
        return sum(curve.last for curve in self._acked.values() if len(curve))
