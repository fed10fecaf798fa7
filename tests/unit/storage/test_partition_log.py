"""One partition's log while it is open."""

from collections.abc import Sequence

import pytest

from laststand.emulator.core.batch import LogSpan
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.types import Offset
from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.filesystem import read_file
from laststand.emulator.storage.partition_log import LogSettings, PartitionLog
from laststand.emulator.storage.recovery import LogCheckpoints, create_log, load_log
from laststand.emulator.storage.retention import RetentionLimits
from tests.memory_filesystem import MemoryFileSystem
from tests.unit.storage.log_fixtures import PARTITION, TOPIC_ID, durable_directory, make_batch, make_batches

PATH = "/logs/orders-0"
NO_LIMITS = RetentionLimits(retention_bytes=None, retention_ms=None)


def _open(
    settings: LogSettings | None = None, memory: BatchMemory | None = None
) -> tuple[MemoryFileSystem, PartitionLog]:
    filesystem = durable_directory("/logs")
    log = create_log(
        filesystem,
        PATH,
        partition=PARTITION,
        topic_id=TOPIC_ID,
        settings=settings or LogSettings(),
        memory=memory or BatchMemory(),
    )
    filesystem.sync_directory("/logs")
    return filesystem, log


def _append(log: PartitionLog, bases: Sequence[int]) -> list[bytes]:
    descriptors, contents = make_batches(bases)
    for descriptor, content in zip(descriptors, contents, strict=True):
        log.append([descriptor], [content])
    return contents


def _read(log: PartitionLog, base: int, end: int) -> bytes:
    return b"".join(log.read(LogSpan(base_offset=Offset(base), end_offset=Offset(end), size=0)))


def _end_after_power_loss(filesystem: MemoryFileSystem, recovery_point: int = 0) -> int:
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()
    checkpoints = LogCheckpoints(recovery_point=Offset(recovery_point))
    loaded = load_log(
        filesystem,
        PATH,
        partition=PARTITION,
        is_clean=False,
        checkpoints=checkpoints,
        settings=LogSettings(),
        memory=BatchMemory(),
    )[1]
    return loaded.log_end_offset


def test_append_stamps_what_a_producer_sent() -> None:
    filesystem, log = _open()
    descriptor, stamped = make_batch(40, 3, leader_epoch=6)
    _, produced = make_batch(0, 3)
    log.append([descriptor], [memoryview(produced)])
    assert read_file(filesystem, f"{PATH}/00000000000000000000.log") == stamped
    assert log.log_end_offset == 43


@pytest.mark.parametrize("recent_bytes", [0, 200, 1 << 20])
def test_read_returns_whole_batches_from_memory_or_file(recent_bytes: int) -> None:
    size = len(make_batch(0)[1])
    _, log = _open(LogSettings(segment_bytes=3 * size), BatchMemory(recent_bytes))
    contents = _append(log, range(10))
    assert log.segment_bases == (0, 3, 6, 9)
    for base in range(10):
        for end in range(base, 11):
            assert _read(log, base, end) == b"".join(contents[base:end])


def test_several_batches_in_one_append_roll_where_they_must() -> None:
    size = len(make_batch(0)[1])
    _, log = _open(LogSettings(segment_bytes=3 * size))
    log.append(*make_batches(range(7)))
    assert log.segment_bases == (0, 3, 6)
    assert _read(log, 0, 7) == b"".join(make_batches(range(7))[1])


def test_nothing_is_synced_by_an_append_alone() -> None:
    filesystem, log = _open()
    _append(log, range(10))
    assert log.recovery_point == 0
    assert _end_after_power_loss(filesystem) == 0


def test_flush_messages_syncs_within_the_append() -> None:
    filesystem, log = _open(LogSettings(flush_messages=3))
    _append(log, range(5))
    assert log.recovery_point == 3
    assert _end_after_power_loss(filesystem, recovery_point=3) == 3


def test_flush_ms_syncs_when_it_is_due() -> None:
    filesystem, log = _open(LogSettings(flush_ms=100))
    log.flush_if_due(now_ms=1000)
    _append(log, range(5))
    log.flush_if_due(now_ms=1099)
    assert log.recovery_point == 0
    log.flush_if_due(now_ms=1100)
    assert log.recovery_point == 5
    assert _end_after_power_loss(filesystem, recovery_point=5) == 5


def test_rolled_segments_are_flushed_in_the_background() -> None:
    size = len(make_batch(0)[1])
    filesystem, log = _open(LogSettings(segment_bytes=3 * size))
    _append(log, range(4))
    work = log.pop_flush_work()
    assert work is not None
    assert log.pop_flush_work() is None
    work.run()
    assert log.recovery_point == 0
    log.complete_flush(work)
    assert log.recovery_point == 3
    assert _end_after_power_loss(filesystem, recovery_point=3) == 3


def test_flush_that_a_truncation_overtook_does_not_raise_the_recovery_point() -> None:
    size = len(make_batch(0)[1])
    filesystem, log = _open(LogSettings(segment_bytes=3 * size))
    _append(log, range(4))
    work = log.pop_flush_work()
    assert work is not None
    work.run()
    log.truncate_to(Offset(1))
    _append(log, [1, 2])
    log.complete_flush(work)
    assert log.recovery_point == 0
    # The flushed bytes are durable, the truncation is not: recovery finds the old records, which is what happened.
    assert _end_after_power_loss(filesystem) == 4 - 1


def test_a_recovery_point_that_rose_is_reported_once() -> None:
    _, log = _open(LogSettings(flush_messages=3))
    _append(log, range(2))
    assert log.pop_risen_recovery_point() is None
    _append(log, range(2, 6))
    assert log.pop_risen_recovery_point() == log.recovery_point
    assert log.pop_risen_recovery_point() is None
    log.truncate_to(Offset(1))
    assert log.pop_risen_recovery_point() is None
    log.flush()
    assert log.pop_risen_recovery_point() is None
    _append(log, [1])
    log.flush()
    assert log.pop_risen_recovery_point() == 2


@pytest.mark.parametrize("offset", range(9))
def test_truncation_drops_whole_batches_and_ends_at_the_offset(offset: int) -> None:
    size = len(make_batch(0, 2)[1])
    _, log = _open(LogSettings(segment_bytes=2 * size))
    contents = []
    for base in (0, 2, 4, 6):
        descriptor, content = make_batch(base, 2)
        log.append([descriptor], [content])
        contents.append(content)
    log.flush()
    log.truncate_to(Offset(offset))
    assert log.log_end_offset == min(offset, 8)
    assert log.recovery_point == min(offset, 8)
    assert _read(log, 0, 100) == b"".join(contents[: offset // 2])
    assert log.segment_bases == ((0, 4) if offset >= 4 else (0,))
    replacement, content = make_batch(min(offset, 8), 1, leader_epoch=9)
    log.append([replacement], [content])
    assert _read(log, 0, 100) == b"".join(contents[: offset // 2]) + content


def test_truncation_below_the_first_segment_restarts_the_log() -> None:
    _, log = _open()
    _append(log, range(5))
    log.restart_at(Offset(100))
    assert (log.log_start_offset, log.log_end_offset, log.segment_bases) == (100, 100, (100,))
    log.truncate_to(Offset(50))
    assert (log.log_start_offset, log.log_end_offset, log.segment_bases) == (50, 50, (50,))
    _append(log, [50])
    assert _read(log, 50, 51) == make_batch(50)[1]


def test_producers_follow_appends_and_truncations() -> None:
    _, log = _open()
    for base in range(4):
        descriptor, content = make_batch(base, producer_id=7, base_sequence=base)
        log.append([descriptor], [content])
    assert [(entry.producer_id, entry.last_sequence) for entry in log.producers] == [(7, 3)]
    log.truncate_to(Offset(2))
    assert [(entry.producer_id, entry.last_sequence) for entry in log.producers] == [(7, 1)]
    log.truncate_to(Offset(0))
    assert log.producers == ()


def test_roll_writes_a_snapshot_that_truncation_removes() -> None:
    size = len(make_batch(0, producer_id=7)[1])
    filesystem, log = _open(LogSettings(segment_bytes=2 * size))
    for base in range(3):
        descriptor, content = make_batch(base, producer_id=7, base_sequence=base)
        log.append([descriptor], [content])
    assert filesystem.exists(f"{PATH}/00000000000000000002.snapshot")
    log.truncate_to(Offset(1))
    assert not filesystem.exists(f"{PATH}/00000000000000000002.snapshot")
    assert [entry.last_sequence for entry in log.producers] == [0]


def test_retention_deletes_whole_segments_below_the_high_watermark() -> None:
    size = len(make_batch(0)[1])
    filesystem, log = _open(LogSettings(segment_bytes=2 * size))
    _append(log, range(7))
    limits = RetentionLimits(retention_bytes=2 * size, retention_ms=None)
    assert log.delete_old_segments(high_watermark=Offset(3), limits=limits, now_ms=0) == 2
    assert log.segment_bases == (2, 4, 6)
    assert log.delete_old_segments(high_watermark=Offset(7), limits=limits, now_ms=0) == 4
    assert log.delete_old_segments(high_watermark=Offset(7), limits=limits, now_ms=0) is None
    doomed = log.pop_doomed()
    assert f"{PATH}/00000000000000000000.log.deleted" in doomed
    assert all(filesystem.exists(path) for path in doomed)


def test_retention_of_everything_rolls_first() -> None:
    _, log = _open()
    _append(log, range(3))
    limits = RetentionLimits(retention_bytes=None, retention_ms=10)
    assert log.delete_old_segments(high_watermark=Offset(3), limits=limits, now_ms=1010) is None
    assert log.delete_old_segments(high_watermark=Offset(3), limits=limits, now_ms=1011) == 3
    assert (log.segment_bases, log.log_start_offset, log.log_end_offset) == ((3,), 3, 3)
    assert log.delete_old_segments(high_watermark=Offset(3), limits=NO_LIMITS, now_ms=9999) is None
