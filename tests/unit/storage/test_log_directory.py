"""A log directory's life, and its death at every operation."""

from pathlib import Path

import pytest

from laststand.emulator.core import inputs
from laststand.emulator.core.disk import Keep
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import BrokerEpoch, Offset, TopicId, TopicPartition
from laststand.emulator.storage import clean_shutdown
from laststand.emulator.storage.checkpoints import RECOVERY_POINT_CHECKPOINT, read_offsets
from laststand.emulator.storage.log_directory import LogDirectory, make_log_directory, partition_of_directory
from laststand.emulator.storage.os_filesystem import OsFileSystem
from laststand.emulator.storage.partition_log import LogSettings
from tests.memory_filesystem import CrashPoint, FaultOutcome, MemoryFileSystem, SimulatedCrashError
from tests.unit.storage.log_fixtures import PARTITION, TOPIC_ID, durable_directory, make_batch, make_batches

ROOT = "/data"
BATCH = len(make_batch(0)[1])


def _settings(_: str = "") -> LogSettings:
    return LogSettings(segment_bytes=3 * BATCH)


def _load(filesystem: MemoryFileSystem) -> tuple[LogDirectory, tuple[inputs.LoadedLog, ...]]:
    directory = LogDirectory.open(filesystem, ROOT)
    return directory, directory.load_logs(_settings)


def test_orderly_close_and_clean_load() -> None:
    filesystem = durable_directory(ROOT)
    directory, loaded = _load(filesystem)
    assert loaded == ()
    log = directory.create_log(PARTITION, TOPIC_ID, _settings())
    log.append(*make_batches(range(5)))
    log.raise_log_start(Offset(1))
    directory.write_high_watermarks({PARTITION: Offset(4), TopicPartition("elsewhere", 0): Offset(9)})
    directory.close_logs(BrokerEpoch(12))
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()

    directory = LogDirectory.open(filesystem, ROOT)
    assert directory.clean_shutdown_epoch() == 12
    (log_loaded,) = directory.load_logs(_settings)
    assert not clean_shutdown.is_clean(filesystem, ROOT)
    assert log_loaded.is_clean
    assert (log_loaded.log_start_offset, log_loaded.log_end_offset, log_loaded.recovery_point) == (1, 5, 5)
    assert log_loaded.high_watermark_checkpoint == 4
    assert log_loaded.topic_id == TOPIC_ID


def test_close_before_load_touches_nothing() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    directory.create_log(PARTITION, TOPIC_ID, _settings()).append(*make_batches(range(5)))
    directory.close_logs(BrokerEpoch(12))
    LogDirectory.open(filesystem, ROOT).close_logs(BrokerEpoch(13))
    assert clean_shutdown.read_broker_epoch(filesystem, ROOT) == 12
    assert read_offsets(filesystem, f"{ROOT}/{RECOVERY_POINT_CHECKPOINT}") == {PARTITION: 5}


def test_an_epoch_that_is_renewed_before_load_survives_a_power_loss() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    directory.close_logs(BrokerEpoch(12))
    directory = LogDirectory.open(filesystem, ROOT)
    directory.renew_clean_shutdown(BrokerEpoch(13))
    directory.close_logs(None)
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()
    assert clean_shutdown.read_broker_epoch(filesystem, ROOT) == 13


def test_a_directory_whose_logs_could_not_be_flushed_has_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    log = directory.create_log(PARTITION, TOPIC_ID, _settings())

    def fail() -> None:
        raise StorageError(path=ROOT, reason="disk full")

    monkeypatch.setattr(log, "close", fail)
    with pytest.raises(StorageError):
        directory.close_logs(BrokerEpoch(12))
    assert not clean_shutdown.is_clean(filesystem, ROOT)


def test_logs_that_are_open_have_no_proof() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    directory.close_logs(BrokerEpoch(12))
    assert clean_shutdown.is_clean(filesystem, ROOT)
    _load(filesystem)
    assert not clean_shutdown.is_clean(filesystem, ROOT)


def test_logs_that_were_loaded_are_not_proven_by_renewal() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    directory.renew_clean_shutdown(BrokerEpoch(13))
    assert not clean_shutdown.is_clean(filesystem, ROOT)


def test_a_stop_while_logs_are_loaded_renews_the_proof_with_which_loading_began() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    directory.close_logs(BrokerEpoch(12))
    directory, _ = _load(filesystem)
    directory.renew_clean_shutdown(BrokerEpoch(13))
    assert clean_shutdown.read_broker_epoch(filesystem, ROOT) == 13


def test_deleted_and_stray_directories_are_set_aside() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    for number in range(3):
        directory.create_log(TopicPartition("orders", number), TOPIC_ID, _settings()).append(*make_batches([0]))
    directory.delete_log(TopicPartition("orders", 0), now_ms=0, delay_ms=60)
    directory.rename_stray_log(TopicPartition("orders", 1))
    names = [name for name in filesystem.list_directory(ROOT) if name.startswith("orders")]
    assert [name.rpartition("-")[2] for name in names] == ["delete", "stray", "2"]
    directory.delete_due(now_ms=59, delay_ms=60)
    assert len([name for name in filesystem.list_directory(ROOT) if name.startswith("orders")]) == 3
    directory.delete_due(now_ms=60, delay_ms=60)
    names = [name for name in filesystem.list_directory(ROOT) if name.startswith("orders")]
    assert [name.rpartition("-")[2] for name in names] == ["stray", "2"]
    _, loaded = _load(filesystem)
    assert [log.partition for log in loaded] == [TopicPartition("orders", 2)]


@pytest.mark.parametrize("is_stray", [False, True])
def test_checkpoints_of_a_log_that_went_say_nothing_of_the_next_one(is_stray: bool) -> None:  # noqa: FBT001 - a column
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    log = directory.create_log(PARTITION, TOPIC_ID, _settings())
    log.append(*make_batches(range(5)))
    log.flush()
    log.raise_log_start(Offset(4))
    directory.write_recovery_points()
    directory.write_log_starts()
    if is_stray:
        directory.rename_stray_log(PARTITION)
    else:
        directory.delete_log(PARTITION, now_ms=0, delay_ms=60)
    directory.create_log(PARTITION, TopicId("another"), _settings()).append(*make_batches(range(2)))
    filesystem.restart()
    (loaded,) = _load(filesystem)[1]
    assert (loaded.log_start_offset, loaded.log_end_offset, loaded.recovery_point) == (0, 2, 0)


def test_strays_are_found_again_and_removed_on_request() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    first, second = TopicPartition("a-b", 1), TopicPartition("a-b", 2)
    for partition in (first, second):
        directory.create_log(partition, TOPIC_ID, _settings()).append(*make_batches([0]))
        directory.rename_stray_log(partition)
    strays = (inputs.StrayLog(partition=first, topic_id=TOPIC_ID), inputs.StrayLog(partition=second, topic_id=TOPIC_ID))
    assert directory.strays == strays
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()

    directory, loaded = _load(filesystem)
    assert loaded == ()
    assert directory.strays == strays
    directory.delete_strays(inputs.StrayLog(partition=first, topic_id=TopicId("of another topic")))
    assert directory.strays == strays
    directory.delete_strays(strays[0])
    assert [name for name in filesystem.list_directory(ROOT) if name.startswith("a-b-1")] == []
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()
    assert _load(filesystem)[0].strays == strays[1:]


def test_strays_of_topics_with_the_longest_names_are_known_again() -> None:
    """Only the topic is cut to fit into a file name; the partition and the topic id still say whose log it was."""
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    names = ("a" * 248 + "1", "a" * 248 + "2")
    for topic, topic_id in zip(names, ("first", "second"), strict=True):
        directory.create_log(TopicPartition(topic, 17), TopicId(topic_id), _settings()).append(*make_batches([0]))
        directory.rename_stray_log(TopicPartition(topic, 17))
    assert [stray.partition.topic for stray in directory.strays] == list(names)
    found = [name for name in filesystem.list_directory(ROOT) if name.endswith("-stray")]
    assert [len(name) for name in found] == [255, 255]
    filesystem.lose_power(keep=Keep.NONE, seed=1)
    filesystem.restart()

    directory, loaded = _load(filesystem)
    assert loaded == ()
    assert {(stray.partition, stray.topic_id) for stray in directory.strays} == {
        (TopicPartition("a" * 213, 17), "first"),
        (TopicPartition("a" * 213, 17), "second"),
    }
    directory.delete_strays(inputs.StrayLog(partition=TopicPartition("a" * 213, 17), topic_id=TopicId("first")))
    assert [stray.topic_id for stray in directory.strays] == ["second"]
    assert len([name for name in filesystem.list_directory(ROOT) if name.endswith("-stray")]) == 1


def test_the_longest_name_that_is_put_aside_fits_on_a_disk(tmp_path: Path) -> None:
    partition = TopicPartition("a" * 249, 12345)
    filesystem, path = OsFileSystem(ledger_folder=f"{tmp_path}/ledger"), f"{tmp_path}/data"
    make_log_directory(filesystem, path)
    directory = LogDirectory.open(filesystem, path)
    directory.load_logs(_settings)
    directory.create_log(partition, TOPIC_ID, _settings())
    directory.rename_stray_log(partition)
    directory.close_logs(None)

    directory = LogDirectory.open(filesystem, path)
    directory.load_logs(_settings)
    assert directory.strays == (inputs.StrayLog(partition=TopicPartition("a" * 210, 12345), topic_id=TOPIC_ID),)


def test_a_stray_is_no_hindrance_to_a_log_of_the_same_name() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    for topic_id in ("first", "second"):
        directory.create_log(PARTITION, TopicId(topic_id), _settings()).append(*make_batches([0]))
        directory.rename_stray_log(PARTITION)
    directory.create_log(PARTITION, TOPIC_ID, _settings())
    assert [stray.topic_id for stray in directory.strays] == ["first", "second"]
    directory.delete_strays(inputs.StrayLog(partition=PARTITION, topic_id=TopicId("first")))
    assert [stray.topic_id for stray in directory.strays] == ["second"]
    assert filesystem.exists(directory.log(PARTITION).path)


def test_segments_that_truncation_dropped_are_unlinked_after_the_delay() -> None:
    filesystem = durable_directory(ROOT)
    directory, _ = _load(filesystem)
    log = directory.create_log(PARTITION, TOPIC_ID, _settings())
    log.append(*make_batches(range(5)))
    log.truncate_to(Offset(1))
    doomed = f"{ROOT}/orders-0/00000000000000000003.log.deleted"
    directory.delete_due(now_ms=0, delay_ms=60)
    assert filesystem.exists(doomed)
    directory.delete_due(now_ms=60, delay_ms=60)
    assert not filesystem.exists(doomed)


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("a-b.c_d-12", TopicPartition("a-b.c_d", 12)),
        ("orders-0.abc-delete", None),
        ("orders-0.abc-stray", None),
        ("orders", None),
        ("orders-x", None),
    ],
)
def test_directory_names(name: str, partition: TopicPartition | None) -> None:
    assert partition_of_directory(name) == partition


def test_lock_is_exclusive(tmp_path: object) -> None:
    root = f"{tmp_path}/data"
    filesystem = OsFileSystem(ledger_folder=f"{tmp_path}/ledger")
    make_log_directory(filesystem, root)
    directory = LogDirectory.open(filesystem, root)
    with pytest.raises(StorageError, match="locked"):
        LogDirectory.open(filesystem, root)
    directory.close_logs(None)
    LogDirectory.open(filesystem, root).close_logs(None)


class _Story:
    """A broker's life on one directory, and what has to hold wherever it ends."""

    def __init__(self, filesystem: MemoryFileSystem) -> None:
        self.filesystem = filesystem
        self.synced_end = 0
        self.written: dict[int, bytes] = {}
        self.has_log = False

    def play(self) -> None:
        directory, _ = _load(self.filesystem)
        log = directory.create_log(PARTITION, TOPIC_ID, _settings())
        directory.sync_names()
        self.has_log = True
        self._append(directory, range(4))
        log.flush()
        self.synced_end = 4
        directory.write_recovery_points()
        self._append(directory, range(4, 8))
        self.synced_end = 2  # from here on, what is at or above the target may or may not be cut
        log.truncate_to(Offset(2))
        directory.write_recovery_points()
        self._append(directory, range(2, 4), leader_epoch=1)
        directory.write_high_watermarks({PARTITION: Offset(3)})
        directory.close_logs(BrokerEpoch(5))
        self.synced_end = 4
        directory, (loaded,) = _load(self.filesystem)
        assert loaded.is_clean
        self._append(directory, range(4, 6), leader_epoch=1)

    def _append(self, directory: LogDirectory, bases: range, *, leader_epoch: int = 0) -> None:
        directory.log(PARTITION).append(*make_batches(bases, leader_epoch=leader_epoch))

    def check(self, keep: Keep | None) -> None:
        was_clean = clean_shutdown.is_clean(self.filesystem, ROOT)
        directory, loaded = _load(self.filesystem)
        if not loaded:
            assert not self.has_log
            return
        (log,) = loaded
        assert log.is_clean == was_clean
        if log.topic_id is None:  # died while making the directory: a stray, and nothing was ever in it
            assert not self.has_log
            assert log.log_end_offset == 0
            return
        assert log.topic_id == TOPIC_ID
        assert log.log_end_offset >= self.synced_end
        assert log.recovery_point <= log.log_end_offset
        offsets = [batch.base_offset for batch in log.batches]
        if keep in (None, Keep.NONE):
            assert offsets == list(range(log.log_end_offset))
        else:  # an older segment may lose its end exactly between batches, and contiguity is not checked (section 17)
            assert offsets == sorted(set(offsets))
            assert offsets[: self.synced_end] == list(range(self.synced_end))
        for batch in log.batches:
            assert batch == make_batch(batch.base_offset, leader_epoch=batch.leader_epoch)[0]
        directory.log(PARTITION).append(*make_batches([log.log_end_offset], leader_epoch=2))
        directory.close_logs(BrokerEpoch(6))
        # What an orderly close left is durable, also names that an earlier process had no time to sync.
        self.filesystem.lose_power(keep=Keep.NONE, seed=1)
        self.filesystem.restart()
        (closed,) = _load(self.filesystem)[1]
        assert closed.is_clean
        assert closed.log_end_offset == log.log_end_offset + 1


@pytest.mark.parametrize("outcome", [FaultOutcome.DONE, FaultOutcome.NOT_DONE])
@pytest.mark.parametrize("keep", [None, *Keep])
def test_crash_at_every_operation(outcome: FaultOutcome, keep: Keep | None) -> None:
    operation = 0
    while True:
        operation += 1
        filesystem = durable_directory(ROOT)
        filesystem.restart(crash_at=CrashPoint(operation=operation, outcome=outcome))
        story = _Story(filesystem)
        try:
            story.play()
        except SimulatedCrashError:
            if keep is not None:
                filesystem.lose_power(keep=keep, seed=operation)
            filesystem.restart()
            story.check(keep)
            continue
        break
    assert operation > 80
