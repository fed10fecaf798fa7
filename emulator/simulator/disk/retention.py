"""Retention on a simulated disk: which batches go, as whole segments of the size that the topic sets.

A stored log has no segment files, so its batches are laid out again each time: a segment takes batches until the next
one would not fit. What is left starts at a boundary of that layout, so the next look finds the same ones. The decision
is that of real logs (``storage.retention``).
"""

from collections.abc import Callable
from typing import Final

from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.types import CauseId, Offset, TopicPartition
from laststand.emulator.simulator.disk.disk import Disk, StoredLog
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
    """Drops what is too old or too much, and returns the partitions whose log start rose, each with its new one.

    The names of segment files are durable at once, so what went does not come back after a power loss.
    """
    raised: list[tuple[TopicPartition, Offset]] = []
    for partition, log in sorted(disk.logs.items()):
        topic = topic_properties_of(partition.topic)
        segments = _segments(log, segment_bytes=topic.segment_bytes)
        count = deletable_segments(
            [summary for summary, _ in segments],
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=high_watermark_of(partition),
            limits=retention_limits(topic),
            now_ms=now_ms,
        )
        if count == 0:
            continue
        base_offset = log.log_end_offset if count == len(segments) else segments[count][0].base_offset
        log.drop_oldest(sum(batches for _, batches in segments[:count]), base_offset=base_offset)
        if log.log_start_offset < base_offset:
            log.log_start_offset = base_offset
            raised.append((partition, base_offset))
    return raised


def _segments(log: StoredLog, *, segment_bytes: int) -> list[tuple[SegmentSummary, int]]:
    """Returns the segments of a log, each with its number of batches; at least one."""
    bounds: list[int] = [0]
    size = 0
    for index, batch in enumerate(log.batches):
        if size > 0 and size + batch.size > segment_bytes:
            bounds.append(index)
            size = 0
        size += batch.size
    segments: list[tuple[SegmentSummary, int]] = []
    for first, end in zip(bounds, [*bounds[1:], len(log.batches)], strict=True):
        batches = log.batches[first:end]
        summary = SegmentSummary(
            base_offset=log.segment_base if first == 0 else batches[0].base_offset,
            size=sum(batch.size for batch in batches),
            largest_timestamp_ms=max((batch.max_timestamp_ms for batch in batches), default=-1),
        )
        segments.append((summary, len(batches)))
    return segments
