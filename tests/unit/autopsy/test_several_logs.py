"""Several log directories of one broker: disks beside each other, and a restored backup that only looks like one."""

import re
import shutil
import struct
from pathlib import Path

import pytest

from laststand.emulator.autopsy.autopsy import examine
from laststand.emulator.autopsy.broker_logs import Deciding
from laststand.emulator.autopsy.eligibility import ElectionRule
from laststand.emulator.autopsy.findings import AutopsyReport, PartitionAutopsy
from laststand.emulator.autopsy.log_directories import find_log_directories
from laststand.emulator.core.types import TopicPartition
from laststand.emulator.kafka.metadata_copy import fold, read_metadata_copy, replica_directories
from laststand.emulator.report.autopsy_words import details_of, state_words, summary
from tests.kafka_logs.archives import unpack

SEGMENT = f"{0:020}.log"
OTHER_TOPIC = "AAAAAAAAAAAAAAAAAAAAEA"
OTHER_DIRECTORY = "m7QjOaZFTl6GiNbMVsKWlg"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return unpack("4.2.0", tmp_path / "kafka")


def report_on(cluster: Path) -> AutopsyReport:
    return examine(find_log_directories([str(cluster)]))


def orders_of(report: AutopsyReport) -> list[PartitionAutopsy]:
    return [partition for partition in report.partitions if partition.topic == "orders"]


def backup_of(cluster: Path, *, topic_id: str | None = None, directory_id: str | None = None) -> Path:
    """Lays a copy of broker 3's orders-0 as it was after two batches beside it, where it sorts first."""
    backup = cluster / "a-restored-backup"
    shutil.copytree(cluster / "node-3" / "orders-0", backup / "orders-0")
    shutil.copy(cluster / "node-3" / "meta.properties", backup)
    content = (backup / "orders-0" / SEGMENT).read_bytes()
    [length] = struct.unpack_from(">i", content, 8)
    (backup / "orders-0" / SEGMENT).write_bytes(content[: length + 12])
    if topic_id is not None:
        (backup / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    if directory_id is not None:
        properties = backup / "meta.properties"
        properties.write_text(re.sub("directory.id=.*", f"directory.id={directory_id}", properties.read_text()))
    return backup


def test_the_log_counts_whose_topic_the_metadata_log_names(cluster: Path) -> None:
    backup = backup_of(cluster, topic_id=OTHER_TOPIC)
    report = report_on(cluster)
    [orders, other] = orders_of(report)
    assert [(each.broker_id, each.log_end_offset) for each in orders.candidates] == [(1, 175), (2, 150), (3, 130)]
    assert orders.longest == 3
    assert (other.is_of_other_topic, [each.broker_id for each in other.candidates]) == (True, [3])
    assert OTHER_TOPIC in state_words(other)
    [found] = report.several_logs
    assert (found.deciding, found.other_folders) == (Deciding.TOPIC_ID, (str(backup / "orders-0"),))
    assert report.is_whole
    assert summary(report).endswith(
        f"; broker 3 has 2 logs of orders-0, of which {cluster}/node-3/orders-0 counts: "
        "the metadata log names its topic id"
    )
    # The backup has no clean-shutdown file, and a copy of node-3's meta.properties.
    assert orders.candidates[2].eligibility.survives_restart is True


def test_the_log_counts_whose_directory_the_metadata_log_names(cluster: Path) -> None:
    backup_of(cluster, directory_id=OTHER_DIRECTORY)
    report = report_on(cluster)
    [orders] = orders_of(report)
    assert [(each.broker_id, each.log_end_offset) for each in orders.candidates] == [(1, 175), (2, 150), (3, 130)]
    assert [each.deciding for each in report.several_logs] == [Deciding.DIRECTORY_ID]
    assert report.is_whole


def test_where_nothing_decides_both_are_shown(cluster: Path) -> None:
    backup = backup_of(cluster)
    report = report_on(cluster)
    [orders] = orders_of(report)
    assert [(each.broker_id, each.log_end_offset) for each in orders.candidates][2:] == [(3, 1), (3, 130)]
    assert (orders.longest, orders.longest_folder) == (3, str(cluster / "node-3" / "orders-0"))
    assert [each.deciding for each in report.several_logs] == [Deciding.NOTHING]
    assert not report.is_whole
    assert "broker 3 has 2 logs of orders-0, nothing says which of them counts, and all are shown" in summary(report)
    assert any(line.startswith(f"electing 3 in {backup}/orders-0 loses") for line in details_of(orders))


def test_disks_of_one_broker_are_one_broker(cluster: Path) -> None:
    # Broker 1 has two disks; only the second one's checkpoint knows of ledger-0.
    disk = cluster / "node-1-second"
    disk.mkdir()
    shutil.move(cluster / "node-1" / "ledger-0", disk)
    properties = (cluster / "node-1" / "meta.properties").read_text()
    (disk / "meta.properties").write_text(re.sub("directory.id=.*", f"directory.id={OTHER_DIRECTORY}", properties))
    (disk / "replication-offset-checkpoint").write_text("0\n1\nledger 0 14\n")
    report = report_on(cluster)
    assert report.several_logs == ()
    [ledger] = [partition for partition in report.partitions if partition.topic == "ledger"]
    assert [(each.broker_id, each.high_watermark) for each in ledger.candidates] == [(1, 14), (2, 12), (3, 5)]
    assert report.is_whole


def test_what_could_not_be_read_is_not_called_the_same(cluster: Path) -> None:
    for segment in (cluster / "node-2" / "idle-0").glob("*.log"):
        segment.unlink()
    idle = examine(find_log_directories([str(cluster)]), only=frozenset({TopicPartition("idle", 0)}))
    assert "all replicas hold the same" not in summary(idle)
    assert summary(idle).endswith("the replicas that could be read hold the same; 1 log could not be read")
    assert idle.partitions[0].unread == (2,)


def test_replicas_whose_directories_are_not_here_are_named(cluster: Path) -> None:
    shutil.rmtree(cluster / "node-3")
    report = report_on(cluster)
    assert {partition.absent for partition in report.partitions} == {(3,)}
    [orders] = orders_of(report)
    assert "broker 3 has a replica, too, whose log is not here" in list(details_of(orders))


def test_the_metadata_log_assigns_directories(cluster: Path) -> None:
    copy = read_metadata_copy(cluster / "node-100" / "__cluster_metadata-0")
    image = fold(copy)
    assigned = replica_directories(copy)[image.topics["orders"], 0]
    written = {
        number: re.search("directory.id=(.*)", (cluster / f"node-{number}" / "meta.properties").read_text())
        for number in (1, 2, 3)
    }
    assert assigned == {number: found[1] for number, found in written.items() if found is not None}


def test_metadata_that_is_only_a_snapshot_is_read(cluster: Path) -> None:
    for node in (1, 2, 3):
        shutil.rmtree(cluster / f"node-{node}" / "__cluster_metadata-0")
    (cluster / "node-100" / "__cluster_metadata-0" / SEGMENT).unlink()
    (cluster / "node-100" / "meta.properties").unlink()
    report = report_on(cluster)
    assert report.metadata is not None
    assert report.metadata.end_offset == 59
    assert orders_of(report)[0].committed is not None
    assert report.is_whole


def test_brokers_are_ordered_by_the_partitions_that_they_would_lead(cluster: Path) -> None:
    report = report_on(cluster)
    [first, second, third] = report.brokers_to_return
    # Nobody is eligible and complete: 1 and 2 were killed, and broker 3 lacks records of orders-0.
    assert [each.broker_id for each in (first, second, third)] == [1, 2, 3]
    assert {each.eligible_and_complete for each in report.brokers_to_return} == {0}
    assert (first.replicas, first.complete_otherwise, third.eligible) == (5, 4, 1)
    leader = [each for each in orders_of(report)[0].candidates if each.eligibility.rule is ElectionRule.ELR]
    assert [each.broker_id for each in leader] == [3]


def test_a_snapshot_that_ends_before_the_log_begins_is_refused(cluster: Path) -> None:
    log = cluster / "node-100" / "__cluster_metadata-0"
    (log / SEGMENT).rename(log / f"{65:020}.log")
    report = report_on(cluster / "node-100")
    assert report.metadata is None
    assert "begins at offset 65, and its newest snapshot ends at 59" in report.problems[0]
