"""Describes one partition for ``story.json``: committed states, held, truncated and acknowledged records, over time."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.types import LeaderRecoveryState
from laststand.emulator.verification.facts.batches import AckedBatch
from laststand.emulator.verification.facts.controller_terms import state_node
from laststand.emulator.verification.facts.partition import ACKS_ALL, PartitionFacts
from laststand.emulator.verification.story.causes import causes_of
from laststand.emulator.verification.story.cluster import time_us
from laststand.emulator.verification.story.flushed_logs import flushed_logs
from laststand.emulator.verification.story.held_logs import final_records, held_and_cut
from laststand.emulator.verification.story.run import (
    Acknowledged,
    Leadership,
    NamedEvent,
    PartitionStory,
    Point,
    Promised,
    StateChange,
)
from laststand.emulator.verification.story.thinning import thinned
from laststand.emulator.verification.tables.columns import NONE, Table
from laststand.emulator.verification.tables.events import place_of
from laststand.emulator.verification.tables.integers import Ints
from laststand.emulator.verification.tables.matching import groups_of, keys_of
from laststand.emulator.verification.tables.timeline import CollectedEvent, EventPlace
from laststand.emulator.verification.verdict.loss_report import Loss

CHANGES_MAX: Final = 2000
"""Most committed states that are recorded of a partition."""

PAUSE_US: Final = 500_000
"""The shortest time without an acknowledgement that is recorded as a pause."""

_RATE_POINTS_MAX: Final = 400


def partition_story(facts: PartitionFacts, losses: Sequence[Loss]) -> PartitionStory:
    """Returns the story of a partition.

    Args:
        facts: of the partition.
        losses: of the partition.
    """
    origin_ns = facts.cluster.origin_ns
    held, cuts = held_and_cut(facts, origin_ns)
    acks = _answered_acks(facts)
    changes = tuple(committed_changes(facts, origin_ns))
    return PartitionStory(
        topic=facts.topic,
        partition=facts.partition,
        changes=changes[:CHANGES_MAX],
        changes_left_out=max(0, len(changes) - CHANGES_MAX),
        leaderships=tuple(leaderships_of(facts, origin_ns)),
        held=held,
        cuts=cuts,
        final=tuple(final_records(facts)),
        promised=tuple(_promised(acks, origin_ns)),
        acknowledged=tuple(_acknowledged(acks, origin_ns)),
        named_events=tuple(_named_answers(facts, losses, origin_ns)),
        flushed=tuple(flushed_logs(facts, origin_ns)),
        causes=tuple(causes_of(facts, losses, origin_ns)),
    )


def committed_changes(facts: PartitionFacts, origin_ns: int) -> Iterator[StateChange]:
    """Yields the states of a partition in the controller's order."""
    terms = facts.cluster.controllers
    for collected in sorted(facts.events.of(events.PartitionChanged), key=lambda each: each.event.metadata_offset):
        event = collected.event
        writer = terms.writer(event.metadata_offset, state_node(facts.topic, facts.partition))
        yield StateChange(
            time_us=time_us(collected.time_ns, origin_ns),
            metadata_offset=event.metadata_offset,
            topic_id=event.topic_id,
            reason=event.reason.replace("_", " "),
            broker=event.broker_id,
            election=event.election,
            leader=event.leader,
            leader_epoch=event.leader_epoch,
            partition_epoch=event.partition_epoch,
            replicas=event.replicas,
            isr=event.isr,
            elr=event.elr,
            min_isr=event.effective_min_isr,
            is_recovering=event.leader_recovery_state is LeaderRecoveryState.RECOVERING,
            event=facts.cluster.place(collected),
            writer=None if writer is None else writer.broker,
            controller_epoch=None if writer is None else writer.controller_epoch,
            last_known_elr=event.last_known_elr,
        )


def leaderships_of(facts: PartitionFacts, origin_ns: int) -> Iterator[Leadership]:
    """Yields each change of a broker to leader or follower, in the order of its own events."""
    roles: list[CollectedEvent[events.BecameLeader] | CollectedEvent[events.BecameFollower]] = []
    roles.extend(facts.events.of(events.BecameLeader))
    roles.extend(facts.events.of(events.BecameFollower))
    for collected in sorted(roles, key=place_of):
        yield Leadership(
            node=collected.node,
            time_us=time_us(collected.time_ns, origin_ns),
            topic_id=collected.event.topic_id,
            leader_epoch=collected.event.leader_epoch,
            is_leading=isinstance(collected.event, events.BecameLeader),
            event=facts.cluster.place(collected),
        )


class _Acks(NamedTuple):
    """Acknowledged batches and the times of the answers that acknowledged them, in the order of these times."""

    acked: Table[AckedBatch]
    times: Ints


def _answered_acks(facts: PartitionFacts) -> _Acks:
    acked, answered = facts.acked, facts.answered
    causes: dict[Hashable, int] = {}
    own, answers = keys_of(
        [acked["node"], acked["base_offset"], acked.numbers("operation_id", causes)],
        [answered["node"], answered["base_offset"], answered.numbers("cause_id", causes)],
    )
    order = np.argsort(answers, kind="stable")
    places = np.append(order, -1)[np.searchsorted(answers, own, sorter=order)]
    is_answered = np.append(answers, -1)[places] == own
    times = np.append(answered["time_ns"], 0)[places]
    found = np.flatnonzero(is_answered)
    found = found[np.argsort(times[found], kind="stable")]
    return _Acks(acked.only(found), times[found])


def _promised(acks: _Acks, origin_ns: int) -> Iterator[Promised]:
    acked = acks.acked
    of_all = np.flatnonzero(acked.has("acks", ACKS_ALL) & (acked["leader_epoch"] != NONE))
    topics, epochs = acked["topic_id"][of_all], acked["leader_epoch"][of_all]
    found = []
    for group in groups_of(topics, epochs):
        places = of_all[group]
        [first] = acked.rows(places[:1])
        points = _rising(acks.times[places], acked["last_offset"][places] + 1, origin_ns)
        found.append(Promised(topic_id=first.topic_id or "", leader_epoch=first.leader_epoch or 0, ends=points))
    yield from sorted(found, key=lambda each: (each.topic_id, each.leader_epoch))


def _acknowledged(acks: _Acks, origin_ns: int) -> Iterator[Acknowledged]:
    levels = acks.acked["acks"]
    for level in np.unique(levels).tolist():
        places = np.flatnonzero(levels == level)
        times = acks.times[places]
        records = np.cumsum(acks.acked["record_count"][places])
        pauses = np.flatnonzero(np.diff(times) > PAUSE_US * 1000)
        yield Acknowledged(
            acks=level,
            records=_rising(times, records, origin_ns, points_max=_RATE_POINTS_MAX),
            pauses=tuple(
                Point(time_us(begin, origin_ns), (end - begin) // 1000)
                for begin, end in zip(times[pauses].tolist(), times[pauses + 1].tolist(), strict=True)
            ),
        )


def _rising(times: Ints, values: Ints, origin_ns: int, **more: int) -> tuple[Point, ...]:
    values = np.maximum.accumulate(values)
    kept = thinned(times, values, **more)
    pairs = zip(times[kept].tolist(), values[kept].tolist(), strict=True)
    return tuple(Point(time_us(time_ns, origin_ns), value) for time_ns, value in pairs)


def _named_answers(facts: PartitionFacts, losses: Sequence[Loss], origin_ns: int) -> Iterator[NamedEvent]:
    """Yields the answers that losses name; other events that they name show by their effects."""
    processes: Mapping[str, tuple[int, int]] = {
        f"events/{name}": process for process, name in facts.cluster.event_files.items()
    }
    places = dict.fromkeys(place for loss in losses for line in loss.story for place in line.events)
    answers = facts.events.rows(events.ProduceAnswered)
    for place in places:
        node, incarnation = processes[place.file]
        found = answers.has("node", node) & answers.has("incarnation", incarnation)
        for time_ns in answers["time_ns"][found & answers.has("sequence", place.sequence)].tolist():
            yield NamedEvent(
                event=EventPlace(file=place.file, sequence=place.sequence), time_us=time_us(time_ns, origin_ns)
            )
