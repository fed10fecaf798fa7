"""Whole segments that may be deleted by retention."""

import pytest

from laststand.emulator.core.properties import NodeProperties, topic_properties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import Offset
from laststand.emulator.storage.partition_log import log_settings
from laststand.emulator.storage.retention import RetentionLimits, SegmentSummary, deletable_segments, retention_limits

SEGMENTS = [
    SegmentSummary(base_offset=Offset(base), size=100, largest_timestamp_ms=base * 10) for base in (0, 10, 20, 30)
]


@pytest.mark.parametrize(
    ("log_start", "high_watermark", "retention_bytes", "retention_ms", "expected"),
    [
        (0, 40, None, None, 0),
        (9, 40, None, None, 0),
        (10, 40, None, None, 1),
        (40, 40, None, None, 3),
        (40, 15, None, None, 1),
        (0, 40, 400, None, 0),
        (0, 40, 301, None, 0),
        (0, 40, 300, None, 1),
        (0, 40, 0, None, 4),
        (0, 25, 0, None, 2),
        (20, 40, 100, None, 3),
        (0, 40, None, 1000, 0),
        (0, 40, None, 900, 1),
        (0, 40, None, 0, 4),
    ],
)
def test_rules_in_order(
    log_start: int, high_watermark: int, retention_bytes: int | None, retention_ms: int | None, expected: int
) -> None:
    count = deletable_segments(
        SEGMENTS,
        log_start_offset=Offset(log_start),
        log_end_offset=Offset(40),
        high_watermark=Offset(high_watermark),
        limits=RetentionLimits(retention_bytes=retention_bytes, retention_ms=retention_ms),
        now_ms=999,
    )
    assert count == expected


def test_empty_last_segment_stays() -> None:
    empty = SegmentSummary(base_offset=Offset(40), size=0, largest_timestamp_ms=-1)
    count = deletable_segments(
        [*SEGMENTS, empty],
        log_start_offset=Offset(0),
        log_end_offset=Offset(40),
        high_watermark=Offset(40),
        limits=RetentionLimits(retention_bytes=0, retention_ms=0),
        now_ms=9999,
    )
    assert count == 4


def test_limits_and_settings_come_from_the_properties() -> None:
    node = NodeProperties()
    plain = topic_properties(node, {"retention.bytes": "5", "flush.messages": "1"})
    assert retention_limits(plain) == RetentionLimits(retention_bytes=5, retention_ms=7 * 24 * 3600 * 1000)
    assert log_settings(plain, Switches()).flush_messages == 1
    dense = topic_properties(node, {"index.interval.bytes": "1"})
    assert log_settings(dense, Switches()).index_interval_bytes == 1
    assert log_settings(plain, Switches()).holes_end_logs
    assert not log_settings(plain, Switches(holes_end_logs=False)).holes_end_logs
    assert log_settings(plain, Switches()).recovery_trims_epochs
    assert not log_settings(plain, Switches(recovery_trims_epochs=False)).recovery_trims_epochs
    compacted = topic_properties(node, {"cleanup.policy": "compact", "retention.bytes": "5"})
    assert retention_limits(compacted) == RetentionLimits(retention_bytes=None, retention_ms=None)
