"""The history of each partition as rows: committed states, periods of availability, high watermarks."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate, groupby, pairwise
from typing import Final

from laststand.emulator.analysis.run_source import RunSource
from laststand.emulator.analysis.schema import Nanoseconds, Records
from laststand.emulator.analysis.tables import AvailabilityRow, HighWatermarkRow, PartitionChangeRow, row_of
from laststand.emulator.core import events
from laststand.emulator.core.history import OperationType, SendOperation
from laststand.emulator.core.types import BrokerId, NodeId
from laststand.emulator.verification.facts.committed_states import CommittedState, committed_states
from laststand.emulator.verification.tables.timeline import CollectedEvent

_ACKS_ALL: Final = -1


def partition_change_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, PartitionChangeRow]]:
    """Yields every committed state, with the time at which it was committed."""
    for span in _spans(source):
        event, previous = span.event, span.previous
        yield (
            Nanoseconds(span.begin_ns),
            row_of(
                PartitionChangeRow,
                event,
                end_s=source.clock.seconds(span.end_ns),
                previous_leader=None if previous is None else previous.leader,
                previous_isr=() if previous is None else previous.isr,
                previous_elr=() if previous is None else previous.elr,
            ),
        )


def availability_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, AvailabilityRow]]:
    """Yields every period of every partition, with the time at which it began."""
    acked_all = _AckedRecords(source, acks=(_ACKS_ALL,))
    acked = _AckedRecords(source, acks=(_ACKS_ALL, 1))
    for (_, state), spans in groupby(_spans(source), key=lambda span: (span.event.topic_id, span.state)):
        period = list(spans)
        event, begin_ns, end_ns = period[0].event, period[0].begin_ns, period[-1].end_ns
        place = (event.topic, event.partition, begin_ns, end_ns)
        yield (
            Nanoseconds(begin_ns),
            AvailabilityRow(
                topic=event.topic,
                partition=event.partition,
                topic_id=event.topic_id,
                state=state.value,
                end_s=source.clock.seconds(end_ns),
                duration_s=source.clock.span(begin_ns, end_ns),
                leaders=_leaders(period),
                acked_records=acked.between(*place),
                acked_all_records=acked_all.between(*place),
            ),
        )


def high_watermark_rows(source: RunSource) -> Iterator[tuple[Nanoseconds, HighWatermarkRow]]:
    """Yields every change of a high watermark, with its time."""
    for partition in source.evidence.facts.partitions():
        for advanced in partition.events.of(events.HighWatermarkAdvanced):
            yield Nanoseconds(advanced.time_ns), _high_watermark(advanced, role="leader")
        for updated in partition.events.of(events.FollowerHighWatermarkUpdated):
            yield Nanoseconds(updated.time_ns), _high_watermark(updated, role="follower")


def _high_watermark(
    collected: CollectedEvent[events.HighWatermarkAdvanced] | CollectedEvent[events.FollowerHighWatermarkUpdated],
    *,
    role: str,
) -> HighWatermarkRow:
    return row_of(HighWatermarkRow, collected.event, node=NodeId(collected.node), role=role)


def _spans(source: RunSource) -> Iterator[CommittedState]:
    for partition in source.evidence.facts.partitions():
        yield from committed_states(partition, end_ns=source.clock.end_ns)


def _leaders(period: list[CommittedState]) -> tuple[BrokerId, ...]:
    led = [span.event.leader for span in period if span.event.leader is not None]
    return tuple(leader for before, leader in pairwise([None, *led]) if leader is not None and leader != before)


class _AckedRecords:
    """The number of records acknowledged in a span of time."""

    def __init__(self, source: RunSource, *, acks: tuple[int, ...]) -> None:
        found: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for operation in source.operations:
            if isinstance(operation, SendOperation) and operation.type is OperationType.OK and operation.acks in acks:
                place = (operation.topic, operation.partition)
                found.setdefault(place, []).append((operation.time_ns, operation.record_count))
        self._times: dict[tuple[str, int], list[int]] = {}
        self._sums: dict[tuple[str, int], list[int]] = {}
        for place, acknowledged in found.items():
            acknowledged.sort()
            self._times[place] = [time_ns for time_ns, _ in acknowledged]
            self._sums[place] = [0, *accumulate(count for _, count in acknowledged)]

    def between(self, topic: str, partition: int, begin_ns: int, end_ns: int) -> Records:
        """Records acknowledged from ``begin_ns`` up to, not including, ``end_ns``."""
        times = self._times.get((topic, partition), [])
        sums = self._sums.get((topic, partition), [0])
        return Records(sums[bisect_left(times, end_ns)] - sums[bisect_left(times, begin_ns)])
