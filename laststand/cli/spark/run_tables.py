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

    from laststand.emulator.analysis import BrokenRunsError, Runs

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
    from laststand.emulator.verification.spark.class_archive import ArchiveUse
    from laststand.emulator.verification.spark.session import SparkLostError, SparkSessionError

    if not skip_broken:
        _refuse_what_is_no_run(paths)
    require_spark()
    place = Path(tempfile.mkdtemp(prefix="laststand-"))
    try:
        starter = spark_choice.starter(
            log_directory=place, archive_use=ArchiveUse.READ, imported="laststand.emulator.analysis.filling"
        )
        try:
            starter.start()
            with starter.at_work() as spark:
                yield _read(spark, paths, skip_broken=skip_broken, no_cache=no_cache)
        finally:
            starter.stop()
    finally:
        if not isinstance(sys.exception(), SparkSessionError | SparkLostError):  # these name the log
            shutil.rmtree(place, ignore_errors=True)


def _refuse_what_is_no_run(paths: Sequence[Path]) -> None:
    """Says so before Spark takes its seconds to start."""
    from laststand.emulator.analysis.runs import BrokenRunsError, plan_runs

    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path}: no such directory")
    _, missing = plan_runs(paths)
    if missing:
        raise _refusal(BrokenRunsError(missing))


def _refusal(error: "BrokenRunsError") -> UserError:
    return UserError(f"{error}; --skip-broken leaves out such runs")


def _read(spark: "SparkSession", paths: Sequence[Path], *, skip_broken: bool, no_cache: bool) -> "Runs":
    from laststand.emulator.analysis import BrokenRunsError, Keeping, OnBroken, read_runs
    from laststand.emulator.verification.reading.run_directory import find_runs

    try:
        runs = read_runs(
            spark,
            paths,
            on_broken=OnBroken.SKIP if skip_broken else OnBroken.REFUSE,
            keeping=Keeping.NONE if no_cache else Keeping.KEEP,
        )
    except BrokenRunsError as error:
        raise _refusal(error) from error
    for broken in runs.broken:
        click.echo(f"left out: {broken.path}: {broken.reason}", err=True)
    if len(runs.broken) == sum(len(find_runs(path)) for path in paths):
        raise UserError("no run is left")
    return runs
