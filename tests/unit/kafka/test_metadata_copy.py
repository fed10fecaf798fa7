"""The metadata log of real clusters: what it says is what was done to them (``tests/kafka_logs/make.py``)."""

import shutil
from pathlib import Path

import pytest

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.image import MetadataImage
from laststand.emulator.core.types import BrokerId, ConfigResource, LeaderRecoveryState, TopicPartition
from laststand.emulator.kafka.metadata_copy import add_to, fold, read_metadata_copy
from laststand.emulator.kafka.metadata_log import METADATA_LOG
from tests.kafka_logs.archives import VERSIONS, unpack

ORDERS = TopicPartition("orders", 0)


@pytest.fixture(params=VERSIONS)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


@pytest.fixture
def newest(tmp_path: Path) -> Path:
    return unpack(VERSIONS[-1], tmp_path) / "node-100" / METADATA_LOG


def test_the_state_at_the_end_is_what_was_done(cluster: Path) -> None:
    files = read_metadata_copy(cluster / "node-100" / METADATA_LOG)
    image = fold(files)
    orders = image.partitions[ORDERS]
    assert files.problem is None
    assert orders.replicas == (1, 2, 3)
    assert orders.leader is None
    assert orders.leader_recovery_state in LeaderRecoveryState
    assert set(image.brokers) == {1, 2, 3}
    assert not any(broker.is_active for broker in image.brokers.values())
    assert image.config(ConfigResource.TOPIC, "orders", "min.insync.replicas") == "2"


def test_eligible_leader_replicas_are_read(newest: Path) -> None:
    image = fold(read_metadata_copy(newest))
    assert (image.partitions[ORDERS].isr, image.partitions[ORDERS].elr) == ((), (3,))
    assert image.partitions[ORDERS].last_known_leader == 3
    assert image.partitions[TopicPartition("ledger", 0)].elr == (1, 2)


def test_leaders_follow_each_other(newest: Path) -> None:
    image = MetadataImage()
    leaders: list[BrokerId | None] = []
    for dated in read_metadata_copy(newest).records:
        add_to(image, dated, directory=str(newest))
        if ORDERS in image.partitions and image.partitions[ORDERS].leader not in leaders[-1:]:
            leaders.append(image.partitions[ORDERS].leader)
    assert leaders == [1, None, 3, None]


def test_a_copy_of_a_broker_agrees_with_that_of_the_controller(cluster: Path) -> None:
    # Broker 3 lived longest; the controller wrote little after it.
    at_controller = fold(read_metadata_copy(cluster / "node-100" / METADATA_LOG))
    at_broker = fold(read_metadata_copy(cluster / "node-3" / METADATA_LOG))
    assert at_broker.topics == at_controller.topics
    assert at_broker.next_offset <= at_controller.next_offset


def test_a_snapshot_stands_for_the_log_before_it(newest: Path) -> None:
    whole = fold(read_metadata_copy(newest))
    snapshot = max(newest.glob("*.checkpoint"))
    start = int(snapshot.stem.partition("-")[0])
    # What Kafka leaves once the log before the snapshot is deleted.
    (newest / f"{0:020}.log").rename(newest / f"{start:020}.log")
    read = read_metadata_copy(newest)
    assert read.snapshot_offset == start
    assert fold(read).partitions == whole.partitions
    assert fold(read).features == whole.features


def test_a_torn_tail_is_reported(newest: Path) -> None:
    log = newest / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:-5])
    read = read_metadata_copy(newest)
    assert read.problem is not None
    assert str(log) in read.problem


def test_a_log_without_beginning_and_snapshot_is_refused(newest: Path) -> None:
    for snapshot in newest.glob("*.checkpoint"):
        snapshot.unlink()
    (newest / f"{0:020}.log").rename(newest / f"{7:020}.log")
    with pytest.raises(StorageError, match="begins at offset 7, and there is no snapshot"):
        read_metadata_copy(newest)


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no segment"):
        read_metadata_copy(tmp_path)


def test_broken_files_of_another_kind_are_located(newest: Path) -> None:
    shutil.copy(newest.parent.parent / "node-1" / "orders-0" / f"{0:020}.log", newest / f"{0:020}.log")
    with pytest.raises(StorageError, match="batch at offset 0"):
        read_metadata_copy(newest)
