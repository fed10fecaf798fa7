"""Runs as tables, for the verbs that ask about them."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.options.spark import SparkChoice
from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laststand.emulator.analysis import BrokenRun, BrokenRunsError, Runs
    from laststand.emulator.verification.reading.run_plan import RunPlan

skip_broken_option = click.option(
    "--skip-broken",
    is_flag=True,
    help="Leave out runs that are missing or cannot be read whole, instead of refusing all.",
)
"""Adds ``--skip-broken``; the function gets ``skip_broken``."""

no_cache_option = click.option(
    "--no-cache",
    is_flag=True,
    help="Decode every run, also one whose tables are kept beside it (tables.cache), and keep nothing.",
)
"""Adds ``--no-cache``; the function gets ``no_cache``."""


@contextlib.contextmanager
def tables_of(
    paths: Sequence[Path], *, skip_broken: bool, no_cache: bool, spark_choice: SparkChoice
) -> "Iterator[Runs]":
    """Yields the runs as tables in a Spark session; names on stderr the runs that were left out.

    Raises:
        UserError: a run is missing or cannot be read whole, or none is left.
    """
    from laststand.cli.program.requirements import require_spark
    from laststand.emulator.analysis.runs import settings_for
    from laststand.emulator.verification.spark.class_archive import ArchiveUse
    from laststand.emulator.verification.spark.session import SparkLostError, SparkSessionError

    plans, missing = _planned(paths, skip_broken=skip_broken)
    require_spark()
    place = Path(tempfile.mkdtemp(prefix="laststand-"))
    try:
        starter = spark_choice.starter(
            log_directory=place,
            archive_use=ArchiveUse.READ,
            imported="laststand.emulator.analysis.filling",
            settings=settings_for(plans),
        )
        try:
            starter.start()
            with starter.at_work() as spark:
                yield _read(spark, plans, missing, skip_broken=skip_broken, no_cache=no_cache)
        finally:
            starter.stop()
    finally:
        if not isinstance(sys.exception(), SparkSessionError | SparkLostError):  # these name the log
            shutil.rmtree(place, ignore_errors=True)


def _planned(paths: Sequence[Path], *, skip_broken: bool) -> "tuple[tuple[RunPlan, ...], tuple[BrokenRun, ...]]":
    """Lists the runs, and refuses what is none before Spark takes its seconds to start."""
    from laststand.emulator.analysis.runs import BrokenRunsError, plan_runs

    for path in paths:
        if not skip_broken and not path.is_dir():
            raise UserError(f"{path}: no such directory")
    plans, missing = plan_runs(paths)
    if missing and not skip_broken:
        raise _refusal(BrokenRunsError(missing))
    return plans, missing


def _refusal(error: "BrokenRunsError") -> UserError:
    return UserError(f"{error}; --skip-broken leaves out such runs")


def _read(
    spark: "SparkSession",
    plans: "Sequence[RunPlan]",
    missing: "Sequence[BrokenRun]",
    *,
    skip_broken: bool,
    no_cache: bool,
) -> "Runs":
    from laststand.emulator.analysis import BrokenRunsError, Keeping, OnBroken
    from laststand.emulator.analysis.runs import read_planned

    try:
        runs = read_planned(
            spark,
            plans,
            missing,
            on_broken=OnBroken.SKIP if skip_broken else OnBroken.REFUSE,
            keeping=Keeping.NONE if no_cache else Keeping.KEEP,
        )
    except BrokenRunsError as error:
        raise _refusal(error) from error
    for broken in runs.broken:
        click.echo(f"left out: {broken.path}: {broken.reason}", err=True)
    if len(runs.broken) == len(plans) + len(missing):
        raise UserError("no run is left")
    return runs
