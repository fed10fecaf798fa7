"""Verifies runs: plans what to read, has a Spark task judge each run, and makes sure that each was judged whole.

The driver lists files. A task reads one run and judges it in plain Python (``judge``), in a process that is forked from
one that has imported the checks (``worker_daemon``). A large run is judged by many tasks (``slices.jobs``), and the
driver combines their findings. Small runs share a job, some hundreds at a time, so that the driver never holds more
than these, and their results are kept if a later job fails. Without a session this process judges one run after
another.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from laststand.emulator.verification.judge import Judgement, judge, report_unjudged
from laststand.emulator.verification.reading.run_directory import open_run_directory
from laststand.emulator.verification.reading.run_plan import RunPlan, plan_run
from laststand.emulator.verification.slices.jobs import is_large, judge_sliced
from laststand.emulator.verification.story.story_file import write_story
from laststand.emulator.verification.verdict.report import VerdictReport

if TYPE_CHECKING:
    from laststand.emulator.verification.spark.tasks import SparkTasks

RUNS_PER_JOB: Final = 500
"""The judgements of one job take 50 MB if each has a hundred kilobytes."""

_SLICES_PER_CORE: Final = 4
"""Enough tasks for all cores to finish at about the same time."""

OnReport = Callable[[int, VerdictReport], None]
"""Called with the number of a run among the verified ones, and its report."""


def _nobody(_: int, __: VerdictReport) -> None:
    """Does nothing: for callers that only need all reports at the end."""


def verify_runs(
    paths: Sequence[Path],
    *,
    spark: "SparkTasks | None",
    on_report: OnReport = _nobody,
    runs_per_job: int = RUNS_PER_JOB,
) -> tuple[VerdictReport, ...]:
    """Judges any number of runs in one go, and leaves the story of each in its directory (``story.json``).

    If a directory cannot be written, its story is left out without an error; writing the verdict there will fail.

    Args:
        paths: run directories, visible to Spark's workers; the reports come in the same order.
        spark: the session, or ``None`` to judge one run after another in this process.
        on_report: called with each report as soon as it is ready, in any order.
        runs_per_job: number of small runs in a Spark job.

    Raises:
        ConfigError: one of ``paths`` is no run directory.
    """
    reports: dict[int, VerdictReport] = {}

    def add_report(number: int, report: VerdictReport) -> None:
        reports[number] = report
        on_report(number, report)

    plans: list[RunPlan] = []
    for number, run in enumerate([open_run_directory(path) for path in paths]):
        try:
            plans.append(plan_run(number, run))
        except OSError as error:
            add_report(number, report_unjudged(run, (f"verification failed: {type(error).__name__}: {error}",)))
    directories = {plan.number: plan.run.path for plan in plans}
    for judgement in judge_runs(plans, spark=spark, runs_per_job=runs_per_job):
        with contextlib.suppress(OSError):
            write_story(judgement.story, directories[judgement.number])
        add_report(judgement.number, judgement.report)
    return tuple(reports[number] for number in range(len(paths)))


def judge_runs(
    plans: Sequence[RunPlan], *, spark: "SparkTasks | None", runs_per_job: int = RUNS_PER_JOB
) -> Iterator[Judgement]:
    """Yields the judgement of each planned run; a run that no task can judge is ``unknown``."""
    if spark is None:
        yield from map(judge, plans)
        return
    small: list[RunPlan] = []
    for plan in plans:
        found = _sliced(plan, spark) if is_large(plan) else None
        if found is None:
            small.append(plan)
        else:
            yield found
    for begin in range(0, len(small), runs_per_job):
        yield from _judged_whole(small[begin : begin + runs_per_job], spark)


def _sliced(plan: RunPlan, spark: "SparkTasks") -> Judgement | None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return judge_sliced(plan, spark=spark)
    except (Py4JJavaError, PySparkException):
        return _failed(plan)


def _judged_whole(plans: Sequence[RunPlan], spark: "SparkTasks") -> Iterator[Judgement]:
    """Judges runs in one job; if it fails, in a job for each half, until only the runs that make it fail remain."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        judged = _judge_on(spark, plans)
    except (Py4JJavaError, PySparkException):
        if len(plans) == 1:
            yield _failed(plans[0])
        else:
            middle = len(plans) // 2
            yield from _judged_whole(plans[:middle], spark)
            yield from _judged_whole(plans[middle:], spark)
        return
    for plan in plans:
        yield judged.get(plan.number) or Judgement(
            number=plan.number, report=report_unjudged(plan.run, ("no task reported on this run",))
        )


def _failed(plan: RunPlan) -> Judgement:
    report = report_unjudged(plan.run, ("the task that judged the run failed; spark.log says why",))
    return Judgement(number=plan.number, report=report)


def _judge_on(spark: "SparkTasks", plans: Sequence[RunPlan]) -> dict[int, Judgement]:
    context = spark.sparkContext
    slices = min(len(plans), context.defaultParallelism * _SLICES_PER_CORE)
    # Small runs share a task, and the largest ones are dealt out first.
    ordered = sorted(plans, key=lambda plan: sum(plan.sizes.values()), reverse=True)
    dealt = [ordered[number::slices] for number in range(slices)]
    judged = context.parallelize(dealt, slices).flatMap(_judge_all).collect()
    return {judgement.number: judgement for judgement in judged}


def _judge_all(plans: Sequence[RunPlan]) -> list[Judgement]:
    return [judge(plan) for plan in plans]


def rehearse(spark: "SparkTasks") -> None:
    """Starts the process that workers are forked from, so that the first verification need not wait for it."""
    spark.sparkContext.parallelize([0], 1).count()
