"""Decides which whole segments may be deleted: a pure decision (Kafka's ``UnifiedLog.deleteOldSegments``).

A segment may be deleted only if everything in it is below the high watermark. Three rules apply in turn, each to
segments from the front: entirely below the log start, over the size limit, older than the time limit. An empty last
segment stays.
"""

from collections.abc import Callable, Sequence

import msgspec

from laststand.emulator.core.properties import TopicProperties
from laststand.emulator.core.types import Offset


class SegmentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the decision about one segment; ``largest_timestamp_ms`` is -1 for none."""

    base_offset: Offset
    size: int
    largest_timestamp_ms: int


class RetentionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a topic; ``None`` for none.

    Attributes:
        retention_bytes: number of bytes to keep at least (``retention.bytes``).
        retention_ms: time to keep records at least (``retention.ms``).
    """

    retention_bytes: int | None
    retention_ms: int | None


def retention_limits(topic: TopicProperties) -> RetentionLimits:
    """Returns a topic's limits; a topic that is only compacted has none."""
    if "delete" not in topic.cleanup_policy.split(","):
        return RetentionLimits(retention_bytes=None, retention_ms=None)
    return RetentionLimits(
        retention_bytes=None if topic.retention_bytes < 0 else topic.retention_bytes,
        retention_ms=None if topic.retention_ms < 0 else topic.retention_ms,
    )


def deletable_segments(
    segments: Sequence[SegmentSummary],
    *,
    log_start_offset: Offset,
    log_end_offset: Offset,
    high_watermark: Offset,
    limits: RetentionLimits,
    now_ms: int,
) -> int:
    """Returns the number of segments, from the first on, that may be deleted; if it is all, roll the log first."""

    def due_count(first: int, is_due: Callable[[int], bool]) -> int:
        for index in range(first, len(segments)):
            is_last = index + 1 == len(segments)
            upper_bound = log_end_offset if is_last else segments[index + 1].base_offset
            if upper_bound > high_watermark or (is_last and segments[index].size == 0) or not is_due(index):
                return index
        return len(segments)

    def is_below_log_start(index: int) -> bool:
        return index + 1 < len(segments) and segments[index + 1].base_offset <= log_start_offset

    count = due_count(0, is_below_log_start)

    if limits.retention_bytes is not None:
        surplus = sum(segment.size for segment in segments[count:]) - limits.retention_bytes

        def is_over_size(index: int) -> bool:
            nonlocal surplus
            if surplus < segments[index].size or surplus <= 0:
                return False
            surplus -= segments[index].size
            return True

        count = due_count(count, is_over_size)

    if limits.retention_ms is not None:
        oldest_ms = now_ms - limits.retention_ms
        count = due_count(count, lambda index: segments[index].largest_timestamp_ms < oldest_ms)

    return count
