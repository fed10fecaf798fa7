"""The steps of one partition's coordinators, each in the order of its own file.

Nothing is compared across processes: in one file the coordinator's events and the high watermarks of its log are in the
order in which they took place.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.facts.transactions import Markers
from laststand.emulator.verification.tables.columns import NONE
from laststand.emulator.verification.tables.events import place_of
from laststand.emulator.verification.tables.timeline import CollectedEvent

DECIDING: Final = frozenset({"PrepareCommit", "PrepareAbort"})
COMPLETING: Final = frozenset({"CompleteCommit", "CompleteAbort"})
"""States in which a transaction is decided and completed, by Kafka's names."""

Step = events.TransitionBegun | events.TransitionEnded | events.MarkersSent

_Process = tuple[int, int]


class Term(NamedTuple):
    """The steps that a coordinator recorded of one transactional id in one epoch, in order."""

    node: int
    leader_epoch: int
    transactional_id: str
    steps: list[CollectedEvent[Step]]

    def __str__(self) -> str:
        return f"{self.transactional_id} at broker {self.node} in epoch {self.leader_epoch}"


def terms(facts: PartitionFacts) -> Iterator[Term]:
    """Yields the terms of a partition's coordinators."""
    found: dict[tuple[int, int, str, int, str], Term] = {}
    steps: list[CollectedEvent[Step]] = [
        *facts.events.of(events.TransitionBegun),
        *facts.events.of(events.TransitionEnded),
        *facts.events.of(events.MarkersSent),
    ]
    for each in sorted(steps, key=place_of):
        event = each.event
        key = (each.node, each.incarnation, event.topic_id, event.leader_epoch, event.transactional_id)
        term = found.setdefault(key, Term(each.node, event.leader_epoch, event.transactional_id, []))
        term.steps.append(each)
    yield from found.values()


class OwnHighWatermarks:
    """The high watermark of each process's log of one partition, line by line of its events."""

    def __init__(self, facts: PartitionFacts) -> None:
        self._marks: dict[_Process, list[tuple[int, int]]] = {}
        for moves in (
            facts.events.rows(events.HighWatermarkAdvanced),
            facts.events.rows(events.FollowerHighWatermarkUpdated),
        ):
            for node, incarnation, sequence, new in zip(
                *(moves[name].tolist() for name in ("node", "incarnation", "sequence", "new")), strict=True
            ):
                self._marks.setdefault((node, incarnation), []).append((sequence, new))
        for opened in facts.events.of(events.LogOpened):
            self._note(opened, opened.event.high_watermark)
        for led in facts.events.of(events.BecameLeader):
            self._note(led, led.event.high_watermark)
        for cut in facts.events.of(events.LogTruncated):
            self._note(cut, min(cut.event.high_watermark, cut.event.new_end_offset))
        for marks in self._marks.values():
            marks.sort()

    def _note(self, collected: CollectedEvent[events.PartitionEvent], high_watermark: int) -> None:
        process = (collected.node, collected.incarnation)
        self._marks.setdefault(process, []).append((collected.sequence, high_watermark))

    def before(self, collected: CollectedEvent[events.PartitionEvent]) -> int | None:
        """Returns the high watermark before a line; ``None`` if the process recorded none."""
        marks = self._marks.get((collected.node, collected.incarnation), [])
        count = bisect_left(marks, (collected.sequence,))
        return marks[count - 1][1] if count else None


def add_markers(markers: Markers, facts: PartitionFacts) -> None:
    """Counts the decided, sent, appended and stored transaction markers in a partition's events and settled log."""
    for begun in facts.events.of(events.TransitionBegun):
        if begun.event.new in DECIDING:
            markers.decided[begun.event.producer_id, begun.event.producer_epoch] += 1
    for sent in facts.events.of(events.MarkersSent):
        for partition in sent.event.partitions:
            markers.sent[partition, (sent.event.producer_id, sent.event.producer_epoch)] += 1
    batches = facts.events.rows(events.BatchAppended)
    appended = batches.only(
        batches.has("role", events.AppendRole.LEADER) & (batches["producer_id"] >= 0) & (batches["base_sequence"] < 0)
    )
    for marker in zip(appended["producer_id"].tolist(), appended["producer_epoch"].tolist(), strict=True):
        markers.appended[str(facts), marker] += 1
    settled = facts.settled_batches
    kept = settled.only(settled["coordinator_epoch"] != NONE)
    for marker in zip(kept["producer_id"].tolist(), kept["producer_epoch"].tolist(), strict=True):
        markers.kept[str(facts), marker] += 1
