"""Verifies runs: plans what to read, has a Spark task judge each run, and makes sure that each was judged whole.

The driver lists files and reads no evidence. A task reads one run and judges it in plain Python (``judge``), in a
process that is forked from one that has imported the checks (``worker_daemon``). A large run is judged by many tasks
(``sliced``).
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emulator.verification.judge import Judgement, judge, report_unjudged
from emulator.verification.run_directory import open_run_directory
from emulator.verification.run_plan import RunPlan, plan_run
from emulator.verification.sliced import is_large, judge_sliced
from emulator.verification.story_file import write_story
from emulator.verification.verdict import VerdictReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SLICES_PER_CORE: Final = 4
"""Enough for the cores to end at about the same time."""


def verify_runs(paths: Sequence[Path], *, spark: "SparkSession") -> tuple[VerdictReport, ...]:
    """Judges any number of runs in one go, and leaves the story of each in its directory (``story.json``).

    A directory that cannot be written is left without; whoever writes the verdict there will notice.

    Args:
        paths: run directories, visible to Spark's workers; the reports come in the same order.
        spark: the session.

    Raises:
        ConfigError: one of ``paths`` is no run directory.
    """
    plans: list[RunPlan] = []
    unplanned: dict[int, VerdictReport] = {}
    for number, path in enumerate(paths):
        run = open_run_directory(path)
        try:
            plans.append(plan_run(number, run))
        except OSError as error:
            unplanned[number] = report_unjudged(run, (f"verification failed: {type(error).__name__}: {error}",))
    judgements = judge_runs(plans, spark=spark)
    for plan, judgement in zip(plans, judgements, strict=True):
        with contextlib.suppress(OSError):
            write_story(judgement.story, plan.run.path)
    reports = {judgement.number: judgement.report for judgement in judgements}
    return tuple((reports | unplanned)[number] for number in range(len(paths)))


def judge_runs(plans: Sequence[RunPlan], *, spark: "SparkSession") -> tuple[Judgement, ...]:
    """Has planned runs judged; one that no task can judge is ``unknown``, and the others are judged all the same."""
    sliced = {plan.number: found for plan in plans if is_large(plan) and (found := _sliced(plan, spark)) is not None}
    whole = [plan for plan in plans if plan.number not in sliced]
    judged = {**sliced, **(_judged_whole(whole, spark) if whole else {})}
    return tuple(
        judged.get(plan.number)
        or Judgement(number=plan.number, report=report_unjudged(plan.run, ("no task reported on this run",)))
        for plan in plans
    )


def _sliced(plan: RunPlan, spark: "SparkSession") -> Judgement | None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return judge_sliced(plan, spark=spark)
    except (Py4JJavaError, PySparkException):
        return _failed(plan)


def _judged_whole(plans: Sequence[RunPlan], spark: "SparkSession") -> dict[int, Judgement]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return _judge_on(spark, plans)
    except (Py4JJavaError, PySparkException):
        if len(plans) > 1:
            return {number: found for plan in plans for number, found in _judged_whole((plan,), spark).items()}
        return {plans[0].number: _failed(plans[0])}


def _failed(plan: RunPlan) -> Judgement:
    report = report_unjudged(plan.run, ("the task that judged the run failed; spark.log says why",))
    return Judgement(number=plan.number, report=report)


def _judge_on(spark: "SparkSession", plans: Sequence[RunPlan]) -> dict[int, Judgement]:
    context = spark.sparkContext
    slices = min(len(plans), context.defaultParallelism * _SLICES_PER_CORE)
    # Small runs share a task, and the largest ones are dealt out first.
    ordered = sorted(plans, key=lambda plan: sum(plan.sizes.values()), reverse=True)
    dealt = [ordered[number::slices] for number in range(slices)]
    judged = context.parallelize(dealt, slices).flatMap(_judge_all).collect()
    return {judgement.number: judgement for judgement in judged}


def _judge_all(plans: Sequence[RunPlan]) -> list[Judgement]:
    return [judge(plan) for plan in plans]


def rehearse(spark: "SparkSession") -> None:
    """Starts the process that workers are forked from, so that the first verification need not wait for it."""
    spark.sparkContext.parallelize([0], 1).count()
