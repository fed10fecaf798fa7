"""Autopsies of log directories that real brokers wrote (``tests/kafka_logs/make.py``), whole and damaged."""

import shutil
import struct
from pathlib import Path

import pytest

from laststand.emulator.autopsy.autopsy import examine
from laststand.emulator.autopsy.comparison import PartedBy
from laststand.emulator.autopsy.eligibility import ElectionRule
from laststand.emulator.autopsy.findings import AutopsyReport, CandidateReport, PartitionAutopsy
from laststand.emulator.autopsy.log_directories import find_log_directories
from laststand.emulator.autopsy.replica_reader import CrcScope, DamageKind
from laststand.emulator.core.errors import ConfigError
from tests.kafka_logs.archives import VERSIONS, unpack

SEGMENT = f"{0:020}.log"
ORDERS = ("node-1", "orders-0", SEGMENT)


@pytest.fixture(params=VERSIONS)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


@pytest.fixture
def newest(tmp_path: Path) -> Path:
    return unpack(VERSIONS[-1], tmp_path)


def report_on(*directories: Path | str, scope: CrcScope = CrcScope.TAIL) -> AutopsyReport:
    return examine(find_log_directories([str(each) for each in directories]), scope=scope)


def partition_of(report: AutopsyReport, topic: str) -> PartitionAutopsy:
    [found] = [partition for partition in report.partitions if partition.topic == topic]
    return found


def candidate_of(report: AutopsyReport, topic: str, broker_id: int) -> CandidateReport:
    [found] = [each for each in partition_of(report, topic).candidates if each.broker_id == broker_id]
    return found


def test_each_election_loses_what_was_written_elsewhere(cluster: Path) -> None:
    report = report_on(cluster)
    orders = partition_of(report, "orders")
    assert not report.problems
    assert [each.log_end_offset for each in orders.candidates] == [175, 150, 130]
    assert orders.longest == 3
    assert [each.lost_against_longest for each in orders.candidates] == [30, 30, 0]
    lost = {
        (each.broker_id, loss.held_by): (loss.lost.records, loss.parting.offset, loss.parting.parted_by)
        for each in orders.candidates
        for loss in each.losses
    }
    assert lost == {
        (1, 3): (30, 100, PartedBy.EPOCH),
        (2, 1): (25, 150, PartedBy.END),
        (2, 3): (30, 100, PartedBy.EPOCH),
        (3, 1): (75, 100, PartedBy.EPOCH),
        (3, 2): (50, 100, PartedBy.EPOCH),
    }
    # Written with acks=all, and acknowledged.
    assert candidate_of(report, "orders", 3).lost_committed == 50


def test_the_rules_are_those_of_the_version(cluster: Path) -> None:
    report = report_on(cluster)
    assert report.metadata is not None
    has_elr = report.metadata.elr_level > 0
    [first, second, third] = partition_of(report, "ledger").candidates
    assert first.eligibility.rule is (ElectionRule.ELR if has_elr else ElectionRule.ISR)
    assert first.eligibility.survives_restart is (False if has_elr else None)
    assert second.eligibility.rule is (ElectionRule.ELR if has_elr else ElectionRule.UNCLEAN)
    assert third.eligibility.rule is ElectionRule.UNCLEAN
    assert candidate_of(report, "orders", 3).eligibility.survives_restart is (True if has_elr else None)


def test_transactions_have_records_and_markers(cluster: Path) -> None:
    [loss, *_] = candidate_of(report_on(cluster), "ledger", 3).losses
    assert (loss.lost.records, loss.lost.markers) == (4, 1)


def test_gaps_of_a_compacted_log_are_normal(cluster: Path) -> None:
    table = partition_of(report_on(cluster), "table")
    assert table.is_compacted
    assert table.is_alike
    assert all(each.records < each.log_end_offset == 120 for each in table.candidates)


def test_an_empty_partition_is_alike(cluster: Path) -> None:
    idle = partition_of(report_on(cluster), "idle")
    assert idle.is_alike
    assert [each.last_leader_epoch for each in idle.candidates] == [None, None, None]


def test_without_a_metadata_log_the_rules_are_unknown(cluster: Path) -> None:
    for folder in cluster.glob("node-*/__cluster_metadata-0"):
        shutil.rmtree(folder)
    report = report_on(cluster)
    assert report.metadata is None
    assert {each.eligibility.rule for each in partition_of(report, "orders").candidates} == {ElectionRule.UNKNOWN}


def test_a_torn_tail_ends_the_log(newest: Path) -> None:
    log = newest.joinpath(*ORDERS)
    log.write_bytes(log.read_bytes()[:-7])
    found = candidate_of(report_on(newest), "orders", 1)
    assert found.log_end_offset == 174
    assert found.damage is not None
    assert found.damage.kind is DamageKind.TORN
    assert found.damage.position + found.damage.bytes_after == log.stat().st_size


def test_a_flipped_bit_is_found_by_its_crc(newest: Path) -> None:
    log = newest.joinpath(*ORDERS)
    content = bytearray(log.read_bytes())
    content[-3] ^= 1
    log.write_bytes(content)
    found = candidate_of(report_on(newest), "orders", 1)
    assert found.log_end_offset == 174
    assert found.damage is not None
    assert found.damage.kind is DamageKind.CRC


def test_zeros_at_the_end_are_no_batch(newest: Path) -> None:
    log = newest.joinpath(*ORDERS)
    log.write_bytes(log.read_bytes() + bytes(4096))
    found = candidate_of(report_on(newest), "orders", 1)
    assert found.log_end_offset == 175
    assert found.damage is not None
    assert (found.damage.kind, found.damage.bytes_after) == (DamageKind.HEADER, 4096)


def test_offsets_that_go_back_end_the_log(newest: Path) -> None:
    log = newest.joinpath(*ORDERS)
    content = log.read_bytes()
    [length] = struct.unpack_from(">i", content, 8)
    log.write_bytes(content + content[: length + 12])
    found = candidate_of(report_on(newest), "orders", 1)
    assert found.log_end_offset == 175
    assert found.damage is not None
    assert found.damage.kind is DamageKind.ORDER


def test_damage_far_from_the_end_needs_the_deep_look(newest: Path) -> None:
    # A batch of broker 3, which stopped in order, in a segment that was flushed and is not the last one.
    log = newest / "node-3" / "table-0" / SEGMENT
    content = bytearray(log.read_bytes())
    content[80] ^= 1  # in the second batch: the cleaner left the first one empty
    log.write_bytes(content)
    assert candidate_of(report_on(newest), "table", 3).damage is None
    found = candidate_of(report_on(newest, scope=CrcScope.ALL), "table", 3)
    assert found.damage is not None
    assert (found.damage.kind, found.log_end_offset) == (DamageKind.CRC, 40)
    # A recovery would drop the later segment, too.
    assert found.damage.bytes_after == found.file_bytes - found.damage.position


def test_an_older_format_is_named(newest: Path) -> None:
    log = newest.joinpath(*ORDERS)
    message = struct.pack(">qiIbbqii", 0, 22, 0, 1, 0, 0, -1, -1)
    log.write_bytes(message)
    report = report_on(newest)
    assert report.problems == (f"{log}: record format v1 at byte 0 is not supported, only v2",)
    assert [each.broker_id for each in partition_of(report, "orders").candidates] == [2, 3]


def test_what_cannot_be_read_is_a_problem_and_the_rest_is_reported(newest: Path) -> None:
    log = newest.joinpath(*ORDERS)
    log.unlink()
    log.mkdir()
    (newest / "node-2" / "replication-offset-checkpoint").write_text("no checkpoint")
    for empty in (newest / "node-3" / "idle-0").glob("*.log"):
        empty.unlink()
    report = report_on(newest)
    assert [problem.partition(":")[0].removeprefix(f"{newest}/") for problem in report.problems] == [
        "node-2/replication-offset-checkpoint",
        "node-3/idle-0",
        f"node-1/orders-0/{SEGMENT}",
    ]
    assert candidate_of(report, "orders", 2).high_watermark is None
    assert [(each.topic, each.broker_id) for each in report.unread] == [("idle", 3), ("orders", 1)]
    assert partition_of(report, "orders").unread == (1,)
    assert not partition_of(report, "idle").is_alike


def test_a_topic_that_was_created_again_is_another_partition(newest: Path) -> None:
    (newest / "node-1" / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    report = report_on(newest)
    found = [each for each in report.partitions if each.topic == "orders"]
    assert sorted([candidate.broker_id for candidate in each.candidates] for each in found) == [[1], [2, 3]]


def test_a_damaged_metadata_log_is_a_problem(newest: Path) -> None:
    for copy in newest.glob(f"node-*/__cluster_metadata-0/{SEGMENT}"):
        shutil.copy(newest / "node-2" / "orders-0" / SEGMENT, copy)
    report = report_on(newest)
    assert report.metadata is None
    assert all("the metadata log cannot be read" in problem for problem in report.problems)


def test_directories_are_found_wherever_they_are(newest: Path, tmp_path: Path) -> None:
    shutil.move(newest / "node-1", tmp_path / "deep" / "er")
    (newest / "node-2" / "meta.properties").unlink()
    (newest / "node-2").rename(newest / "data")
    (newest / "node-2").mkdir()
    (newest / "data").rename(newest / "node-2" / "data")
    shutil.move(newest / "node-3", tmp_path / "third")
    (tmp_path / "third" / "meta.properties").unlink()
    report = report_on(tmp_path / "deep", newest / "node-2" / "data", f"3={tmp_path / 'third'}", tmp_path / "deep")
    assert [each.node_id for each in report.directories] == [1, 2, 3]
    assert [each.broker_id for each in partition_of(report, "orders").candidates] == [1, 2, 3]


def test_a_broker_of_a_zookeeper_cluster_says_who_it_is(newest: Path) -> None:
    (newest / "node-1" / "meta.properties").write_text("version=0\nbroker.id=7\ncluster.id=abc\n")
    assert [each.node_id for each in report_on(newest / "node-1").directories] == [7]


def test_a_directory_without_a_broker_is_refused(newest: Path) -> None:
    folder = newest / "node-1"
    (folder / "meta.properties").unlink()
    (newest / "copies").mkdir()
    unnamed = folder.rename(newest / "copies" / "copy")
    with pytest.raises(ConfigError, match=f"or the broker before it: 1={unnamed}"):
        report_on(unnamed)


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_directory_without_logs_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=f"{name} is not allowed; expected"):
        report_on(tmp_path / name)


def test_directories_of_two_clusters_do_not_fit_together(newest: Path) -> None:
    properties = newest / "node-1" / "meta.properties"
    properties.write_text(properties.read_text().replace("bGFzdHN0YW5kLWxvZ3MtMQ", "another"))
    assert report_on(newest).problems[0].startswith("the directories are of 2 clusters")


def test_nothing_is_written(newest: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in newest.rglob("*")}
    report_on(newest, scope=CrcScope.ALL)
    assert {path: path.stat().st_mtime_ns for path in newest.rglob("*")} == before
