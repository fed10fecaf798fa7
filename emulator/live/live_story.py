"""The story of a run that is under way: the data of pictures, rebuilt from the present content of the event files.

Frequent events become curves (``partition_record``) as they arrive; rare events are kept if a story shows them. So a
look costs only the new events, and memory does not grow with the number of records.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from laststand.emulator.core import events as e
from laststand.emulator.live.partition_record import PartitionRecord
from laststand.emulator.live.tail import EventTail, NewEvents
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.partition_evidence import NO_ERROR
from laststand.emulator.verification.facts.run import RunFacts
from laststand.emulator.verification.story.cluster import run_story, time_us
from laststand.emulator.verification.story.partition import CHANGES_MAX, committed_changes, leaderships_of
from laststand.emulator.verification.story.run import PartitionStory, RunStory
from laststand.emulator.verification.tables.columns import NONE, Columns
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.timeline import CollectedEvent, EventPlace

_KEPT: Final = (
    e.NodeStarted,
    e.IncarnationStarted,
    e.IncarnationEnded,
    e.BrokerStateChanged,
    e.FaultInjected,
    e.FaultHealed,
    e.StepReached,
    e.BrokerRegistered,
    e.PartitionChanged,
    e.BecameLeader,
    e.BecameFollower,
)
"""Rare events that a story shows."""

_OF_OWN_LOG: Final = (e.LogTruncated, e.LogDeleted, e.LogOpened)

_Process = tuple[int, int]
"""Node and incarnation."""


class LiveStory:
    """Follows one run.

    Args:
        directory: of the run.
    """

    def __init__(self, directory: Path) -> None:
        self._tail = EventTail(directory / "events")
        self._records: defaultdict[tuple[str, int], PartitionRecord] = defaultdict(PartitionRecord)
        self._kept: list[CollectedEvent[e.AnyEvent]] = []
        self._files: dict[_Process, str] = {}
        self._ended_ns: dict[_Process, int] = {}
        self._seen: set[_Process] = set()

    def read(self, *, now_ns: int) -> RunStory:
        """Reads the new events, and returns the story so far.

        Args:
            now_ns: the time of the machine's clock, at which the story ends for now.
        """
        self._add_events(list(self._tail.read()))
        facts = RunFacts()
        for each in self._kept:
            facts.add_event(each)
        facts.cluster.event_files.update(self._files)
        facts.order_events()
        origin_ns = facts.cluster.origin_ns
        partitions = [self._partition(each, origin_ns) for each in facts.partitions()]
        story = run_story(facts.cluster, partitions)
        return msgspec.structs.replace(story, end_us=max(time_us(now_ns, origin_ns), 0))

    @property
    def acked_records(self) -> int:
        """The number of records acknowledged so far."""
        return sum(record.acked_records for record in self._records.values())

    def _partition(self, facts: PartitionFacts, origin_ns: int) -> PartitionStory:
        record = self._records[facts.topic, facts.partition]
        changes = tuple(committed_changes(facts, origin_ns))
        return PartitionStory(
            topic=facts.topic,
            partition=facts.partition,
            changes=changes[-CHANGES_MAX:],
            changes_left_out=max(0, len(changes) - CHANGES_MAX),
            leaderships=tuple(leaderships_of(facts, origin_ns)),
            held=tuple(record.held(origin_ns)),
            cuts=tuple(record.cuts(origin_ns)),
            final=tuple(record.holds_now()),
            promised=tuple(record.promised(origin_ns)),
            acknowledged=tuple(record.acknowledged(origin_ns)),
            named_events=(),
            flushed=tuple(record.flushed(origin_ns)),
        )

    # --- What is new ----------------------------------------------------------------------------------------------

    def _add_events(self, found: list[NewEvents]) -> None:
        losses: defaultdict[_Process, list[_PowerLoss]] = defaultdict(list)
        by_process: defaultdict[_Process, list[NewEvents]] = defaultdict(list)
        for new in found:
            by_process[new.process].append(new)
            self._files[new.process] = new.file
            for collected in new.rare:
                match collected.event:
                    case e.PowerLost():
                        place = EventPlace(file=new.path, sequence=collected.sequence)
                        losses[collected.event.lost_node, collected.event.lost_incarnation].append(
                            _PowerLoss(collected.time_ns, collected.event, place)
                        )
                    case e.IncarnationEnded():
                        self._ended_ns[collected.event.ended_node, collected.event.ended_incarnation] = (
                            collected.time_ns
                        )
                if isinstance(collected.event, _KEPT):
                    self._kept.append(collected)
        for process in sorted(by_process.keys() | losses.keys()):
            for new in by_process.get(process, ()):
                self._seen.add(process)
                self._add_logs(new)
                self._add_answers(new.rows.get(e.ProduceAnswered))
            self._add_losses(process, losses.get(process, ()))
        for collected in (collected for new in found for collected in new.rare):
            if isinstance(collected.event, e.IncarnationEnded) and collected.event.end is e.IncarnationEnd.STOPPED:
                for record in self._records.values():
                    record.stop(collected.event.ended_node, collected.time_ns)

    def _add_losses(self, process: _Process, losses: Iterable["_PowerLoss"]) -> None:
        """Adds the losses of a power loss; the harness records them after all events of the process."""
        node, incarnation = process
        if (node, incarnation + 1) in self._seen:
            return  # the next process found less in its log, and has said so
        for lost in losses:
            record = self._records[lost.event.topic, lost.event.partition]
            record.cut(node, self._ended_ns.get(process, lost.time_ns), lost.event, lost.place)

    def _add_logs(self, new: NewEvents) -> None:
        """Adds appends, and the events between them that moved the ends of logs."""
        appended = new.rows.get(e.BatchAppended)
        sequences = np.empty(0, np.int64) if appended is None else appended.columns["sequence"]
        begin = 0
        for collected in new.rare:
            if isinstance(collected.event, _OF_OWN_LOG):
                end = int(np.searchsorted(sequences, collected.sequence))
                self._append(new.process[0], appended, slice(begin, end))
                begin = end
                place = EventPlace(file=new.path, sequence=collected.sequence)
                self._records[collected.event.topic, collected.event.partition].cut(
                    collected.node, collected.time_ns, collected.event, place
                )
            elif isinstance(collected.event, e.LogFlushed):
                record = self._records[collected.event.topic, collected.event.partition]
                record.flush(
                    collected.node, collected.time_ns, collected.event.topic_id, collected.event.recovery_point
                )
        self._append(new.process[0], appended, slice(begin, None))

    def _append(self, node: int, rows: Columns | None, places: slice) -> None:
        if rows is None:
            return
        topics = rows.columns["topic"][places]
        partitions, epochs = rows.columns["partition"][places], rows.columns["leader_epoch"][places]
        times, bases = rows.columns["time_ns"][places], rows.columns["base_offset"][places]
        ends = rows.columns["last_offset"][places] + 1
        for group in groups_of(topics, partitions):
            topic, topic_id = _names(rows, int(topics[group[0]]))
            self._records[topic, int(partitions[group[0]])].append(
                node, topic_id, epochs[group], times[group], bases[group], ends[group]
            )

    def _add_answers(self, rows: Columns | None) -> None:
        if rows is None:
            return
        columns = rows.columns
        is_good = columns["error"] == _number_of(rows.words["error"], NO_ERROR)
        for group in groups_of(columns["topic"], columns["partition"]):
            own = group[is_good[group] & (columns["base_offset"][group] != NONE)]
            if len(own):
                topic, topic_id = _names(rows, int(columns["topic"][own[0]]))
                counts = columns["record_count"][own]
                self._records[topic, int(columns["partition"][own[0]])].acknowledge(
                    topic_id,
                    acks=columns["acks"][own],
                    epochs=columns["leader_epoch"][own],
                    times=columns["time_ns"][own],
                    ends=columns["base_offset"][own] + counts,
                    counts=counts,
                )


class _PowerLoss(NamedTuple):
    time_ns: int
    event: e.PowerLost
    place: EventPlace


def _names(rows: Columns, number: int) -> tuple[str, str]:
    """Returns the topic and topic id that a number stands for."""
    return rows.words["topic"][number], rows.words["topic_id"][number]


def _number_of(words: Sequence[str], word: str) -> int:
    return words.index(word) if word in words else -1
