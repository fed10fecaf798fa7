"""Retention in virtual time: whole segments, below the high watermark, and gone for good."""

from laststand.emulator.core import effects
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.disk import ExactLoss, Keep, NamesFate, TruncationFate
from laststand.emulator.core.properties import NodeProperties, TopicProperties, topic_properties
from laststand.emulator.core.types import LeaderEpoch, Offset, TopicId, TopicPartition
from laststand.emulator.simulator.disk.disk import Disk
from laststand.emulator.simulator.disk.retention import apply_retention

ORDERS = TopicPartition("orders", 0)
BATCH_BYTES = 500
DAY_MS = 24 * 3600 * 1000


def disk_with(batches: int) -> Disk:
    """Returns a disk with one log, of one record a batch, the n-th dated n seconds after the epoch."""
    disk = Disk()
    disk.create(effects.CreateLog(partition=ORDERS, topic_id=TopicId("id")))
    disk.logs[ORDERS].segment_bytes = 2 * BATCH_BYTES + 24
    for offset in range(batches):
        batch = BatchDescriptor(
            base_offset=Offset(offset),
            last_offset=Offset(offset),
            leader_epoch=LeaderEpoch(0),
            crc=offset,
            size=BATCH_BYTES,
            record_count=1,
            max_timestamp_ms=1000 * offset,
        )
        disk.append(effects.AppendToLog(partition=ORDERS, batches=(batch,)))
    return disk


def retain(disk: Disk, *, high_watermark: int, now_ms: int = 0, **given: str) -> list[int]:
    def properties_of(_: str) -> TopicProperties:
        named = {name.replace("_", "."): value for name, value in given.items()}
        return topic_properties(NodeProperties(), {"segment.bytes": "1024", **named})

    raised = apply_retention(
        disk,
        topic_properties_of=properties_of,
        high_watermark_of=lambda _: Offset(high_watermark),
        now_ms=now_ms,
    )
    return [start for _, start in raised]


def offsets(disk: Disk) -> list[int]:
    return [batch.base_offset for batch in disk.logs[ORDERS].batches]


def test_whole_segments_go_until_what_is_left_is_small_enough() -> None:
    disk = disk_with(7)  # segments of two batches, the last of one
    assert retain(disk, high_watermark=7, retention_bytes="1500") == [4]
    assert offsets(disk) == [4, 5, 6]
    assert retain(disk, high_watermark=7, retention_bytes="1500") == []


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    disk = disk_with(7)
    assert retain(disk, high_watermark=3, retention_bytes="0") == [2]
    assert retain(disk, high_watermark=0, retention_bytes="0") == []
    assert offsets(disk) == [2, 3, 4, 5, 6]


def test_old_segments_go_and_an_aged_log_starts_where_it_ends() -> None:
    disk = disk_with(4)
    assert retain(disk, high_watermark=4, now_ms=5000, retention_ms="3500") == [2]
    assert retain(disk, high_watermark=4, now_ms=DAY_MS, retention_ms="3500") == [4]
    log = disk.logs[ORDERS]
    assert (log.batches, log.log_start_offset, log.log_end_offset) == ([], 4, 4)


def test_what_went_does_not_come_back_with_the_power() -> None:
    disk = disk_with(6)
    disk.sync()
    retain(disk, high_watermark=6, retention_bytes="1000")
    disk.lose_power(Keep.NONE, ExactLoss(kept=0, truncation=TruncationFate.UNDONE, names=NamesFate.KEPT))
    (loaded,) = disk.load()
    assert (loaded.log_start_offset, loaded.log_end_offset) == (4, 6)
    assert offsets(disk) == [4, 5]
