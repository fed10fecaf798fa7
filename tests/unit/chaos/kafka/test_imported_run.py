"""``laststand import``: what real clusters left behind (``tests/kafka_logs``), as runs whose story can be told."""

from pathlib import Path

import pytest

from emulator.cli.main import cli
from emulator.cli.user_error import UserError
from emulator.core.errors import ConfigError
from emulator.core.events import Election
from emulator.report.run_files import ReportedRun, read_reported_run
from emulator.verification.run_story import PartitionStory
from emulator.verification.verdict import CheckStatus, Verdict
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
    leaders = [change.leader for change in orders.changes if change.election is not Election.NONE]
    assert run.story.problem is None
    assert {each.topic for each in run.story.partitions} == {"orders", "ledger", "idle"}
    assert [leader for leader in leaders if leader is not None] == [1, 3]
    assert any(change.election is Election.UNCLEAN for change in orders.changes)
    assert run.verdict.era == ("kafka-3.9" if version == "3.9.1" else "kafka-4.2")


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_claimed_of_what_nobody_saw(version: str, tmp_path: Path) -> None:
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
