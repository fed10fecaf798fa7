"""Finds the replicas that had a lost batch, and the fate of each copy, by the events of the replica's broker.

A copy was lost by the first event after its last append that moved the log's end to or below its offset. A power loss
comes after all events of its process.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from laststand.emulator.core import events
from laststand.emulator.core.types import TruncationReason
from laststand.emulator.verification.facts.batches import LostBatch
from laststand.emulator.verification.facts.losses import CopyFate
from laststand.emulator.verification.facts.partition import PartitionFacts
from laststand.emulator.verification.tables.timeline import CollectedEvent

Place = tuple[int, int]
"""Incarnation and sequence of one node."""

_AFTER_ALL: Final = 2**62

Taking = events.LogTruncated | events.PowerLost | events.LogDeleted | events.LogOpened
"""Events that record where a log ends, which may be lower than before."""

_Deletion = events.LogStartOffsetRaised | events.StrayDeleted

_BatchKey = tuple[str | None, int, int | None]
"""Topic id, base offset and CRC."""


class BatchCopy(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one copy of a batch; ``event`` is the one that records it, if there is one."""

    node: int
    became: CopyFate
    event: CollectedEvent[Taking] | None


class Holding(msgspec.Struct):
    """The replicas that appended a lost batch: by node, the place of the first and of the last append in its events."""

    first: dict[int, Place] = msgspec.field(default_factory=dict)
    last: dict[int, Place] = msgspec.field(default_factory=dict)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The replicas' broker ids."""
        return tuple(sorted(self.first))


class Copies:
    """The copies of one partition's lost batches."""

    def __init__(self, facts: PartitionFacts, lost: Sequence[LostBatch]) -> None:
        self._holdings: dict[_BatchKey, Holding] = {_key(each): Holding() for each in lost}
        batches = facts.events.rows(events.BatchAppended)
        for appended in batches.rows(np.isin(batches["base_offset"], [each.batch.base_offset for each in lost])):
            event = appended.event
            holding = self._holdings.get((event.topic_id, event.base_offset, event.crc))
            if holding is not None:
                holding.first.setdefault(appended.node, (appended.incarnation, appended.sequence))
                holding.last[appended.node] = (appended.incarnation, appended.sequence)
        self._takings = takings_of(facts) if lost else {}
        self._deletions: list[CollectedEvent[_Deletion]] = [
            *facts.events.of(events.LogStartOffsetRaised),
            *facts.events.of(events.StrayDeleted),
        ]

    def holding(self, lost: LostBatch) -> Holding:
        """Returns the holders of a batch."""
        return self._holdings[_key(lost)]

    def fates(self, lost: LostBatch) -> Iterator[BatchCopy]:
        """Yields the fate of each copy of a batch, by node."""
        holding = self.holding(lost)
        for node in sorted({*holding.nodes, *lost.holders}):
            if node in lost.holders:
                yield BatchCopy(node=node, became=CopyFate.KEPT, event=None)
            else:
                event = self._taken_by(lost, node, after=holding.last[node])
                became = CopyFate.UNEXPLAINED if event is None else fate_of(event.event)
                yield BatchCopy(node=node, became=became, event=event)

    def lost_with_disk(self, lost: LostBatch) -> frozenset[int]:
        """Returns the nodes that lost a batch by a power loss.

        Nodes that had truncated or deleted it before, and not appended it again, had no copy to lose.
        """
        return frozenset(
            copy.node
            for copy in self.fates(lost)
            if copy.event is not None
            and isinstance(copy.event.event, events.PowerLost)
            and not self._is_deleted(lost, copy.node, before=copy.event.event.lost_incarnation)
        )

    def _is_deleted(self, lost: LostBatch, node: int, *, before: int) -> bool:
        """Returns whether a node deleted its copy of a batch before one of its processes ended."""
        last = self.holding(lost).last[node]
        return any(
            deletion.node == node
            and last < (deletion.incarnation, deletion.sequence) < (before, _AFTER_ALL)
            and deletion.event.topic_id == lost.batch.topic_id
            and (isinstance(deletion.event, events.StrayDeleted) or deletion.event.new > lost.batch.last_offset)
            for deletion in self._deletions
        )

    def _taken_by(self, lost: LostBatch, node: int, *, after: Place) -> CollectedEvent[Taking] | None:
        batch = lost.batch
        return next(
            (
                taking
                for place, taking in self._takings.get(node, ())
                if place > after and taking.event.topic_id == batch.topic_id and _takes(taking.event, batch.last_offset)
            ),
            None,
        )


def _takes(event: Taking, last_offset: int) -> bool:
    """Returns whether an event removed a batch from a log; a log that restarts at another offset keeps no old batch."""
    if isinstance(event, events.LogTruncated) and event.reason is TruncationReason.RESTARTED:
        return True
    return end_after(event) <= last_offset


def _key(lost: LostBatch) -> _BatchKey:
    return lost.batch.topic_id, lost.batch.base_offset, lost.batch.crc


def takings_of(facts: PartitionFacts) -> Mapping[int, list[tuple[Place, CollectedEvent[Taking]]]]:
    """Returns the events that may have removed batches from each node's log, in the order of its own events."""
    found: dict[int, list[tuple[Place, CollectedEvent[Taking]]]] = {}
    own: Iterable[CollectedEvent[Taking]] = [
        *facts.events.of(events.LogTruncated),
        *facts.events.of(events.LogDeleted),
        *facts.events.of(events.LogOpened),
    ]
    for each in own:
        found.setdefault(each.node, []).append(((each.incarnation, each.sequence), each))
    for lost in facts.events.of(events.PowerLost):
        place = (lost.event.lost_incarnation, _AFTER_ALL)
        found.setdefault(lost.event.lost_node, []).append((place, lost))
    for takings in found.values():
        takings.sort(key=lambda taking: taking[0])
    return found


def end_after(event: Taking) -> int:
    """Returns the log end offset after an event."""
    match event:
        case events.LogTruncated() | events.PowerLost():
            return event.new_end_offset
        case events.LogOpened():
            return event.log_end_offset
        case events.LogDeleted():
            return 0


def fate_of(event: Taking) -> CopyFate:
    """Returns the fate of the copies that an event removed."""
    match event:
        case events.LogTruncated():
            return CopyFate.TRUNCATED
        case events.PowerLost():
            return CopyFate.POWER_LOST
        case events.LogOpened():
            return CopyFate.NOT_RECOVERED
        case events.LogDeleted():
            return CopyFate.LOG_DELETED
