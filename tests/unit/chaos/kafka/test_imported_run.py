"""``laststand import``: what real clusters left behind (``tests/kafka_logs``), as runs whose story can be told."""

import errno
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from laststand.chaos.kafka import imported_run
from laststand.cli.main import cli
from laststand.cli.program.user_error import UserError
from laststand.emulator.analysis.filling import BROKEN, fill_from
from laststand.emulator.core import events
from laststand.emulator.core.errors import ConfigError
from laststand.emulator.report.run_files import ReportedRun, read_reported_run
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.story.run import PartitionStory
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict
from tests.kafka_logs.archives import VERSIONS, unpack


def imported(cluster: Path, run: Path, *words: str) -> ReportedRun:
    cli.main(["import", str(cluster), "--out", str(run), *words], standalone_mode=False)
    return read_reported_run(run)


def orders_of(run: ReportedRun) -> PartitionStory:
    [found] = [partition for partition in run.story.partitions if partition.topic == "orders"]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_the_story_has_leaders_and_what_logs_hold(version: str, tmp_path: Path) -> None:
    run = imported(unpack(version, tmp_path / "kafka"), tmp_path / "run")
    orders = orders_of(run)
    leaders = [change.leader for change in orders.changes if change.election is not events.Election.NONE]
    assert run.story.problem is None
    assert {each.topic for each in run.story.partitions} == {"orders", "ledger", "idle"}
    assert [leader for leader in leaders if leader is not None] == [1, 3]
    assert any(change.election is events.Election.UNCLEAN for change in orders.changes)
    assert run.verdict.era == ("kafka-3.9" if version == "3.9.1" else "kafka-4.2")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_imported_run_has_no_violation_without_a_history(version: str, tmp_path: Path) -> None:
    run = imported(unpack(version, tmp_path / "kafka"), tmp_path / "run")
    assert run.verdict.verdict is Verdict.UNKNOWN
    assert not [check for check in run.verdict.checks if check.status is CheckStatus.VIOLATED]
    assert "the history is missing or empty" in run.verdict.unknown_reasons


def test_one_partition_is_imported_and_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = imported(unpack("4.2.0", tmp_path / "kafka"), tmp_path / "run", "--partition", "orders-0")
    assert [each.topic for each in run.story.partitions] == ["orders"]
    assert [path.name for path in (tmp_path / "run" / "nodes" / "1" / "data").glob("*-0")] == ["orders-0"]
    cli.main(["show", str(tmp_path / "run")], standalone_mode=False)
    cli.main(["report", str(tmp_path / "run")], standalone_mode=False)
    printed = capsys.readouterr().out
    assert "broker 3  iiiii" in printed
    assert (tmp_path / "run" / "report.html").read_text().count("<figure") == 1


def test_the_logs_of_the_cluster_are_not_touched(tmp_path: Path) -> None:
    cluster = unpack("4.2.0", tmp_path / "kafka")
    before = {path: path.stat().st_mtime_ns for path in cluster.rglob("*")}
    imported(cluster, tmp_path / "run")
    assert {path: path.stat().st_mtime_ns for path in cluster.rglob("*")} == before


@pytest.mark.parametrize("partition", ["orders-7", "table-0"])
def test_a_partition_that_cannot_be_imported_is_named(partition: str, tmp_path: Path) -> None:
    cluster = unpack("4.2.0", tmp_path / "kafka")
    with pytest.raises(
        ConfigError, match=f"--partition={partition} is not allowed; expected one that is not compacted"
    ):
        imported(cluster, tmp_path / "run", "--partition", partition)
    assert not (tmp_path / "run").exists()


def test_mistakes_are_named(tmp_path: Path) -> None:
    cluster = unpack("3.9.1", tmp_path / "kafka")
    with pytest.raises(UserError, match="exists; expected a new directory"):
        imported(cluster, tmp_path)
    for copy in cluster.glob("node-*/__cluster_metadata-0"):
        copy.rename(copy.with_name("elsewhere"))
    with pytest.raises(ConfigError, match="a copy of __cluster_metadata-0 among them"):
        imported(cluster, tmp_path / "run")


def test_a_backup_beside_a_broker_is_no_obstacle(tmp_path: Path) -> None:
    cluster = unpack("4.2.0", tmp_path / "kafka")
    backup = cluster / "a-restored-backup"
    shutil.copytree(cluster / "node-3" / "orders-0", backup / "orders-0")
    shutil.copy(cluster / "node-3" / "meta.properties", backup)
    metadata = backup / "orders-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAEA\n")
    imported(cluster, tmp_path / "run")
    data = tmp_path / "run" / "nodes" / "3" / "data"
    assert (data / "orders-0").resolve() == cluster / "node-3" / "orders-0"
    assert "orders 0 100" in (data / "replication-offset-checkpoint").read_text()
    assert (data / ".kafka_cleanshutdown").exists()


def test_the_longest_log_is_taken_and_reported_where_nothing_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = unpack("4.2.0", tmp_path / "kafka")
    backup = cluster / "a-restored-backup"
    shutil.copytree(cluster / "node-3" / "orders-0", backup / "orders-0")
    shutil.copy(cluster / "node-3" / "meta.properties", backup)
    for segment in (backup / "orders-0").glob("*.log"):
        segment.write_bytes(b"")
    run = imported(cluster, tmp_path / "run")
    said = "broker 3 has 2 logs of orders-0, and nothing says which of them counts"
    assert said in capsys.readouterr().err
    assert any(said in reason for reason in run.verdict.unknown_reasons)
    data = tmp_path / "run" / "nodes" / "3" / "data"
    assert (data / "orders-0").resolve() == cluster / "node-3" / "orders-0"


def test_an_import_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = unpack("4.2.0", tmp_path / "kafka")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "disk")

    monkeypatch.setattr(imported_run, "lay_out_broker", full)
    with pytest.raises(UserError, match="disk: No space left on device"):
        imported(cluster, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["kafka"]


def test_disks_of_one_broker_are_imported_as_one(tmp_path: Path) -> None:
    cluster = unpack("4.2.0", tmp_path / "kafka")
    disk = cluster / "node-1-second"
    disk.mkdir()
    shutil.move(cluster / "node-1" / "ledger-0", disk)
    shutil.copy(cluster / "node-1" / "meta.properties", disk)
    (disk / "replication-offset-checkpoint").write_text("0\n1\nledger 0 14\n")
    imported(cluster, tmp_path / "run")
    data = tmp_path / "run" / "nodes" / "1" / "data"
    assert {path.name for path in data.glob("*-0")} == {"orders-0", "ledger-0", "idle-0"}
    checkpoint = (data / "replication-offset-checkpoint").read_text()
    assert "ledger 0 14" in checkpoint
    assert "orders 0 150" in checkpoint


def test_the_last_state_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(unpack("4.2.0", tmp_path / "kafka"), tmp_path / "run")
    capsys.readouterr()
    cli.main(["show", str(tmp_path / "run"), "--partition", "orders-0"], standalone_mode=False)
    rows = {line[:8]: line for line in capsys.readouterr().out.splitlines()}
    # Broker 3 led, stopped in order, and is eligible: that is all that the metadata log says of the end.
    assert rows["leader  "].endswith("3.")
    assert rows["broker 3"].endswith("Le")


def test_a_partition_is_created_with_the_min_isr_of_its_topic(tmp_path: Path) -> None:
    imported(unpack("4.2.0", tmp_path / "kafka"), tmp_path / "run")
    events = (tmp_path / "run" / "events" / "100-0.jsonl").read_bytes().splitlines()
    created = [msgspec.json.decode(line) for line in events if b'"reason":"created"' in line]
    assert {(each["topic"], each["effective_min_isr"]) for each in created} == {
        ("orders", 2),
        ("ledger", 2),
        ("idle", 2),
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_an_imported_run_fills_tables(version: str, tmp_path: Path) -> None:
    imported(unpack(version, tmp_path / "kafka"), tmp_path / "run")
    blocks = list(fill_from([plan_run(0, open_run_directory(tmp_path / "run"))], None))
    rows: dict[str, list[dict[str, object]]] = {}
    for block in blocks:
        rows.setdefault(block.table, []).extend(msgspec.json.decode(line) for line in block.lines())
    assert BROKEN not in rows
    assert {(row["node"], row["last_offset"]) for row in rows["replica_batches"] if row["topic"] == "orders"} >= {
        (1, 174),
        (2, 149),
        (3, 129),
    }
    assert [row["verdict"] for row in rows["verdicts"]] == ["unknown"]
    assert "it was imported" in str(rows["runs"][0]["problem"])
    assert {row["election"] for row in rows["partition_changes"]} >= {"isr", "unclean", "no_candidate"}


def test_an_imported_run_that_was_altered_fills_none(tmp_path: Path) -> None:
    imported(unpack("4.2.0", tmp_path / "kafka"), tmp_path / "run")
    (tmp_path / "run" / "events" / "1-0.jsonl").unlink()
    [block] = fill_from([plan_run(0, open_run_directory(tmp_path / "run"))], None)
    assert (block.table, block.lines()) == (BROKEN, ["event file 1-0.jsonl is missing or empty"])
