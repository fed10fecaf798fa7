"""``laststand sql``: queries over run directories."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from laststand.cli.options.spark import SparkChoice, spark_options
from laststand.cli.output.output import Output, csv_option, json_option
from laststand.cli.program.user_error import UserError
from laststand.cli.spark.run_tables import no_cache_option, skip_broken_option, tables_of
from laststand.emulator.user_files import read_document


@click.command(short_help="Query run directories with SQL.")
@click.argument("words", metavar="RUN... [QUERY]", nargs=-1, required=True, type=click.Path())
@click.option(
    "--file", type=click.Path(path_type=Path, allow_dash=True), help="Read the query from this file, or - for stdin."
)
@skip_broken_option
@no_cache_option
@spark_options
@csv_option
@json_option
def sql(
    words: tuple[str, ...],
    *,
    file: Path | None,
    skip_broken: bool,
    no_cache: bool,
    spark_choice: SparkChoice,
    output: Output,
) -> None:
    r"""Print the answer to QUERY, in Spark's SQL, over all RUN directories together.

    Without QUERY it asks for queries, one after another, in one session: \d lists the tables, \q quits. Queries may
    also come through a pipe, each up to its semicolon.

    A directory that holds runs stands for all of them. The tables are runs, history, replica_batches, faults,
    partition_changes, high_watermarks, verdicts, lost_records, availability, events, and one for each type of event,
    such as log_truncated. docs/tables.md describes them; so does DESCRIBE.
    """
    from laststand.cli.spark.frames import explained, print_frame
    from laststand.cli.spark.sql_prompt import ask_queries

    paths, query = _divide(words, file)
    with tables_of(
        paths, skip_broken=skip_broken, no_cache=no_cache, spark_choice=spark_choice, query=query or ""
    ) as runs:
        if query is None:
            ask_queries(runs, output=output)
            return
        with explained():
            frame = runs.sql(query)
        print_frame(frame, output=output)


def _divide(words: Sequence[str], file: Path | None) -> tuple[list[Path], str | None]:
    """Returns the runs and the query; no query if the last word is a directory, too."""
    if file is None and Path(words[-1]).is_dir():
        return [Path(run) for run in words], None
    runs, query = (words[:-1], words[-1]) if file is None else (words, _query(file))
    if not runs:
        raise UserError('the runs or the query are missing: laststand sql RUN... "SELECT ..."')
    if not query.strip():
        raise UserError("the query is empty")
    return [Path(run) for run in runs], query.strip().rstrip(";")


def _query(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return read_document(file)
    except OSError as error:
        raise UserError(f"--file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"--file {file}: not a text file, so it is no query") from None
