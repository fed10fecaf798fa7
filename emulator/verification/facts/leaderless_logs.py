"""Finds the log end offsets that a replica can have reported while its partition had no leader, by its own events.

No replica appends while there is no leader, but for fetches under way. So a log ended where it did when the replica
learned that there is no leader (``BecameFollower``), or where an append or a truncation moved its end before the
replica learned of the next leader epoch. The ends are known only if the process recorded both: a killed process may not
have recorded its last events.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple

from laststand.emulator.core import events
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.tables.timeline import CollectedEvent


class LeaderlessLog(NamedTuple):
    """The possible log end offsets; for ends that only this process's appends can have reached, the appends' epochs."""

    ends: Set[int]
    epochs: Mapping[int, Set[int]]


def leaderless_log(
    facts: PartitionFacts, process: tuple[int, int], *, topic_id: str, leader_epoch: int
) -> LeaderlessLog | None:
    """Returns the possible ends of a process's log in a leader epoch without a leader; ``None`` if unknown."""
    window = _window(facts, process, topic_id, leader_epoch)
    if window is None:
        return None
    begun, until = window
    opened = [each for each in facts.events.of(events.LogOpened) if _is_of(each, process, topic_id)]
    moved = [*opened, *(each for each in facts.events.of(events.LogDeleted) if _is_of(each, process, topic_id))]
    if any(begun.sequence < each.sequence < until for each in moved):
        return None
    batches = facts.events.rows(events.BatchAppended)
    batches = batches.only(
        (batches["node"] == process[0])
        & (batches["incarnation"] == process[1])
        & (batches["sequence"] < until)
        & batches.has("topic_id", topic_id)
    )
    sequences, ends = batches["sequence"].tolist(), (batches["last_offset"] + 1).tolist()
    truncated = [each for each in facts.events.of(events.LogTruncated) if _is_of(each, process, topic_id)]
    epochs: dict[int, set[int]] = {}
    found_at_start = max((each.event.log_end_offset for each in opened), default=0)
    for end, epoch in zip(ends, batches["leader_epoch"].tolist(), strict=True):
        if end > found_at_start:
            epochs.setdefault(end, set()).add(epoch)
    return LeaderlessLog(
        ends={
            begun.event.log_end_offset,
            *(each.event.new_end_offset for each in truncated if begun.sequence < each.sequence < until),
            *(end for sequence, end in zip(sequences, ends, strict=True) if sequence > begun.sequence),
        },
        epochs=epochs,
    )


def _window(
    facts: PartitionFacts, process: tuple[int, int], topic_id: str, leader_epoch: int
) -> tuple[CollectedEvent[events.BecameFollower], int] | None:
    """Returns the event by which a process learned that there is no leader, and when it learned of the next epoch."""
    begun = [
        each
        for each in facts.events.of(events.BecameFollower)
        if _is_of(each, process, topic_id) and each.event.leader is None and each.event.leader_epoch == leader_epoch
    ]
    roles: list[CollectedEvent[events.BecameFollower | events.BecameLeader]] = [
        *facts.events.of(events.BecameFollower),
        *facts.events.of(events.BecameLeader),
    ]
    later = [
        each.sequence for each in roles if _is_of(each, process, topic_id) and each.event.leader_epoch > leader_epoch
    ]
    return (begun[0], min(later)) if begun and later else None


def _is_of(
    each: CollectedEvent[
        events.BecameFollower | events.BecameLeader | events.LogDeleted | events.LogOpened | events.LogTruncated
    ],
    process: tuple[int, int],
    topic_id: str,
) -> bool:
    return (each.node, each.incarnation) == process and each.event.topic_id == topic_id
