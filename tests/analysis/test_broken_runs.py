"""Runs that cannot be read whole fill no tables, and one line says why."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laststand.emulator.analysis import BrokenRunsError, OnBroken, read_runs
from tests.verification.run_builder import healthy


def _missing(path: Path) -> None:
    for each in sorted(path.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    path.rmdir()


def _empty(path: Path) -> None:
    _missing(path)
    path.mkdir()


def _without_events(path: Path) -> None:
    _missing(path / "events")


def _torn(path: Path) -> None:
    events = path / "events" / "0-0.jsonl"
    events.write_bytes(events.read_bytes()[:-20])


def _torn_history(path: Path) -> None:
    history = path / "history.jsonl"
    history.write_bytes(history.read_bytes()[:-20])


def _other_version(path: Path) -> None:
    events = path / "events" / "0-0.jsonl"
    events.write_text(events.read_text().replace('"type": "LogOpened"', '"type": "LogUnlocked"'))


def _with_a_gap(path: Path) -> None:
    events = path / "events" / "100-0.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(lines[:3] + lines[4:]))


def _being_written(path: Path) -> None:
    events = path / "events" / "harness.jsonl"
    lines = [line for line in events.read_text().splitlines(keepends=True) if "IncarnationEnded" not in line]
    events.write_text("".join(lines[:-1]))


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (_missing, "it is no run directory"),
    "empty": (_empty, "it is no run directory"),
    "without events": (_without_events, "the harness's event file is missing"),
    "torn": (_torn, "event file 0-0.jsonl has 1 lines that are no events"),
    "torn history": (_torn_history, "the history has 1 lines that are no operations"),
    "other version": (_other_version, "event file 0-0.jsonl has events of unknown type LogUnlocked"),
    "gap": (_with_a_gap, "event file 100-0.jsonl has gaps"),
    "being written": (_being_written, "how incarnation 0 of node 100 ended was not recorded"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_run_is_refused_in_one_line(spark: SparkSession, tmp_path: Path, name: str) -> None:
    spoil, reason = BROKEN[name]
    path = healthy(tmp_path / "s" / "1").finish()
    spoil(path)
    with pytest.raises(BrokenRunsError) as raised:
        read_runs(spark, [path])
    assert str(raised.value).startswith(f"{path} cannot be analyzed: {reason}")
    assert "\n" not in str(raised.value)


def test_one_broken_run_among_others_is_named_and_left_out(spark: SparkSession, tmp_path: Path) -> None:
    whole = [healthy(tmp_path / f"s{number}" / "1").finish() for number in range(2)]
    broken = healthy(tmp_path / "broken" / "1").finish()
    _torn(broken)
    nowhere = tmp_path / "nowhere"
    runs = read_runs(spark, [whole[0], broken, nowhere, whole[1]], on_broken=OnBroken.SKIP)
    assert {each.path for each in runs.broken} == {broken, nowhere}
    assert {row.run for row in runs.runs.collect()} == {str(path) for path in whole}
    with pytest.raises(BrokenRunsError, match="nor 1 other run"):
        read_runs(spark, [whole[0], broken, nowhere])


def test_a_run_that_proves_nothing_is_read_and_its_verdict_says_so(spark: SparkSession, tmp_path: Path) -> None:
    run = healthy(tmp_path / "s" / "1")
    run.fault("isolate", "0", effect=None)
    verdict = read_runs(spark, [run.finish()]).verdicts.select("verdict", "unknown_reasons").first()
    assert verdict is not None
    assert tuple(verdict) == ("unknown", ["fault isolate on 0 had no effect"])
