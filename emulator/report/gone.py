"""Draws the lost records: the oracle determines the ranges, this module the times."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from laststand.emulator.report.axes import EpochSpan, RecordAxis
from laststand.emulator.report.curves import Curve
from laststand.emulator.verification.story.run import PartitionStory
from laststand.emulator.verification.verdict.report import PartitionCounts, VerdictReport


class GoneRecords(NamedTuple):
    """Offsets of an epoch that no log has any more, both ends inclusive, and since when."""

    span: EpochSpan
    first: int
    last: int
    since_us: int


def gone_records(
    counts: PartitionCounts | None, axis: RecordAxis, held: Mapping[tuple[str, int], Mapping[int, Curve]]
) -> list[GoneRecords]:
    """Returns the records that are gone, by epoch and offset."""
    found = []
    for each in () if counts is None else counts.gone:
        span = None if each.leader_epoch is None else axis.span(each.topic_id, each.leader_epoch)
        if span is not None:
            since = max((_last_held(curve, each.first) for curve in held.get(span.key, {}).values()), default=0)
            found.append(GoneRecords(span, each.first, each.last, since))
    return found


def _last_held(curve: Curve, offset: int) -> int:
    holding = np.flatnonzero(curve.values > offset)
    if not len(holding):
        return 0
    after = min(int(holding[-1]) + 1, len(curve.times) - 1)
    return int(curve.times[after])


def counts_of(verdict: VerdictReport | None, partition: PartitionStory) -> PartitionCounts | None:
    """Returns the verdict's counts of a partition; ``None`` without any."""
    if verdict is None:
        return None
    name = (partition.topic, partition.partition)
    return next((each for each in verdict.partitions if (each.topic, each.partition) == name), None)


def lost_of(counts: PartitionCounts | None, acks: int) -> tuple[int, int]:
    """Returns the numbers of a partition's acknowledged records and of the lost ones among them."""
    own = [each for each in (() if counts is None else counts.producers) if each.acks == acks]
    return sum(each.acked for each in own), sum(each.lost for each in own)
