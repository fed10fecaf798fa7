"""What must have become of each replica's log, by its node's own events: the oracle's replay of them.

Everything that moves the end of a log counts, in the order of its node's file, from the last deletion on. A process
that follows one that was killed finds the log as it opens it; a power loss comes after all events of its process.
"""

from operator import itemgetter
from typing import Final, assert_never

import msgspec

from emulator.core.events import (
    BatchAppended,
    BecameFollower,
    BecameLeader,
    LogDeleted,
    LogOpened,
    LogTruncated,
    PowerLost,
)
from emulator.verification.log_reader import FinalBatch
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.timeline import CollectedEvent

_LIMIT: Final = 2**62
"""Above every offset, and after every event: a power loss comes after all events of its process."""


class BatchFields(msgspec.Struct, frozen=True):
    """What two accounts of one batch must agree on."""

    topic_id: str | None
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    record_count: int

    @classmethod
    def of_final(cls, batch: FinalBatch) -> "BatchFields":
        """Returns those of a batch in a final log."""
        return cls(
            batch.topic_id, batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc, batch.record_count
        )

    @classmethod
    def of_event(cls, batch: BatchAppended, topic_id: str) -> "BatchFields":
        """Returns those of a batch that was appended to a log which is used for ``topic_id`` in the end."""
        return cls(topic_id, batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc, batch.record_count)


class ReplayedLog(msgspec.Struct, frozen=True, kw_only=True):
    """What one node's events say about the log that has the partition's name at the end.

    Attributes:
        topic_id: the topic that its broker last used it for.
        expected: the batches that it must hold, in the order in which they were appended.
        last_incarnation: of the last process that wrote of it; ``None`` if none did.
        seen_up_to: where the events of a killed process end, at the least: from there on, and only there, the log may
            go on without events.
        deleted_below: up to where records may have been deleted on purpose, under any topic that it was used for.
    """

    topic_id: str | None = None
    expected: tuple[BatchFields, ...] = ()
    last_incarnation: int | None = None
    seen_up_to: int = _LIMIT
    deleted_below: int = 0


_StepEvent = BatchAppended | LogTruncated | LogDeleted | LogOpened | BecameFollower | BecameLeader | PowerLost
"""What moves the end of a log, or says for which topic it is used."""

_Step = tuple[int, int, _StepEvent]
"""Incarnation, sequence and event."""


def replay_logs(facts: PartitionFacts) -> dict[int, ReplayedLog]:
    """Returns, by node, what its log must be."""
    steps: dict[int, list[_Step]] = {}
    collected: list[CollectedEvent[_StepEvent]] = [
        *facts.events.of(BatchAppended),
        *facts.events.of(LogTruncated),
        *facts.events.of(LogDeleted),
        *facts.events.of(LogOpened),
        *facts.events.of(BecameFollower),
        *facts.events.of(BecameLeader),
    ]
    for each in collected:
        steps.setdefault(each.node, []).append((each.incarnation, each.sequence, each.event))
    for lost in facts.events.of(PowerLost):
        steps.setdefault(lost.event.lost_node, []).append((lost.event.lost_incarnation, _LIMIT, lost.event))
    return {node: _replay(facts, node, taken) for node, taken in steps.items()}


def _replay(facts: PartitionFacts, node: int, steps: list[_Step]) -> ReplayedLog:
    steps.sort(key=itemgetter(0, 1), reverse=True)
    own = [(incarnation, event) for incarnation, sequence, event in steps if sequence < _LIMIT]
    topic_id = own[0][1].topic_id if own else steps[0][2].topic_id
    expected: list[BatchFields] = []
    topic_ids: set[str] = set()
    ends: dict[int, int] = {}
    cut = _LIMIT
    for incarnation, sequence, event in steps:
        if isinstance(event, BatchAppended):
            if event.last_offset < cut:
                expected.append(BatchFields.of_event(event, topic_id))
            end = event.last_offset + 1
        else:
            end = _end_after(event)
        if sequence < _LIMIT:
            ends.setdefault(incarnation, end)
        if isinstance(event, LogDeleted):
            break
        topic_ids.add(event.topic_id)
        was_killed = (node, incarnation - 1) in facts.cluster.killed
        if isinstance(event, LogTruncated | PowerLost) or (isinstance(event, LogOpened) and was_killed):
            cut = min(cut, end)
    killed = [end for incarnation, end in ends.items() if (node, incarnation) in facts.cluster.killed]
    return ReplayedLog(
        topic_id=topic_id,
        expected=tuple(reversed(expected)),
        last_incarnation=own[0][0] if own else None,
        seen_up_to=min(killed, default=_LIMIT),
        deleted_below=max((facts.deleted_below.get(used_for, 0) for used_for in topic_ids), default=0),
    )


def _end_after(event: LogTruncated | LogDeleted | LogOpened | BecameFollower | BecameLeader | PowerLost) -> int:
    match event:
        case LogTruncated() | PowerLost():
            return event.new_end_offset
        case LogDeleted():
            return 0
        case LogOpened() | BecameFollower():
            return event.log_end_offset
        case BecameLeader():
            return event.epoch_start_offset
        case _:
            assert_never(event)
