"""Runs that are verified together do not depend on each other: one that breaks its task is unknown, and no other."""

import os
import signal
import sys
from collections.abc import Callable, KeysView
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from laststand.emulator.verification.judge import Judgement
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import plan_run
from laststand.emulator.verification.story.story_file import STORY_FILE, read_story
from laststand.emulator.verification.verdict.report import Verdict, VerdictReport
from laststand.emulator.verification.verify import judge_runs, verify_runs
from tests.conftest import FILES_PASSED_OVER
from tests.verification.conftest import Judge
from tests.verification.run_builder import healthy, last_replica_standing

pytestmark = pytest.mark.spark


class EndsItsTask(dict[str, int]):
    """Sizes that end the task that compares them."""

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        sys.exit("enough")


class KillsItsWorker(dict[str, int]):
    """Sizes that kill the process of the task that compares them, as the kernel does for want of memory."""

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("killed")


def test_a_run_that_cannot_be_read_leaves_the_others_alone(judge_by_spark: Judge, tmp_path: Path) -> None:
    runs = {name: healthy(tmp_path / name / "1").finish() for name in ("first", "broken", "last")}
    (runs["broken"] / "events/7-0.jsonl").mkdir()
    verdicts = {name: report.verdict for name, report in judge_by_spark(runs).items()}
    assert verdicts == {"first": Verdict.VALID, "broken": Verdict.UNKNOWN, "last": Verdict.VALID}


def test_a_run_whose_files_cannot_be_listed_leaves_the_others_alone(judge_by_spark: Judge, tmp_path: Path) -> None:
    runs = {name: healthy(tmp_path / name / "1").finish() for name in ("first", "broken", "last")}
    (runs["broken"] / "events/7-0.jsonl").symlink_to("nowhere")
    reports = judge_by_spark(runs)
    verdicts = {name: report.verdict for name, report in reports.items()}
    assert verdicts == {"first": Verdict.VALID, "broken": Verdict.UNKNOWN, "last": Verdict.VALID}
    assert reports["broken"].unknown_reasons[0].startswith("verification failed: FileNotFoundError: ")
    assert reports["broken"].run == str(runs["broken"])


@pytest.mark.parametrize("deadly", [EndsItsTask, KillsItsWorker])
def test_a_run_that_ends_its_worker_leaves_the_others_alone(
    deadly: type[dict[str, int]], spark: SparkSession, tmp_path: Path
) -> None:
    plans = [
        plan_run(number, open_run_directory(healthy(tmp_path / str(number) / "1").finish())) for number in range(3)
    ]
    plans[1] = msgspec.structs.replace(plans[1], sizes=deadly(plans[1].sizes))
    judgements = sorted(judge_runs(plans, spark=spark), key=lambda each: each.number)
    reports = [judgement.report for judgement in judgements]
    assert [report.verdict for report in reports] == [Verdict.VALID, Verdict.UNKNOWN, Verdict.VALID]
    assert reports[1].unknown_reasons == ("the task that judged the run failed; spark.log says why",)


def jobs_of(spark: SparkSession, group: str, judge_all: Callable[[], object]) -> int:
    """Returns how many jobs it takes."""
    context = spark.sparkContext
    context.setJobGroup(group, group)
    judge_all()
    return len(context.statusTracker().getJobIdsForGroup(group))


def test_many_runs_are_judged_by_jobs_of_some(spark: SparkSession, tmp_path: Path) -> None:
    """Runs that were judged are told of before the next job begins."""
    runs = [healthy(tmp_path / str(number) / "1").finish() for number in range(7)]
    told: list[tuple[int, int]] = []

    def tell(number: int, report: VerdictReport) -> None:
        assert report.run == str(runs[number])
        assert read_story(runs[number]).problem is None
        told.append((number, sum((run / STORY_FILE).exists() for run in runs)))

    jobs = jobs_of(spark, "some", lambda: verify_runs(runs, spark=spark, on_report=tell, runs_per_job=3))
    assert jobs == 3
    assert sorted(number for number, _ in told) == list(range(7))
    assert [stories for _, stories in told] == [1, 2, 3, 4, 5, 6, 7]


def test_of_many_runs_those_that_fail_are_found_by_halves(spark: SparkSession, tmp_path: Path) -> None:
    run = open_run_directory(healthy(tmp_path / "1").finish())
    plans = [plan_run(number, run) for number in range(64)]
    plans[21] = msgspec.structs.replace(plans[21], sizes=EndsItsTask(plans[21].sizes))
    found: list[Judgement] = []
    jobs = jobs_of(spark, "halves", lambda: found.extend(judge_runs(plans, spark=spark)))
    assert jobs == 1 + 2 * 6  # each of the six halvings has one half that fails
    assert [each.number for each in found if each.report.verdict is not Verdict.VALID] == [21]


def test_reports_come_in_the_order_of_the_runs(spark: SparkSession, tmp_path: Path) -> None:
    runs = [
        last_replica_standing(tmp_path / str(number) / "1", era="kafka-3.9" if number % 3 else "kip-966").finish()
        for number in range(9)
    ]
    reports = verify_runs(runs, spark=spark)
    assert [read_story(run).problem for run in runs] == [None] * 9
    assert [report.run for report in reports] == [str(run) for run in runs]
    assert [report.verdict for report in reports] == [
        Verdict.VIOLATION if number % 3 else Verdict.VALID for number in range(9)
    ]


def test_nothing_to_verify_is_no_report(spark: SparkSession) -> None:
    assert verify_runs([], spark=spark) == ()


def test_no_setting_lets_files_be_passed_over(spark: SparkSession) -> None:
    assert [spark.conf.get(name) for name in FILES_PASSED_OVER] == ["false", "false"]


def test_a_worker_has_the_checks_before_its_first_task(spark: SparkSession) -> None:
    modules = spark.sparkContext.parallelize([0], 1).map(lambda _: sorted(sys.modules)).collect()[0]
    assert "laststand.emulator.verification.rules.checks.e1_log_agreement" in modules
