"""Compares the logs of a partition to find what electing each replica would lose. Pure."""

from collections.abc import Mapping
from itertools import permutations
from typing import NamedTuple

from laststand.emulator.autopsy.comparison import Log, PartedBy, Parting, part, surplus
from laststand.emulator.autopsy.findings import Loss
from laststand.emulator.core.controller.recovery import log_rank
from laststand.emulator.core.types import BrokerId, Offset


class ReplicaLog(NamedTuple):
    """Names a log: its broker may have several of a partition."""

    broker_id: BrokerId
    folder: str


class Weighing(NamedTuple):
    """The result of comparing all logs of a partition.

    Attributes:
        longest: the longest log.
        losses: by the log that would lead, the losses of the other logs that hold more.
    """

    longest: ReplicaLog
    losses: Mapping[ReplicaLog, tuple[Loss, ...]]

    def against_longest(self, elected: ReplicaLog) -> int:
        """Returns the records that the longest log holds and this one lacks."""
        return sum(loss.lost.records for loss in self.losses[elected] if (loss.held_by, loss.held_in) == self.longest)

    def committed(self, elected: ReplicaLog) -> int:
        """Returns the largest number of committed records that one other log has and this log lacks."""
        return max((loss.committed.records for loss in self.losses[elected]), default=0)


def weigh(
    logs: Mapping[ReplicaLog, Log], high_watermarks: Mapping[ReplicaLog, Offset], *, is_compacted: bool
) -> Weighing:
    """Compares the logs of a partition, at least one, each with each.

    Args:
        logs: the logs; of equally long ones the first is preferred.
        high_watermarks: those that are known.
        is_compacted: whether a cleaner may have rewritten some.
    """
    partings = {
        (holder, elected): part(logs[holder], logs[elected], is_compacted=is_compacted)
        for holder, elected in permutations(logs, 2)
    }
    committed_ends = {holder: _committed_end(holder, partings, high_watermarks) for holder in logs}
    losses: dict[ReplicaLog, tuple[Loss, ...]] = {}
    for elected in logs:
        found = []
        for holder in logs:
            if holder == elected:
                continue
            parting = partings[holder, elected]
            lost = surplus(logs[holder], start=parting.offset)
            if lost.records or lost.markers:
                committed = surplus(logs[holder], start=parting.offset, end=committed_ends[holder])
                found.append(
                    Loss(
                        held_by=holder.broker_id,
                        held_in=holder.folder,
                        parting=parting,
                        lost=lost,
                        committed=committed,
                    )
                )
        losses[elected] = tuple(found)
    longest = max(logs, key=lambda each: log_rank(logs[each].last_leader_epoch, logs[each].log_end_offset))
    return Weighing(longest, losses)


def _committed_end(
    holder: ReplicaLog,
    partings: Mapping[tuple[ReplicaLog, ReplicaLog], Parting],
    high_watermarks: Mapping[ReplicaLog, Offset],
) -> Offset:
    """Returns the offset up to which a log is committed, by its own high watermark or that of an agreeing log."""
    agreeing = [holder]
    for (one, other), parting in partings.items():
        if one == holder and parting.parted_by in (PartedBy.NOTHING, PartedBy.END):
            agreeing.append(other)
    return Offset(max((high_watermarks.get(each, 0) for each in agreeing), default=0))
