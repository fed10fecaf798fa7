"""Runs as tables, for the commands that query them."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.options.spark import SparkChoice
from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.emulator.analysis import Runs
    from laststand.emulator.verification.spark.session import SparkSessionStarter

skip_broken_option = click.option(
    "--skip-broken",
    is_flag=True,
    help="Leave out runs that are missing or cannot be read completely, instead of refusing all.",
)
"""Adds ``--skip-broken``; the function gets ``skip_broken``."""

no_cache_option = click.option(
    "--no-cache",
    is_flag=True,
    help="Decode every run again: neither read nor write its cached tables (tables.cache).",
)
"""Adds ``--no-cache``; the function gets ``no_cache``."""


@contextlib.contextmanager
def tables_of(
    paths: Sequence[Path], *, skip_broken: bool, no_cache: bool, spark_choice: SparkChoice, query: str = ""
) -> "Iterator[Runs]":
    """Yields the runs as tables in a Spark session; names on stderr the runs that were left out.

    Args:
        paths: run directories, and directories that hold some.
        skip_broken: leave out runs that are missing or cannot be read whole.
        no_cache: decode every run, and cache nothing.
        spark_choice: the user's choice of Spark.
        query: the first question; it is refused for a misspelled name while Spark starts.

    Raises:
        UserError: a run is missing or cannot be read completely, or none is left, or the query has a misspelled name.
    """
    from laststand.cli.program.requirements import require_spark
    from laststand.emulator.verification.spark.class_archive import ArchiveUse
    from laststand.emulator.verification.spark.session import SparkLostError, SparkSessionError

    _check_directories(paths, skip_broken=skip_broken)
    require_spark()
    place = Path(tempfile.mkdtemp(prefix="laststand-"))
    try:
        starter = spark_choice.starter(
            log_directory=place, archive_use=ArchiveUse.READ, imported="laststand.emulator.analysis.filling"
        )
        try:
            starter.start()
            starter.hurry()  # the user waits for nothing else
            with _opened(
                starter, spark_choice.conf, paths, place, skip_broken=skip_broken, no_cache=no_cache, query=query
            ) as runs:
                yield runs
        finally:
            starter.stop()
    finally:
        if not isinstance(sys.exception(), SparkSessionError | SparkLostError):  # these name the log
            shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def _opened(
    starter: "SparkSessionStarter",
    given: Mapping[str, str],
    paths: Sequence[Path],
    place: Path,
    *,
    skip_broken: bool,
    no_cache: bool,
    query: str,
) -> "Iterator[Runs]":
    """Yields the runs once Spark has started; all work that needs no Spark, including imports, is done meanwhile."""
    from laststand.emulator.analysis import BrokenRunsError, Keeping, OnBroken
    from laststand.emulator.analysis.query_names import UnknownNameError, check_names
    from laststand.emulator.analysis.rows import TaskRows, read_here
    from laststand.emulator.analysis.runs import plan_runs, runs_of, settings_for

    try:
        check_names(query)
    except UnknownNameError as error:
        raise UserError(str(error)) from None
    plans, missing = plan_runs(paths)
    try:
        if missing and not skip_broken:
            raise BrokenRunsError(missing)
        keeping = Keeping.NONE if no_cache else Keeping.KEEP
        rows = read_here(plans, keeping, master=starter.master, directory=place)
        with starter.at_work() as spark:
            for name, value in settings_for(plans).items():
                if name not in given:
                    spark.conf.set(name, value)
            runs = runs_of(
                rows or TaskRows(spark, plans, keeping),
                spark,
                plans,
                missing,
                on_broken=OnBroken.SKIP if skip_broken else OnBroken.REFUSE,
            )
            for broken in runs.broken:
                click.echo(f"left out: {broken.path}: {broken.reason}", err=True)
            if len(runs.broken) == len(plans) + len(missing):
                raise UserError("no run is left")
            yield runs
    except BrokenRunsError as error:
        raise UserError(f"{error}; --skip-broken leaves out such runs") from error


def _check_directories(paths: Sequence[Path], *, skip_broken: bool) -> None:
    for path in paths:
        if not skip_broken and not path.is_dir():
            raise UserError(f"{path}: no such directory")
