"""For how long each committed state of a partition was in force, by the controller's clock."""

from collections.abc import Iterator
from enum import Enum
from itertools import groupby

import msgspec

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts


class PartitionState(Enum):
    """The availability of a committed state for producers with acks=all."""

    WRITABLE = "writable"
    BELOW_MIN_ISR = "below_min_isr"
    LEADERLESS = "leaderless"


class CommittedState(msgspec.Struct, frozen=True, kw_only=True):
    """A committed state of the partition of one topic id, the state before it, and when it began and ended."""

    event: events.PartitionChanged
    previous: events.PartitionChanged | None
    members_required: int
    begin_ns: int
    end_ns: int

    @property
    def state(self) -> PartitionState:
        """The availability for producers with acks=all."""
        if self.event.leader is None:
            return PartitionState.LEADERLESS
        has_enough = len(self.event.isr) >= self.members_required
        return PartitionState.WRITABLE if has_enough else PartitionState.BELOW_MIN_ISR


def committed_states(facts: PartitionFacts, *, end_ns: int) -> Iterator[CommittedState]:
    """Yields the states of each topic id in order; the last one ends when its topic is deleted, or at ``end_ns``."""
    deleted = {each.event.topic_id: each.time_ns for each in facts.cluster.events.of(events.TopicDeleted)}
    ordered = sorted(
        facts.events.of(events.PartitionChanged), key=lambda each: (each.event.topic_id, each.event.metadata_offset)
    )
    for topic_id, found in groupby(ordered, key=lambda each: each.event.topic_id):
        changes = list(found)
        ends = [*(change.time_ns for change in changes[1:]), deleted.get(topic_id, end_ns)]
        before = [None, *(change.event for change in changes)]
        for change, previous, until_ns in zip(changes, before, ends, strict=False):
            yield CommittedState(
                event=change.event,
                previous=previous,
                members_required=facts.cluster.configuration.members_required(change.event),
                begin_ns=change.time_ns,
                end_ns=until_ns,
            )
