"""Rows that are kept beside a run are those that its evidence gives, and nothing of them is taken that is not."""

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laststand.emulator.analysis import BrokenRunsError, Keeping, filling, read_runs, rows, run_source
from laststand.emulator.analysis.filling import Block, fill_from
from laststand.emulator.analysis.kept_tables import KEPT_FILE, program_digest
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import RunPlan, plan_run
from tests.analysis.stories import failover
from tests.verification.run_builder import healthy, last_replica_standing


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return failover(tmp_path / "failover" / "1")


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The runs whose evidence was decoded."""
    paths: list[Path] = []
    read = run_source.read_source

    def noted(plan: RunPlan) -> run_source.RunSource:
        paths.append(plan.run.path)
        return read(plan)

    monkeypatch.setattr(filling, "read_source", noted)
    return paths


def filled(*runs: Path, program: bytes | None = b"this code") -> list[Block]:
    return list(fill_from([plan_run(number, open_run_directory(run)) for number, run in enumerate(runs)], program))


def test_the_second_question_decodes_nothing_and_gets_the_same(run: Path, tmp_path: Path, decoded: list[Path]) -> None:
    other = healthy(tmp_path / "healthy" / "1").finish()
    afresh = filled(run, other, program=None)
    assert not (run / KEPT_FILE).exists()
    assert filled(run, other) == afresh
    decoded.clear()
    assert filled(run, other) == afresh
    assert decoded == []
    swapped = filled(other, run)
    assert decoded == []
    assert {(block.table, 1 - block.number, block.content) for block in swapped} == set(afresh)
    assert list(run.glob(f"{KEPT_FILE}.*")) == []


def test_rows_of_other_evidence_another_place_or_other_code_are_not_taken(run: Path, decoded: list[Path]) -> None:
    filled(run)
    moved = run.rename(run.with_name("2"))
    assert {str(moved).encode() in b"".join(map(str.encode, block.lines())) for block in filled(moved)} == {True}
    filled(moved, program=b"other code")
    cluster = moved / "cluster.yaml"
    cluster.write_text(cluster.read_text().replace("kip-966", "kafka-3.9"))
    assert all('"era":"kafka-3.9"' in line for block in filled(moved) for line in block.lines() if block.table)
    assert decoded == [run, moved, moved, moved]


def test_evidence_that_was_altered_is_refused_also_with_rows_at_hand(run: Path) -> None:
    filled(run)
    history = next(run.glob("history.*"))
    history.write_bytes(history.read_bytes()[:-20])
    [told] = filled(run)
    assert told.table == filling.BROKEN
    segment = next(run.glob("nodes/*/data/*-*/[0-9]*.log"))
    segment.unlink()
    assert [block.table for block in filled(run)] == [filling.BROKEN]


def test_a_replica_that_is_gone_is_missed_also_if_its_directory_was_empty(run: Path, decoded: list[Path]) -> None:
    (run / "nodes/0/data/other-0").mkdir()
    filled(run)
    (run / "nodes/0/data/other-0").rmdir()
    filled(run)
    assert decoded == [run, run]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: content + b"x",
        lambda content: b"\0" * len(content),
    ],
)
def test_rows_that_are_damaged_are_decoded_and_kept_anew(
    run: Path, decoded: list[Path], damage: Callable[[bytes], bytes]
) -> None:
    afresh, kept = filled(run), (run / KEPT_FILE).read_bytes()
    (run / KEPT_FILE).write_bytes(damage(kept))
    assert filled(run) == afresh
    assert decoded == [run, run]
    assert (run / KEPT_FILE).read_bytes() == kept


def test_something_else_of_that_name_is_left_alone(run: Path) -> None:
    (run / KEPT_FILE).mkdir()
    assert filled(run) == filled(run, program=None)
    assert (run / KEPT_FILE).is_dir()
    (run / KEPT_FILE).rmdir()
    os.mkfifo(run / KEPT_FILE)
    assert filled(run) == filled(run, program=None)


def test_a_directory_that_cannot_be_written_is_no_obstacle(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    afresh = filled(run, program=None)

    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refused)
        assert filled(run) == afresh
    assert [path.name for path in run.iterdir() if path.name.startswith(KEPT_FILE)] == []
    monkeypatch.setattr(Path, "open", refused)
    assert filled(run) == afresh


def test_what_a_killed_process_left_behind_is_removed(run: Path) -> None:
    (run / f"{KEPT_FILE}.0123.unfinished").write_bytes(b"half")
    filled(run)
    assert [path.name for path in run.iterdir() if path.name.startswith(KEPT_FILE)] == [KEPT_FILE]


def test_several_at_once_get_the_same_and_leave_one_whole_file(run: Path, decoded: list[Path]) -> None:
    afresh = filled(run, program=None)
    with ThreadPoolExecutor(4) as pool:
        answers: Sequence[list[Block]] = list(pool.map(lambda _: filled(run), range(8)))
    assert all(answer == afresh for answer in answers)
    filled(run)
    decoded.clear()
    assert filled(run) == afresh
    assert decoded == []
    assert [path.name for path in run.iterdir() if path.name.startswith(KEPT_FILE)] == [KEPT_FILE]


def test_a_broken_run_keeps_nothing(run: Path) -> None:
    shutil.rmtree(run / "nodes/0")
    assert [block.table for block in filled(run)] == [filling.BROKEN]
    assert not (run / KEPT_FILE).exists()


def test_the_digest_of_the_code_is_that_of_all_of_it() -> None:
    assert len(program_digest()) == 32
    assert program_digest() == program_digest()


def test_tables_of_several_runs_are_the_same_rows_in_the_same_order(spark: SparkSession, tmp_path: Path) -> None:
    runs = [healthy(tmp_path / "kept" / str(number)).finish() for number in range(2)]
    runs += [last_replica_standing(tmp_path / "lost" / era, era=era).finish() for era in ("kafka-3.9", "kip-966")]
    afresh = read_runs(spark, runs, keeping=Keeping.NONE)
    assert not list(tmp_path.rglob(KEPT_FILE))
    first = read_runs(spark, runs)
    assert len(list(tmp_path.rglob(KEPT_FILE))) == len(runs)
    second = read_runs(spark, runs)
    for name in ("events", "history", "partition_changes", "verdicts", "lost_records"):
        rows = afresh.table(name).collect()
        assert first.table(name).collect() == rows
        assert second.table(name).collect() == rows
    next(runs[0].glob("history.*")).unlink()
    with pytest.raises(BrokenRunsError):
        read_runs(spark, runs)


def test_tasks_of_spark_read_the_same_rows_as_this_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [failover(tmp_path / "failover" / "1"), last_replica_standing(tmp_path / "lost", era="kip-966").finish()]
    names = ("runs", "events", "history", "partition_changes", "log_truncated")

    def answers() -> list[list[str]]:
        found = read_runs(spark, runs)
        return [sorted(map(str, found.table(name).collect())) for name in names]

    here = answers()
    monkeypatch.setattr(rows, "_LOCAL_MB", -1)
    monkeypatch.setattr(rows, "LocalRows", lambda *_: pytest.fail("this process reads them"))
    assert answers() == here


def test_a_table_is_there_when_the_runs_are_not_asked_any_more(spark: SparkSession, run: Path) -> None:
    table = read_runs(spark, [run]).faults
    shutil.rmtree(run)
    assert table.count() == 3
