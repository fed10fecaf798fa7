"""The metadata log against every crash: what was reported durable is replayed, and nothing that was not appended."""

import pytest

from laststand.emulator.core.disk import Keep
from laststand.emulator.core.errors import StorageError
from laststand.emulator.storage.filesystem import OpenMode
from laststand.emulator.storage.memory_filesystem import CrashPoint, FaultOutcome, MemoryFileSystem, SimulatedCrashError
from laststand.emulator.storage.metadata_log import MetadataLog
from tests.unit.storage.log_fixtures import durable_directory, overwrite

PAYLOADS = [(b"first", 1), (b"", 3), (b"x" * 10_000, 2), (b"last", 1)]
LOG_FILE = "/meta/00000000000000000000.log"


def _play(filesystem: MemoryFileSystem, acknowledged: list[bytes]) -> None:
    """Appends every payload, syncing after each but the second; notes what was reported durable."""
    log = MetadataLog(filesystem, "/meta")
    appended = [entry.payload for entry in log.pop_recovered()]
    for number, (payload, count) in enumerate(PAYLOADS[len(appended) :], start=len(appended)):
        log.append(payload, record_count=count)
        appended.append(payload)
        if number != 1:
            log.sync()
            acknowledged[:] = appended
    log.close()


def _replayed(filesystem: MemoryFileSystem) -> list[bytes]:
    return [entry.payload for entry in MetadataLog(filesystem, "/meta").pop_recovered()]


def test_replay_returns_what_was_appended() -> None:
    filesystem = durable_directory("/meta")
    _play(filesystem, [])
    log = MetadataLog(filesystem, "/meta")
    recovered = log.pop_recovered()
    assert [(entry.payload, entry.record_count) for entry in recovered] == PAYLOADS
    assert [entry.base_offset for entry in recovered] == [0, 1, 4, 6]
    assert log.end_offset == 7
    assert log.pop_recovered() == ()


@pytest.mark.parametrize("outcome", [FaultOutcome.DONE, FaultOutcome.NOT_DONE])
@pytest.mark.parametrize("keep", [None, *Keep])
def test_crash_at_every_operation(outcome: FaultOutcome, keep: Keep | None) -> None:
    operation = 0
    while True:
        operation += 1
        filesystem = durable_directory("/meta")
        filesystem.restart(crash_at=CrashPoint(operation=operation, outcome=outcome))
        acknowledged: list[bytes] = []
        try:
            _play(filesystem, acknowledged)
        except SimulatedCrashError:
            if keep is not None:
                filesystem.lose_power(keep=keep, seed=operation)
            filesystem.restart()
            replayed = _replayed(filesystem)
            assert replayed[: len(acknowledged)] == acknowledged
            assert replayed == [payload for payload, _ in PAYLOADS][: len(replayed)]
            _play(filesystem, acknowledged)
            assert _replayed(filesystem) == [payload for payload, _ in PAYLOADS]
            continue
        break
    assert operation > 8


def test_what_was_replayed_survives_a_later_power_loss() -> None:
    filesystem = durable_directory("/meta")
    log = MetadataLog(filesystem, "/meta")
    log.append(b"written, not synced", record_count=1)
    filesystem.restart()
    assert _replayed(filesystem) == [b"written, not synced"]
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()
    assert _replayed(filesystem) == [b"written, not synced"]


def test_torn_tail_is_cut_and_written_over() -> None:
    filesystem = durable_directory("/meta")
    _play(filesystem, [])
    file = filesystem.open(LOG_FILE, OpenMode.APPEND)
    file.truncate(file.size - 1)
    log = MetadataLog(filesystem, "/meta")
    assert len(log.pop_recovered()) == len(PAYLOADS) - 1
    log.append(b"again", record_count=1)
    assert _replayed(filesystem)[-1] == b"again"


def test_hole_between_batches_is_corruption() -> None:
    filesystem = durable_directory("/meta")
    _play(filesystem, [])
    content = filesystem.open(LOG_FILE, OpenMode.READ).read(position=0, length=1 << 20)
    first_size = 12 + int.from_bytes(content[8:12], "big")
    overwrite(filesystem, LOG_FILE, content[first_size:])
    with pytest.raises(StorageError, match="offset 1 follows 0"):
        MetadataLog(filesystem, "/meta")


@pytest.mark.parametrize("failing", ["append", "sync"])
def test_failure_poisons_the_log(failing: str) -> None:
    filesystem = durable_directory("/meta")
    log = MetadataLog(filesystem, "/meta")
    next_operation = len(filesystem.operations) + (1 if failing == "append" else 2)
    filesystem._crash_at = CrashPoint(operation=next_operation, outcome=FaultOutcome.FAILED)
    with pytest.raises(StorageError):
        _append_and_sync(log)
    with pytest.raises(StorageError):
        log.append(b"later", record_count=1)
    with pytest.raises(StorageError):
        log.sync()


def _append_and_sync(log: MetadataLog) -> None:
    log.append(b"payload", record_count=1)
    log.sync()
