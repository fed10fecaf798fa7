"""``laststand export``: the tables of runs as files, for other programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from emulator.cli.output import Output, json_option, report_done
from emulator.cli.run_tables import skip_broken_option, tables_of
from emulator.cli.spark_options import SparkChoice, spark_options
from emulator.cli.user_error import UserError

_FORMATS: Final = {"parquet": "zstd", "json": "gzip"}
"""Formats of files, and how they are compressed."""


@click.command(short_help="Write the tables of runs as Parquet.")
@click.argument("words", metavar="RUN... DIR", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--to", "file_format", type=click.Choice(tuple(_FORMATS)), default="parquet", show_default=True)
@skip_broken_option
@spark_options
@json_option
def export(
    words: tuple[Path, ...], *, file_format: str, skip_broken: bool, spark_choice: SparkChoice, output: Output
) -> None:
    """Write the tables of all RUN directories into the new directory DIR, a folder each.

    docs/tables.md describes the tables. A table without rows is written, too.
    """
    from emulator.analysis.catalogue import TABLE_NAMES

    paths, directory = _divide(words)
    if directory.exists():
        raise UserError(f"{directory}: exists; expected a new directory")
    with tables_of(paths, skip_broken=skip_broken, spark_choice=spark_choice) as runs:
        directory.mkdir(parents=True)
        for name in TABLE_NAMES:
            writer = runs.table(name).write.option("compression", _FORMATS[file_format])
            writer.format(file_format).save(str((directory / name).resolve()))
    document = {"directory": str(directory), "format": file_format, "tables": TABLE_NAMES}
    report_done(f"{len(TABLE_NAMES)} tables in {directory}", document, output)


def _divide(words: Sequence[Path]) -> tuple[Sequence[Path], Path]:
    if len(words) < 2:
        raise UserError("the runs or the directory are missing: laststand export RUN... DIR")
    return words[:-1], words[-1]
