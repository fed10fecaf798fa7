"""Replays each node's own events to find what its log must hold.

All events that move the end of a log count, in the order of its node's file, from the last deletion on. After a process
was killed, the log ends where the next process found its end. A power loss comes after all events of its process.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final, assert_never

import msgspec
import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.tables.events import EventRows
from laststand.emulator.verification.tables.final_logs import FinalBatch
from laststand.emulator.verification.tables.timeline import CollectedEvent

_LIMIT: Final = 2**62
"""Above every offset, and after every event: a power loss comes after all events of its process."""


class BatchFields(msgspec.Struct, frozen=True):
    """The fields of a batch on which two accounts must agree."""

    topic_id: str | None
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    record_count: int

    @classmethod
    def of(cls, batch: events.BatchAppended | FinalBatch, topic_id: str | None) -> "BatchFields":
        """Returns the fields of a batch in a log, with the topic id that the log has at the end."""
        return cls(topic_id, *(getattr(batch, name) for name in CONTENT))


CONTENT: Final = BatchFields.__struct_fields__[1:]
"""The fields of a batch without its topic."""


class ReplayedLog(msgspec.Struct, frozen=True, kw_only=True):
    """The log of a partition at the end, by one node's events.

    Attributes:
        topic_id: the topic that its broker last used it for.
        expected: the batches that it must hold, in the order of their appends.
        last_incarnation: of the last process with an event about the log; ``None`` if there is none.
        seen_up_to: the least log end offset that killed processes recorded last: only from there on may the log have
            batches without events.
        deleted_below: the offset below which records may have been deleted on purpose, in any topic of the log.
    """

    topic_id: str | None
    expected: EventRows[events.BatchAppended]
    last_incarnation: int | None
    seen_up_to: int
    deleted_below: int


_StepEvent = (
    events.LogTruncated
    | events.LogDeleted
    | events.LogOpened
    | events.BecameFollower
    | events.BecameLeader
    | events.PowerLost
)
"""Events other than appends that move the end of a log, or name its topic."""

_Step = tuple[int, int, _StepEvent]
"""Incarnation, sequence and event."""


def replay_logs(facts: PartitionFacts) -> Mapping[int, ReplayedLog]:
    """Returns, by node, the log that results from its events; an empty one if no event records any."""
    steps: dict[int, list[_Step]] = {}
    collected: list[CollectedEvent[_StepEvent]] = [
        *facts.events.of(events.LogTruncated),
        *facts.events.of(events.LogDeleted),
        *facts.events.of(events.LogOpened),
        *facts.events.of(events.BecameFollower),
        *facts.events.of(events.BecameLeader),
    ]
    for each in collected:
        steps.setdefault(each.node, []).append((each.incarnation, each.sequence, each.event))
    for lost in facts.events.of(events.PowerLost):
        steps.setdefault(lost.event.lost_node, []).append((lost.event.lost_incarnation, _LIMIT, lost.event))
    nodes = {*steps, *np.unique(facts.events.rows(events.BatchAppended)["node"]).tolist()}
    nodes.update(np.unique(facts.final_batches["node"]).tolist())
    return {node: _Replay(facts, node).of(steps.get(node, [])) for node in nodes}


class _Replay:
    """The replay of the events about one node's log, from the last event backwards."""

    def __init__(self, facts: PartitionFacts, node: int) -> None:
        self._facts = facts
        self._node = node
        batches = facts.events.rows(events.BatchAppended)
        self._appended = batches.only(batches.has("node", node))
        self._left = len(self._appended)
        self._is_expected = np.zeros(self._left, np.bool_)
        self._cut = _LIMIT
        self._topic_ids: set[str] = set()
        self._ends: dict[int, int] = {}

    def of(self, steps: list[_Step]) -> ReplayedLog:
        """Returns the log after all appends and these other steps."""
        facts = self._facts
        steps.sort(key=itemgetter(0, 1), reverse=True)
        last_incarnation, topic_id = self._last(steps)
        for incarnation, sequence, event in steps:
            self._append_from(self._place(incarnation, sequence))
            end = _end_after(event)
            if sequence < _LIMIT:
                self._ends.setdefault(incarnation, end)
            if isinstance(event, events.LogDeleted):
                break
            self._topic_ids.add(event.topic_id)
            was_killed = (self._node, incarnation - 1) in facts.cluster.killed
            if isinstance(event, events.LogTruncated | events.PowerLost) or (
                isinstance(event, events.LogOpened) and was_killed
            ):
                self._cut = min(self._cut, end)
        else:
            self._append_from(0)
        killed = [end for incarnation, end in self._ends.items() if (self._node, incarnation) in facts.cluster.killed]
        return ReplayedLog(
            topic_id=topic_id,
            expected=self._appended.only(self._is_expected),
            last_incarnation=last_incarnation,
            seen_up_to=min(killed, default=_LIMIT),
            deleted_below=max((facts.deleted_below.get(used_for, 0) for used_for in self._topic_ids), default=0),
        )

    def _last(self, steps: Sequence[_Step]) -> tuple[int | None, str | None]:
        """Returns the process with the last event about the log, and the topic id of that event."""
        last = [(step[0], step[1], step[2].topic_id) for step in steps if step[1] < _LIMIT][:1]
        last += [(a.incarnation, a.sequence, a.event.topic_id) for a in self._appended.rows(slice(-1, None))]
        if last:
            incarnation, _, topic_id = max(last)
            return incarnation, topic_id
        return None, steps[0][2].topic_id if steps else None

    def _place(self, incarnation: int, sequence: int) -> int:
        """Returns the number of batches that had been appended before a line."""
        begin, end = (int(np.searchsorted(self._appended["incarnation"], incarnation, s)) for s in ("left", "right"))
        return begin + int(np.searchsorted(self._appended["sequence"][begin:end], sequence))

    def _append_from(self, place: int) -> None:
        """Adds the appends from an index on that were not added yet, except those that a later step removed."""
        taken = slice(place, self._left)
        self._left = min(place, self._left)
        last_offsets = self._appended["last_offset"][taken]
        self._is_expected[taken] = last_offsets < self._cut
        incarnations = self._appended["incarnation"][taken]
        for incarnation in np.unique(incarnations).tolist():
            last = int(np.searchsorted(incarnations, incarnation, "right")) - 1
            self._ends.setdefault(incarnation, int(last_offsets[last]) + 1)
        words = self._appended.words("topic_id")
        self._topic_ids.update(words[number] for number in np.unique(self._appended["topic_id"][taken]))


def _end_after(
    event: events.LogTruncated
    | events.LogDeleted
    | events.LogOpened
    | events.BecameFollower
    | events.BecameLeader
    | events.PowerLost,
) -> int:
    match event:
        case events.LogTruncated() | events.PowerLost():
            return event.new_end_offset
        case events.LogDeleted():
            return 0
        case events.LogOpened() | events.BecameFollower():
            return event.log_end_offset
        case events.BecameLeader():
            return event.epoch_start_offset
        case _:
            assert_never(event)
