"""What must have become of each replica's log, by its node's own events: the oracle's replay of them.

Batches are appended, cut off by a truncation, lost with the page cache, deleted; a process that follows one that was
killed finds the log as it opens it. A log begins where one of its name was deleted, and not with another topic: where
strays are left alone, a topic that is created again continues the log of the deleted one.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from emulator.core.events import (
    BatchAppended,
    BecameFollower,
    BecameLeader,
    LogDeleted,
    LogOpened,
    LogTruncated,
    PartitionEvent,
    PowerLost,
)
from emulator.verification.log_reader import FinalBatch
from emulator.verification.partition_facts import PartitionFacts
from emulator.verification.timeline import CollectedEvent

_LIMIT: Final = 2**62
"""Above every offset, and after every event: a power loss comes after all events of its process."""


class BatchFields(NamedTuple):
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


class ReplayedLog(msgspec.Struct, frozen=True, kw_only=True):
    """What one node's events say about the log that has the partition's name at the end.

    Attributes:
        topic_id: the topic that its broker last used it for.
        expected: the batches that it must hold.
        last_incarnation: of the last process that wrote of it; ``None`` if none did.
        seen_up_to: where the events of a killed process end, at the least: from there on, and only there, the log may
            go on without events.
        deleted_below: up to where records may have been deleted on purpose, under any topic that it was used for.
    """

    topic_id: str | None = None
    expected: frozenset[BatchFields] = frozenset()
    last_incarnation: int | None = None
    seen_up_to: int = _LIMIT
    deleted_below: int = 0


class _Step(msgspec.Struct, frozen=True, gc=False):
    """Something that moves the end of a log or says for which topic it is used.

    Attributes:
        cut: where it cuts the log, if it does.
        batch: what it appends.
        is_end: whether the log is gone after it.
    """

    incarnation: int
    sequence: int
    topic_id: str
    log_end_offset: int
    cut: int | None = None
    batch: BatchAppended | None = None
    is_end: bool = False


def replay_logs(facts: PartitionFacts) -> dict[int, ReplayedLog]:
    """Returns, by node, what its log must be."""
    steps: dict[int, list[_Step]] = {}
    for node, step in _steps(facts):
        steps.setdefault(node, []).append(step)
    return {node: _replay(facts, node, taken) for node, taken in steps.items()}


def _replay(facts: PartitionFacts, node: int, steps: list[_Step]) -> ReplayedLog:
    steps.sort(key=attrgetter("incarnation", "sequence"), reverse=True)
    topic_id = next((step for step in steps if step.sequence < _LIMIT), steps[0]).topic_id
    expected: list[BatchFields] = []
    topic_ids: set[str] = set()
    ends: dict[int, int] = {}
    last_incarnation: int | None = None
    cut = _LIMIT
    for step in steps:
        batch = step.batch
        if batch is not None and batch.last_offset < cut:
            expected.append(
                BatchFields(
                    topic_id, batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc, batch.record_count
                )
            )
        if step.sequence < _LIMIT:
            ends.setdefault(step.incarnation, step.log_end_offset)
            last_incarnation = step.incarnation if last_incarnation is None else last_incarnation
        if step.is_end:
            break
        topic_ids.add(step.topic_id)
        if step.cut is not None:
            cut = min(cut, step.cut)
    killed = [end for incarnation, end in ends.items() if (node, incarnation) in facts.cluster.killed]
    return ReplayedLog(
        topic_id=topic_id,
        expected=frozenset(expected),
        last_incarnation=last_incarnation,
        seen_up_to=min(killed, default=_LIMIT),
        deleted_below=max((facts.deleted_below.get(used_for, 0) for used_for in topic_ids), default=0),
    )


def _steps(facts: PartitionFacts) -> Iterator[tuple[int, _Step]]:
    for appended in facts.events.of(BatchAppended):
        yield appended.node, _step(appended, appended.event.last_offset + 1, batch=appended.event)
    for truncated in facts.events.of(LogTruncated):
        end = truncated.event.new_end_offset
        yield truncated.node, _step(truncated, end, cut=end)
    for deleted in facts.events.of(LogDeleted):
        yield (
            deleted.node,
            _Step(deleted.incarnation, deleted.sequence, deleted.event.topic_id, 0, is_end=True),
        )
    for opened in facts.events.of(LogOpened):
        end = opened.event.log_end_offset
        was_killed = (opened.node, opened.incarnation - 1) in facts.cluster.killed
        yield opened.node, _step(opened, end, cut=end if was_killed else None)
    for followed in facts.events.of(BecameFollower):
        yield followed.node, _step(followed, followed.event.log_end_offset)
    for led in facts.events.of(BecameLeader):
        yield led.node, _step(led, led.event.epoch_start_offset)
    for lost in facts.events.of(PowerLost):
        event = lost.event
        end = event.new_end_offset
        yield event.lost_node, _Step(event.lost_incarnation, _LIMIT, event.topic_id, end, cut=end)


def _step(
    collected: CollectedEvent[PartitionEvent],
    log_end_offset: int,
    *,
    cut: int | None = None,
    batch: BatchAppended | None = None,
) -> _Step:
    return _Step(
        collected.incarnation, collected.sequence, collected.event.topic_id, log_end_offset, cut=cut, batch=batch
    )
