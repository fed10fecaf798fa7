"""A broker's directories: which logs are found, where new ones go, and one that cannot be loaded."""

import pytest

from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.properties import NodeProperties, topic_properties
from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import BrokerEpoch, NodeId, TopicId, TopicPartition
from laststand.emulator.node.broker_files import BrokerFiles
from laststand.emulator.storage.checkpoints import HIGH_WATERMARK_CHECKPOINT
from tests.memory_filesystem import MemoryFileSystem
from tests.unit.storage.log_fixtures import make_batch, overwrite

TOPIC_ID = TopicId("AAAAAAAAAAAAAAAAAAAAAQ")
ORDERS = [TopicPartition("orders", number) for number in range(4)]


def opened(filesystem: MemoryFileSystem, *paths: str) -> BrokerFiles:
    properties = NodeProperties()
    return BrokerFiles(
        filesystem,
        paths,
        cluster_id="unit",
        node_id=NodeId(0),
        properties=properties,
        switches=Switches(),
        topic_properties_of=lambda _: topic_properties(properties, {}),
    )


def with_four_logs(*paths: str) -> MemoryFileSystem:
    filesystem = MemoryFileSystem()
    files = opened(filesystem, *paths)
    files.load()
    for partition in ORDERS:
        files.create(partition, TOPIC_ID)
    files.close(None)
    return filesystem


def test_new_logs_go_to_the_directory_that_has_fewest() -> None:
    filesystem = with_four_logs("/a", "/b")
    for path, partitions in (("/a", ORDERS[0::2]), ("/b", ORDERS[1::2])):
        assert all(filesystem.is_directory(f"{path}/{partition}") for partition in partitions)


def test_logs_of_which_more_is_on_disk_are_reported_once() -> None:
    files = opened(with_four_logs("/a", "/b"), "/a", "/b")
    files.load()
    assert files.pop_risen_recovery_points() == []
    batch, content = make_batch(0)
    files.append(ORDERS[2], [batch], [content])
    files.sync(ORDERS[2])
    [(log, recovery_point)] = files.pop_risen_recovery_points()
    assert (log.partition, recovery_point) == (ORDERS[2], 1)
    assert files.pop_risen_recovery_points() == []


def test_a_renewed_epoch_is_in_every_directory() -> None:
    filesystem = MemoryFileSystem()
    files = opened(filesystem, "/a", "/b")
    files.load()
    files.close(BrokerEpoch(5))
    files = opened(filesystem, "/a", "/b")
    files.renew_proof(BrokerEpoch(8))
    files.close(None)
    assert opened(filesystem, "/a", "/b").previous_broker_epoch() == 8


def test_a_directory_that_cannot_be_loaded_is_left_out_and_named() -> None:
    filesystem = with_four_logs("/a", "/b")
    overwrite(filesystem, f"/a/{HIGH_WATERMARK_CHECKPOINT}", b"no checkpoint")
    files = opened(filesystem, "/a", "/b")
    assert [log.partition for log in files.load()] == ORDERS[1::2]
    assert len(files.failed_ids) == 1
    assert set(files.failed_ids) < set(files.directory_ids)
    files.create(TopicPartition("new", 0), TOPIC_ID)
    assert filesystem.is_directory("/b/new-0")
    files.write_high_watermarks(())
    files.close(None)
    assert filesystem.exists("/a/orders-0/partition.metadata")


def test_without_another_directory_it_is_the_end() -> None:
    filesystem = with_four_logs("/a")
    overwrite(filesystem, f"/a/{HIGH_WATERMARK_CHECKPOINT}", b"no checkpoint")
    with pytest.raises(StorageError):
        opened(filesystem, "/a").load()
