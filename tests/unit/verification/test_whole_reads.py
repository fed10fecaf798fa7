"""A verdict is given only on evidence that was read whole: whatever a task did not get makes the run unknown."""

from collections.abc import Callable
from pathlib import Path

import pytest

from laststand.emulator.verification.judge import judge
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import RunPlan, plan_run
from laststand.emulator.verification.verdict.report import CheckStatus, Verdict
from tests.verification.run_builder import last_replica_standing

FILES = (
    "events/0-0.jsonl",
    "events/100-0.jsonl",
    "events/harness.jsonl",
    "history.jsonl",
    f"nodes/1/data/orders-0/{0:020}.log",
    "nodes/1/data/orders-0/partition.metadata",
)


def planned(path: Path) -> RunPlan:
    return plan_run(0, open_run_directory(last_replica_standing(path / "1", era="kafka-3.9").finish()))


def shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\n")


def test_a_run_that_is_read_whole_is_judged(tmp_path: Path) -> None:
    report = judge(planned(tmp_path)).report
    assert report.verdict is Verdict.VIOLATION
    assert report.lost_records > 0


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("change", [Path.unlink, shorten, lengthen])
def test_a_file_that_is_not_read_as_planned_makes_the_run_unknown(
    file: str, change: Callable[[Path], None], tmp_path: Path
) -> None:
    plan = planned(tmp_path)
    assert file in plan.sizes
    change(plan.run.path / file)
    report = judge(plan).report
    assert report.verdict is Verdict.UNKNOWN
    assert {check.status for check in report.checks} == {CheckStatus.UNKNOWN}
    assert [file in reason for reason in report.unknown_reasons] == [True]


def test_a_file_that_was_not_planned_makes_the_run_unknown(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    (plan.run.path / "events/7-0.jsonl").write_text("")
    report = judge(plan).report
    assert report.unknown_reasons == ("verification was to read nothing of events/7-0.jsonl, and read 0 bytes",)


def test_a_run_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    (plan.run.path / "events/7-0.jsonl").mkdir()
    report = judge(plan).report
    assert report.verdict is Verdict.UNKNOWN
    assert "is a directory; expected a file" in report.unknown_reasons[0]
