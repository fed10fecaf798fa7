"""Prints Spark's results on stdout, and its errors as one line."""

import contextlib
import csv
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, assert_never

import click
import msgspec

from laststand.cli.output.output import Output
from laststand.cli.output.tables import Cell, print_json, print_listing
from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_IDENTITY: Final = ("run", "scenario", "era", "seed")


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turns Spark's errors about a query into user errors.

    Raises:
        UserError: Spark refused the query, or met a value that it cannot compute with.
    """
    from pyspark.errors import PySparkException

    logging.getLogger("SQLQueryContextLogger").disabled = True  # it prints the JVM's stack trace of each refusal
    try:
        yield
    except PySparkException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise UserError(lines[0].rstrip(";") if lines else type(error).__name__) from error


def print_frame(frame: "DataFrame", *, output: Output) -> None:
    """Prints all rows of a DataFrame: as a table, as a JSON list of objects, or as CSV.

    Raises:
        UserError: Spark could not compute them.
    """
    rows = _rows(frame)
    match output:
        case Output.JSON:
            print_json(rows)
        case Output.CSV:
            _print_csv(frame.columns, rows)
        case Output.TEXT:
            _print_text(frame.columns, rows)
        case _:
            assert_never(output)


def print_analysis(frame: "DataFrame", *, output: Output) -> None:
    """Prints an analysis; in text, a run to which all rows belong is named once, above the table.

    Raises:
        UserError: Spark could not compute it.
    """
    identity = [name for name in _IDENTITY if name in frame.columns]
    if output is not Output.TEXT or not identity:
        print_frame(frame, output=output)
        return
    rows, columns = _rows(frame), frame.columns
    described = [{name: row[name] for name in identity} for row in rows]
    if described and all(each == described[0] for each in described):
        click.echo(", ".join(f"{name} {_cell(value)}" for name, value in described[0].items()))
        columns = [name for name in columns if name not in identity]
    _print_text(columns, rows)


def _rows(frame: "DataFrame") -> list[dict[str, object]]:
    """Returns all rows of a DataFrame.

    Raises:
        UserError: Spark could not compute them.
    """
    with explained():
        return [row.asDict(recursive=True) for row in frame.collect()]


def _print_text(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    print_listing(columns, [[_cell(row[name]) for name in columns] for row in rows])


def flat(frame: "DataFrame") -> "DataFrame":
    """Returns a DataFrame in a form for one CSV file: lists and objects as JSON text, all rows in one partition."""
    from pyspark.sql.functions import col, to_json
    from pyspark.sql.types import ArrayType, MapType, StructType

    nested = {
        field.name for field in frame.schema.fields if isinstance(field.dataType, ArrayType | MapType | StructType)
    }
    columns = [to_json(col(name)).alias(name) if name in nested else col(name) for name in frame.columns]
    return frame.select(*columns).repartition(1)


def _print_csv(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_csv_cell(row[name]) for name in columns] for row in rows)


def _cell(value: object) -> Cell:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float() | None:
            return value
        case list():
            return f"[{', '.join(str(_cell(each)) for each in value)}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_cell(each)}' for key, each in value.items())}}}"
        case _:
            return str(value)


def _csv_cell(value: object) -> Cell:
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict | bool) else _cell(value)
