"""Collects the consequences of a cause on all nodes, for ``story.json``: a request, its appends, its acknowledgement.

Every event names its cause (``cause_id``). Recorded are the causes of events that a picture of a partition shows: lost
acknowledgements, truncations, committed changes, roles that brokers took, and the first and last acknowledgement of
each epoch. A follower's append has a cause of its own, its fetch, but is listed with the leader's append.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.story.cluster import time_us
from laststand.emulator.verification.story.run import Cause, CausedEvent
from laststand.emulator.verification.tables.event_lines import FREQUENT
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import groups_of
from laststand.emulator.verification.tables.timeline import CollectedEvent, EventPlace
from laststand.emulator.verification.tables.vocabulary import EVENT_TYPES
from laststand.emulator.verification.verdict.loss_report import Loss

CAUSES_MAX: Final = 48
"""Most causes that are recorded of a partition: first of losses, then of cuts, acknowledgements, changes and roles."""

EVENTS_MAX: Final = 10
"""Most events that are recorded of a cause: the earliest ones."""

TOLD_MAX: Final = 200
"""In a run with more partitions, causes are recorded only for partitions with losses."""

_TEXT_MAX: Final = 200
_OF_PARTITIONS: Final = tuple(kind for kind in EVENT_TYPES if issubclass(kind, events.PartitionEvent))
_LOST_ANSWERS_MAX: Final = 12


def causes_of(facts: PartitionFacts, losses: Sequence[Loss], origin_ns: int) -> Iterator[Cause]:
    """Yields the causes of a partition's events that pictures show.

    Args:
        facts: of the partition.
        losses: of the partition.
        origin_ns: time 0 of the story.
    """
    if facts.cluster.partition_count > TOLD_MAX and not losses:
        return
    wanted = list(dict.fromkeys(_wanted(facts, losses)))[:CAUSES_MAX]
    if not wanted:
        return
    found = _events_of(facts, frozenset(wanted))
    for cause_id in wanted:
        ordered = sorted(found.get(cause_id, ()), key=lambda each: (each.time_ns, each.node, each.sequence))
        yield Cause(
            cause_id=cause_id,
            events=tuple(
                CausedEvent(
                    node=each.node,
                    time_us=time_us(each.time_ns, origin_ns),
                    text=" ".join(each.event.describe().split())[:_TEXT_MAX],
                    event=facts.cluster.place(each),
                )
                for each in ordered[:EVENTS_MAX]
            ),
            left_out=max(0, len(ordered) - EVENTS_MAX),
        )


def _wanted(facts: PartitionFacts, losses: Sequence[Loss]) -> Iterator[str]:
    yield from _lost_answers(facts, losses)
    cuts: tuple[type[events.PartitionEvent], ...] = (events.LogTruncated, events.PowerLost)
    for kind in cuts:
        for collected in facts.events.of(kind):
            yield collected.event.cause_id
    yield from _ends_of_promises(facts)
    kinds: tuple[type[events.PartitionEvent], ...] = (
        events.PartitionChanged,
        events.BecameLeader,
        events.BecameFollower,
    )
    for kind in kinds:
        for collected in facts.events.of(kind):
            yield collected.event.cause_id


def _lost_answers(facts: PartitionFacts, losses: Sequence[Loss]) -> Iterator[str]:
    processes = {f"events/{name}": process for process, name in facts.cluster.event_files.items()}
    places: dict[EventPlace, None] = dict.fromkeys(
        place for loss in losses for line in loss.story for place in line.events
    )
    answers = facts.events.rows(events.ProduceAnswered)
    for place in list(places)[:_LOST_ANSWERS_MAX]:
        node, incarnation = processes[place.file]
        own = answers.has("node", node) & answers.has("incarnation", incarnation)
        for answer in answers.rows(own & answers.has("sequence", place.sequence)):
            yield answer.event.cause_id


def _ends_of_promises(facts: PartitionFacts) -> Iterator[str]:
    """Yields the causes of the acks=all answers with the lowest and the highest offset of each epoch."""
    answers = facts.answered
    places = np.flatnonzero(answers.has("acks", ACKS_ALL))
    offsets = answers["base_offset"][places]
    groups = groups_of(answers["topic_id"][places], answers["leader_epoch"][places])
    for group in sorted(groups, key=lambda group: int(group[0])):
        ends = [group[np.argmin(offsets[group])], group[np.argmax(offsets[group])]]
        for answer in answers.rows(places[np.array(ends)]):
            yield answer.event.cause_id


def _events_of(facts: PartitionFacts, causes: frozenset[str]) -> dict[str, list[CollectedEvent[events.Event]]]:
    found: defaultdict[str, list[CollectedEvent[events.Event]]] = defaultdict(list)
    for kind in _OF_PARTITIONS:
        for collected in _rows_of(facts, kind, causes) if kind in FREQUENT else facts.events.of(kind):
            if collected.event.cause_id in causes:
                found[collected.event.cause_id].append(collected)
    for cause_id in causes:
        found[cause_id].extend(facts.cluster.by_cause.get(cause_id, ()))
    return {cause_id: [*own, *_copied(facts, own)] for cause_id, own in found.items()}


def _rows_of(
    facts: PartitionFacts, kind: type[events.Event], causes: frozenset[str]
) -> Iterator[CollectedEvent[events.Event]]:
    rows = facts.events.rows(kind)
    if len(rows):
        yield from rows.rows(rows.has_any("cause_id", causes))


def _copied(
    facts: PartitionFacts, appends: Sequence[CollectedEvent[events.Event]]
) -> Iterator[CollectedEvent[events.Event]]:
    """Yields the followers' appends of the batches that the leader appended for a request."""
    appended = facts.events.rows(events.BatchAppended)
    for each in appends:
        if isinstance(each.event, events.BatchAppended) and each.event.role is events.AppendRole.LEADER:
            batch = each.event
            same: Ints = np.flatnonzero(
                appended.has("base_offset", batch.base_offset)
                & appended.has("leader_epoch", batch.leader_epoch)
                & appended.has("topic_id", batch.topic_id)
                & ~appended.has("node", each.node)
            )
            yield from (row for row in appended.rows(same) if row.event.cause_id != batch.cause_id)
