"""Reading an open log through: from which segment on, where its first bad batch is, and that nothing is changed."""

import pytest

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import Offset
from laststand.emulator.storage.batch_memory import BatchMemory
from laststand.emulator.storage.filesystem import read_file
from laststand.emulator.storage.log_scan import LogScanResult
from laststand.emulator.storage.partition_log import LogSettings, PartitionLog
from laststand.emulator.storage.recovery import create_log
from tests.memory_filesystem import MemoryFileSystem
from tests.unit.storage.log_fixtures import (
    PARTITION,
    TOPIC_ID,
    durable_directory,
    make_batch,
    make_batches,
    overwrite,
)

PATH = f"/data/{PARTITION}"
BATCH = len(make_batch(0)[1])


def make_log() -> tuple[MemoryFileSystem, PartitionLog]:
    """Returns a log of five batches, two in a segment."""
    filesystem = durable_directory("/data")
    log = create_log(
        filesystem,
        PATH,
        partition=PARTITION,
        topic_id=TOPIC_ID,
        settings=LogSettings(segment_bytes=2 * BATCH),
        memory=BatchMemory(),
    )
    log.append(*make_batches(range(5)))
    return filesystem, log


def found(start: int, count: int, bad: int | None) -> LogScanResult:
    bad_offset = None if bad is None else Offset(bad)
    return LogScanResult(start_offset=Offset(start), batch_count=count, bad_offset=bad_offset)


def file_of(segment: int) -> str:
    return f"{PATH}/{segment:020d}.log"


def spoil(filesystem: MemoryFileSystem, *, segment: int, batch: int) -> None:
    """Flips a bit of a record in a file, behind the log's back."""
    content = bytearray(read_file(filesystem, file_of(segment)))
    content[batch * BATCH + BATCH - 1] ^= 1
    overwrite(filesystem, file_of(segment), bytes(content))


@pytest.mark.parametrize(
    ("recovery_point", "result"),
    [(0, found(0, 5, None)), (1, found(0, 5, None)), (2, found(2, 3, None)), (5, found(4, 1, None))],
)
def test_it_begins_at_the_segment_that_holds_the_recovery_point(recovery_point: int, result: LogScanResult) -> None:
    _, log = make_log()
    log.recovery_point = Offset(recovery_point)
    assert log.recovery_scan().run() == result


@pytest.mark.parametrize(
    ("segment", "batch", "result"),
    [(0, 0, found(0, 0, 0)), (0, 1, found(0, 1, 1)), (2, 1, found(0, 3, 3)), (4, 0, found(0, 4, 4))],
)
def test_the_first_bad_batch_ends_it(segment: int, batch: int, result: LogScanResult) -> None:
    filesystem, log = make_log()
    spoil(filesystem, segment=segment, batch=batch)
    assert log.recovery_scan().run() == result
    assert log.log_end_offset == 5


def test_what_is_appended_meanwhile_is_not_looked_at() -> None:
    _, log = make_log()
    scan = log.recovery_scan()
    log.append(*make_batches([5]))
    assert scan.run() == found(0, 5, None)


def test_bytes_that_are_no_batch_hide_what_was_appended_behind_them() -> None:
    filesystem, log = make_log()
    overwrite(filesystem, file_of(4), bytes(3) + read_file(filesystem, file_of(4)))
    assert log.recovery_scan().run() == found(0, 4, 4)


def test_a_log_that_is_set_aside_meanwhile_is_an_error() -> None:
    filesystem, log = make_log()
    scan = log.recovery_scan()
    filesystem.rename(PATH, f"{PATH}.0-delete")
    with pytest.raises(StorageError):
        scan.run()
