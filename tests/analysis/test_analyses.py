"""Each analysis over ``stories.failover``, with numbers worked out by hand. Times are since its first event."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laststand.emulator.analysis import Runs, read_runs
from laststand.emulator.analysis.analyses import (
    ANALYSES,
    acks_outcomes,
    elections,
    elr_cost,
    failover_times,
    failovers,
    isr_sizes,
    records_at_risk,
    replica_lag,
)
from laststand.emulator.core import events as e
from tests.analysis.conftest import Row
from tests.analysis.stories import sent_at
from tests.verification.run_builder import RunBuilder

RowsOf = Callable[..., list[Row]]


def values(rows: list[Row]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in rows]


def test_isr_sizes(runs: Runs, rows_of: RowsOf) -> None:
    names = ("time_s", "end_s", "leader", "replicas", "min_isr", "isr_size", "elr_size")
    assert values(rows_of(isr_sizes(runs), *names)) == [
        (0.0, 5.0, 0, 3, 2, 3, 0),
        (5.0, 9.0, 1, 3, 2, 2, 0),
        (9.0, 12.0, 2, 3, 2, 1, 1),
        (12.0, 13.0, None, 3, 2, 0, 2),
        (13.0, 15.0, None, 3, 2, 0, 1),
        (15.0, 16.0, 1, 3, 2, 1, 0),
        (16.0, 19.0, 1, 3, 2, 3, 0),
    ]


def test_elections(runs: Runs, rows_of: RowsOf) -> None:
    assert values(rows_of(elections(runs), "reason", "election", "elections", "partitions", "first_s", "last_s")) == [
        ("broker_fenced", "isr", 2, 1, 5.0, 9.0),
        ("broker_fenced", "no_candidate", 1, 1, 12.0, 12.0),
        ("broker_unfenced", "elr", 1, 1, 15.0, 15.0),
    ]


def test_failovers(runs: Runs, rows_of: RowsOf) -> None:
    # The third leader is elected 4 s after the power loss; it acknowledges what is sent at 17.0 at 17.2.
    names = ("fault", "time_s", "on_leader", "to_new_leader_s", "to_first_ack_s", "to_first_ack_all_s")
    assert values(rows_of(failovers(runs), *names)) == [
        ("isolate", 3.0, True, 2.0, 3.0, 3.0),
        ("isolate", 7.0, True, 2.0, pytest.approx(2.3), None),
        ("power_loss", 11.0, True, 4.0, pytest.approx(6.2), pytest.approx(6.2)),
    ]


def test_what_the_old_leader_acknowledges_before_the_effect_is_no_recovery(
    spark: SparkSession, tmp_path: Path, rows_of: RowsOf
) -> None:
    run = RunBuilder(tmp_path / "s" / "1", begin_s=0.0)
    run.start_brokers(0, 1, 2)
    run.create_topic()
    sent_at(run, 1.1, 1.2)
    run.at(1.5)
    run.fault("slow", "0", begun_s=1.0)
    run.step("{slow: {node: 0}}")
    sent_at(run, 1.5, 2.25)
    run.at(3.5)
    run.fault("slow", "1", begun_s=3.0)
    run.step("{slow: {node: 1}}")
    sent_at(run, 3.25, 3.5)
    run.fault("cut", "0->2", effect=None)
    names = ("targets", "on_leader", "to_new_leader_s", "to_first_ack_s")
    assert values(rows_of(failovers(read_runs(spark, [run.finish()])), *names)) == [
        (["0"], True, None, 1.25),
        (["1"], False, None, 0.5),
    ]


def test_failover_times(runs: Runs, rows_of: RowsOf) -> None:
    names = (
        "era", "fault", "on_leader", "runs", "faults", "elected", "new_leader_median_s", "acked",
        "first_ack_median_s", "first_ack_p95_s", "acked_all", "first_ack_all_median_s",
    )  # fmt: skip
    assert values(rows_of(failover_times(runs), *names)) == [
        ("kip-966", "isolate", True, 1, 2, 2, 2.0, 2, pytest.approx(2.65), pytest.approx(2.965), 1, 3.0),
        ("kip-966", "power_loss", True, 1, 1, 1, 4.0, 1, pytest.approx(6.2), pytest.approx(6.2), 1, pytest.approx(6.2)),
    ]


def test_replica_lag(runs: Runs, rows_of: RowsOf) -> None:
    names = ("time_s", "election", "replica", "is_leader", "was_in_isr", "was_in_elr", "log_end_offset", "behind")
    assert values(rows_of(replica_lag(runs), *names)) == [
        (5.0, "isr", 0, False, True, False, 10, 0),
        (5.0, "isr", 1, True, True, False, 10, 0),
        (5.0, "isr", 2, False, True, False, 10, 0),
        (9.0, "isr", 0, False, False, False, 10, 10),
        (9.0, "isr", 1, False, True, False, 20, 0),
        (9.0, "isr", 2, True, True, False, 20, 0),
        (15.0, "elr", 0, False, False, False, 10, 10),
        (15.0, "elr", 1, True, False, True, 20, 0),
        (15.0, "elr", 2, False, False, False, 0, 20),
    ]


def test_records_at_risk(runs: Runs, rows_of: RowsOf) -> None:
    # acks=1: only broker 2 has them, until it loses power. acks=all: the second batch is on brokers 1 and 2 from 6.0,
    # and on broker 1 alone from 11.0 to 16.0; broker 0 has the first one, too.
    names = ("acks", "time_s", "acknowledged", "one_copy", "page_cache_only", "gone")
    found = values(rows_of(records_at_risk(runs), *names))
    assert [row for row in found if row[0] == 1] == [(1, 9.3, 10, 10, 10, 0), (1, 11.0, 10, 0, 0, 10)]
    assert [row for row in found if row[0] == -1] == [
        (-1, 1.1, 10, 0, 10, 0),
        (-1, 6.0, 20, 0, 20, 0),
        (-1, 11.0, 20, 10, 20, 0),
        (-1, 16.0, 20, 0, 20, 0),
        (-1, 17.2, 30, 0, 30, 0),
        (-1, 19.0, 30, 0, 0, 0),
    ]


def test_what_is_known_to_be_on_disk_is_not_in_page_caches_only(
    spark: SparkSession, tmp_path: Path, rows_of: RowsOf
) -> None:
    runs = {truncation_sync: tmp_path / truncation_sync / "1" for truncation_sync in ("on", "off")}
    for truncation_sync, path in runs.items():
        run = RunBuilder(path, begin_s=0.0, switches={"truncation_sync": truncation_sync})
        run.start_brokers(0, 1, 2)
        run.create_topic()
        for second in (1.0, 2.0):
            run.at(second)
            run.send()
        run.at(3.0)
        run.power_loss(1, keep=10)  # the first batch remains: it was on disk
        run.at(4.0)
        run.truncate(2, 20)  # a cut above both batches
        run.at(9.0)
        run.finish()
    names = ("run", "time_s", "acknowledged", "one_copy", "page_cache_only", "gone")
    found = values(rows_of(records_at_risk(read_runs(spark, tuple(runs.values()))), *names))
    for truncation_sync, last_s in (("on", 4.0), ("off", 9.0)):
        assert [row[1:] for row in found if row[0] == str(runs[truncation_sync])] == [
            (1.0, 10, 0, 10, 0),
            (2.0, 20, 0, 20, 0),
            (3.0, 20, 0, 10, 0),
            (last_s, 20, 0, 0, 0),
        ]
    assert len(found) == 8


def test_acks_outcomes(runs: Runs, rows_of: RowsOf) -> None:
    names = ("acks", "sent", "acknowledged", "unacknowledged", "failed", "unknown", "lost")
    assert values(rows_of(acks_outcomes(runs), *names)) == [(-1, 40, 30, 10, 10, 0, 0), (1, 10, 10, 0, 0, 0, 10)]


def test_elr_cost(runs: Runs, rows_of: RowsOf) -> None:
    names = ("time_s", "waited_s", "elr", "last_leader", "leader", "election", "kept")
    assert values(rows_of(elr_cost(runs), *names)) == [(12.0, 3.0, [1, 2], 2, 1, "elr", 20)]


def test_elr_cost_knows_a_wait_without_end_from_an_orderly_stop(
    spark: SparkSession, tmp_path: Path, rows_of: RowsOf
) -> None:
    runs = {reason: tmp_path / reason / "1" for reason in ("broker_fenced", "controlled_shutdown")}
    for reason, path in runs.items():
        run = RunBuilder(path, begin_s=0.0)
        run.start_brokers(0, 1, 2)
        run.create_topic()
        run.at(1.0)
        run.send()
        run.at(2.0)
        run.alter(reason=reason, broker=0, leader=None, election=e.Election.NO_CANDIDATE, isr=(), elr=(0, 1))
        run.at(5.0)
        run.finish()
    costs = elr_cost(read_runs(spark, tuple(runs.values())))
    found = rows_of(costs, "run", "waited_s", "elr", "last_leader", "leader", "kept")
    assert values(found) == [(str(runs["broker_fenced"]), 3.0, [0, 1], 0, None, None)]


@pytest.mark.parametrize("name", sorted(set(ANALYSES) - {"failover-times"}))
def test_every_row_says_which_run_it_is_of(runs: Runs, name: str) -> None:
    assert ANALYSES[name](runs).columns[:4] == ["run", "scenario", "era", "seed"]
