"""What electing each replica of a partition would lose, by their logs. Pure."""

from collections.abc import Mapping
from itertools import permutations
from typing import NamedTuple

from emulator.autopsy.comparison import Log, PartedBy, Parting, part, surplus
from emulator.autopsy.findings import Loss
from emulator.core.controller.recovery import log_rank
from emulator.core.types import BrokerId, Offset


class Weighing(NamedTuple):
    """What a comparison of all logs of a partition comes to.

    Attributes:
        longest: the broker with the longest log.
        losses: by the broker that would be elected; only of others that hold something more.
    """

    longest: BrokerId
    losses: Mapping[BrokerId, tuple[Loss, ...]]

    def against_longest(self, broker_id: BrokerId) -> int:
        """Returns the records that the longest log holds and this one lacks."""
        return sum(loss.lost.records for loss in self.losses[broker_id] if loss.held_by == self.longest)

    def committed(self, broker_id: BrokerId) -> int:
        """Returns the most committed records that any other log holds and this one lacks."""
        return max((loss.committed.records for loss in self.losses[broker_id]), default=0)


def weigh(logs: Mapping[BrokerId, Log], high_watermarks: Mapping[BrokerId, Offset], *, is_compacted: bool) -> Weighing:
    """Compares the logs of a partition, at least one, each with each.

    Args:
        logs: by broker, those first that are preferred where logs are equally long.
        high_watermarks: as far as they are known.
        is_compacted: whether a cleaner may have rewritten some.
    """
    partings = {
        (holder, elected): part(logs[holder], logs[elected], is_compacted=is_compacted)
        for holder, elected in permutations(logs, 2)
    }
    committed_ends = {holder: _committed_end(holder, partings, high_watermarks) for holder in logs}
    losses: dict[BrokerId, tuple[Loss, ...]] = {}
    for elected in logs:
        found = []
        for holder in logs:
            if holder == elected:
                continue
            parting = partings[holder, elected]
            lost = surplus(logs[holder], start=parting.offset)
            if lost.records or lost.markers:
                committed = surplus(logs[holder], start=parting.offset, end=committed_ends[holder])
                found.append(Loss(held_by=holder, parting=parting, lost=lost, committed=committed))
        losses[elected] = tuple(found)
    longest = max(logs, key=lambda broker: log_rank(logs[broker].last_leader_epoch, logs[broker].log_end_offset))
    return Weighing(longest, losses)


def _committed_end(
    holder: BrokerId,
    partings: Mapping[tuple[BrokerId, BrokerId], Parting],
    high_watermarks: Mapping[BrokerId, Offset],
) -> Offset:
    """Returns up to where a log is committed: by its own high watermark, or by that of a log that agrees with it."""
    agreeing = [holder]
    for (broker, other), parting in partings.items():
        if broker == holder and parting.parted_by in (PartedBy.NOTHING, PartedBy.END):
            agreeing.append(other)
    return Offset(max((high_watermarks.get(broker, 0) for broker in agreeing), default=0))
