"""Retention on a simulated disk: whole segments are deleted, by the decision for real logs (``storage.retention``)."""

from collections.abc import Callable
from typing import Final

from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.types import CauseId, Offset, TopicPartition
from laststand.emulator.simulator.disk.disk import Disk
from laststand.emulator.storage.retention import SegmentSummary, deletable_segments, retention_limits

RETENTION: Final = CauseId("retention")
"""Cause of every rise of a log start that follows from it."""


def apply_retention(
    disk: Disk,
    *,
    topic_properties_of: Callable[[str], TopicProperties],
    high_watermark_of: Callable[[TopicPartition], Offset],
    now_ms: int,
) -> list[tuple[TopicPartition, Offset]]:
    """Drops segments by age and by size; returns the partitions whose log start rose, with their new log starts.

    The removal of a segment file is durable at once, so no power loss brings a dropped segment back.
    """
    raised: list[tuple[TopicPartition, Offset]] = []
    for partition, log in sorted(disk.logs.items()):
        topic = topic_properties_of(partition.topic)
        count = deletable_segments(
            [
                SegmentSummary(
                    base_offset=segment.base_offset,
                    size=segment.size,
                    largest_timestamp_ms=max((batch.max_timestamp_ms for batch in batches), default=-1),
                )
                for segment, batches in log.pieces()
            ],
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=high_watermark_of(partition),
            limits=retention_limits(topic),
            now_ms=now_ms,
        )
        if count == 0:
            continue
        log.drop_oldest(count)
        if log.log_start_offset < log.segment_base:
            log.log_start_offset = log.segment_base
            raised.append((partition, log.segment_base))
    return raised
