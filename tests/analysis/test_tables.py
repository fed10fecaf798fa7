"""The tables of a run, with numbers worked out by hand from the times in ``stories.failover``."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from laststand.emulator.analysis import TABLES_VERSION, Runs, read_runs
from laststand.emulator.analysis.catalogue import EVENT_TABLES, TABLE_NAMES
from laststand.emulator.verification.tables.vocabulary import EVENT_TYPES
from tests.analysis.conftest import Row
from tests.verification.run_builder import RunBuilder, healthy

RowsOf = Callable[..., list[Row]]


def test_every_row_says_which_run_it_is_of_and_when(runs: Runs, failover_run: Path) -> None:
    for name in TABLE_NAMES:
        for row in runs.table(name).select("run", "scenario", "era", "seed", "time_ns", "time_s").collect():
            assert (row.run, row.scenario, row.era, row.seed) == (str(failover_run), "failover", "kip-966", None)
            assert row.time_s == (row.time_ns - 1_000_000_000) / 1e9


def test_run(runs: Runs, rows_of: RowsOf) -> None:
    (run,) = rows_of(runs.runs, "time_s", "end_s", "workload_begin_s", "workload_end_s", "brokers", "tables_version")
    assert run == {
        "time_s": 0.0,
        "end_s": 19.0,
        "workload_begin_s": 1.0,
        "workload_end_s": 17.2,
        "brokers": 3,
        "tables_version": TABLES_VERSION,
    }


def test_history(runs: Runs, rows_of: RowsOf) -> None:
    sends = rows_of(runs.history.filter("kind = 'send'"), "time_s", "end_s", "latency_ms", "outcome", "acks", "node")
    assert [tuple(row.values()) for row in sends] == [
        (1.0, 1.1, 100.0, "ok", -1, 0),
        (5.5, 6.0, 500.0, "ok", -1, 1),
        (9.2, 9.3, 100.0, "ok", 1, 2),
        (10.0, 11.0, 1000.0, "fail", -1, 2),
        (17.0, 17.2, 200.0, "ok", -1, 1),
    ]
    polls = rows_of(runs.history.filter("kind = 'poll'"), "phase", "record_count")
    assert [tuple(row.values()) for row in polls] == [("live", 10), ("live", 10), ("live", 10), ("final", 30)]
    (read,) = rows_of(runs.history.filter("kind = 'final_read'"), "start_offset", "end_offset")
    assert read == {"start_offset": 0, "end_offset": 30}


def test_faults_have_begin_end_and_targets(runs: Runs, rows_of: RowsOf) -> None:
    names = ("fault", "targets", "nodes", "time_s", "effect_s", "end_s", "duration_s", "had_effect")
    assert [tuple(row.values()) for row in rows_of(runs.faults, *names)] == [
        ("isolate", ["0"], [0], 3.0, 3.0, 14.0, 11.0, True),
        ("isolate", ["1"], [1], 7.0, 7.5, 14.0, 7.0, True),
        ("power_loss", ["2"], [2], 11.0, 11.0, 13.0, 2.0, True),
    ]


def test_one_action_on_several_links_is_one_fault(spark: SparkSession, tmp_path: Path, rows_of: RowsOf) -> None:
    run = healthy(tmp_path / "s" / "1")
    run.at(10.0)
    run.fault("cut", "0->1")
    run.fault("cut", "1->0")
    run.step("{cut: ...}")
    run.fault("cut", "0->2", effect=None)
    run.at(12.0)
    run.heal("heal", "1->0")
    run.at(13.0)
    run.heal("cut", "0->1")
    names = ("targets", "nodes", "duration_s", "had_effect")
    assert [tuple(row.values()) for row in rows_of(read_runs(spark, [run.finish()]).faults, *names)] == [
        (["0->1", "1->0"], [0, 1], 3.0, True),
        (["0->2"], [0, 2], None, False),
    ]


def test_partition_changes_know_the_state_before_and_how_long_they_lasted(runs: Runs, rows_of: RowsOf) -> None:
    names = ("time_s", "end_s", "previous_leader", "leader", "previous_isr", "isr", "previous_elr", "elr", "election")
    assert [tuple(row.values()) for row in rows_of(runs.partition_changes, *names)] == [
        (0.0, 5.0, None, 0, [], [0, 1, 2], [], [], "none"),
        (5.0, 9.0, 0, 1, [0, 1, 2], [1, 2], [], [], "isr"),
        (9.0, 12.0, 1, 2, [1, 2], [2], [], [1], "isr"),
        (12.0, 13.0, 2, None, [2], [], [1], [1, 2], "no_candidate"),
        (13.0, 15.0, None, None, [], [], [1, 2], [1], "none"),
        (15.0, 16.0, None, 1, [], [1], [1], [], "elr"),
        (16.0, 19.0, 1, 1, [1], [0, 1, 2], [], [], "none"),
    ]


def test_availability(runs: Runs, rows_of: RowsOf) -> None:
    names = ("state", "time_s", "end_s", "duration_s", "leaders", "acked_records", "acked_all_records")
    assert [tuple(row.values()) for row in rows_of(runs.availability, *names)] == [
        ("writable", 0.0, 9.0, 9.0, [0, 1], 20, 20),
        ("below_min_isr", 9.0, 12.0, 3.0, [2], 10, 0),
        ("leaderless", 12.0, 15.0, 3.0, [], 0, 0),
        ("below_min_isr", 15.0, 16.0, 1.0, [1], 0, 0),
        ("writable", 16.0, 19.0, 3.0, [1], 10, 10),
    ]


def test_availability_ends_with_the_topic(spark: SparkSession, tmp_path: Path, rows_of: RowsOf) -> None:
    from laststand.emulator.core import events
    from laststand.emulator.core.types import MetadataOffset, TopicId
    from tests.verification.run_builder import CAUSE, CONTROLLER

    run = RunBuilder(tmp_path / "s" / "1", begin_s=1.0)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    run.send()
    run.at(4.0)
    deleted = events.TopicDeleted(
        cause_id=CAUSE,
        metadata_offset=MetadataOffset(run.metadata_offset),
        topic="orders",
        topic_id=TopicId("orders-id"),
    )
    run.note(CONTROLLER, deleted)
    run.metadata_offset += 1
    run.at(9.0)
    run.stop_all()
    (row,) = rows_of(read_runs(spark, [run.write()]).availability, "state", "duration_s")
    assert row == {"state": "writable", "duration_s": 3.0}


def test_high_watermarks(runs: Runs, rows_of: RowsOf) -> None:
    leaders = rows_of(runs.high_watermarks.filter("role = 'leader'"), "time_s", "node", "old", "new")
    assert [tuple(row.values()) for row in leaders] == [(1.1, 0, 0, 10), (6.0, 1, 0, 20), (17.2, 1, 0, 30)]
    followers = rows_of(runs.high_watermarks.filter("role = 'follower' and time_s < 2"), "node", "new")
    assert {(row["node"], row["new"]) for row in followers} == {(1, 10), (2, 10)}


def test_replica_batches_are_the_final_logs(runs: Runs) -> None:
    found = runs.replica_batches.select("node", "base_offset", "last_offset", "leader_epoch").collect()
    assert sorted(tuple(row) for row in found) == [
        (node, base_offset, base_offset + 9, epoch)
        for node in (0, 1, 2)
        for base_offset, epoch in ((0, 0), (10, 1), (20, 4))
    ]


def test_verdict_and_losses(runs: Runs, rows_of: RowsOf) -> None:
    (verdict,) = rows_of(runs.verdicts, "verdict", "lost_records", "violated", "counts")
    assert verdict == {
        "verdict": "valid",
        "lost_records": 0,
        "violated": [],
        "counts": [
            {"acks": -1, "sent": 40, "acked": 30, "lost": 0, "never_acked": 10},
            {"acks": 1, "sent": 10, "acked": 10, "lost": 10, "never_acked": 0},
        ],
    }
    (lost,) = rows_of(runs.lost_records, "time_s", "acks", "record_count", "base_offset", "acknowledged_by", "holders")
    assert lost == {
        "time_s": 9.3,
        "acks": 1,
        "record_count": 10,
        "base_offset": 20,
        "acknowledged_by": 2,
        "holders": [],
    }


def test_events_by_type(runs: Runs, rows_of: RowsOf) -> None:
    (lost,) = rows_of(runs.events["PowerLost"], "time_s", "node", "lost_node", "old_end_offset", "new_end_offset")
    assert lost == {"time_s": 11.0, "node": 1000, "lost_node": 2, "old_end_offset": 30, "new_end_offset": 0}
    advanced = runs.events["HighWatermarkAdvanced"].orderBy("time_s").select("replicas.broker_id").first()
    assert advanced is not None
    assert advanced[0] == [0, 1, 2]
    assert len(runs.events) == len(set(EVENT_TYPES)) == len(EVENT_TABLES)
    assert runs.events["StrayDeleted"].count() == 0


def test_all_events_are_one_table(runs: Runs, failover_run: Path) -> None:
    written = sum(len(path.read_text().splitlines()) for path in (failover_run / "events").iterdir())
    assert runs.table("events").count() == written
    by_type = {row["type"]: row["count"] for row in runs.table("events").groupBy("type").count().collect()}
    assert by_type["PartitionChanged"] == runs.partition_changes.count() == 7


def test_the_switches_of_a_run_are_a_map(runs: Runs) -> None:
    row = runs.runs.select("switches.elr", "switches.truncation").first()
    assert row is not None
    assert tuple(row) == ("on", "leader_epoch")


def test_tables_are_views_for_sql(spark: SparkSession, runs: Runs) -> None:
    runs.create_views(("faults", "power_lost"))
    row = spark.sql("select count(*) from faults join power_lost using (run) where fault = 'power_loss'").first()
    assert row is not None
    assert row[0] == 1


def test_runs_are_distinguished_and_read_once(spark: SparkSession, failover_run: Path, tmp_path: Path) -> None:
    other = healthy(tmp_path / "healthy" / "1").finish()
    both = read_runs(spark, [failover_run, other, other / "."])
    found = {row["scenario"]: row["count"] for row in both.partition_changes.groupBy("scenario").count().collect()}
    assert found == {"failover": 7, "healthy": 1}
    both.release()
    assert both.runs.count() == 2
