"""Queries one after another, over the same runs in the same session: at a prompt, or from standard input."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import click

from laststand.cli.output.output import Output
from laststand.cli.output.tables import print_listing
from laststand.cli.program.user_error import UserError
from laststand.emulator.analysis.catalogue import TABLE_NAMES, table_columns
from laststand.emulator.analysis.query_names import UnknownNameError, check_names
from laststand.emulator.core.errors import suggestion

if TYPE_CHECKING:
    from laststand.emulator.analysis import Runs

_FIRST: Final = "sql> "
_NEXT: Final = "...> "
_HELP: Final = r"""A query ends with ; and may span lines. Tab completes tables and columns.
\d         list the tables
\d TABLE   list a table's columns
\q         quit, as does Ctrl-D"""


def ask_queries(runs: "Runs", *, output: Output) -> None:
    r"""Answers queries until the input is over or says ``\q``.

    At a terminal an error is printed and the next query is read. Elsewhere it ends the command, so that a script fails.

    Raises:
        UserError: a query that did not come from a terminal was refused, or none came.
    """
    if not sys.stdin.isatty():
        if not sum(1 for statement in statements(_lines) if _is_done(statement, runs, output)):
            raise UserError('the runs or the query are missing: laststand sql RUN... "SELECT ..."')
        return
    click.echo(r"\d lists the tables, \? helps, \q quits", err=True)
    _complete()
    for statement in statements(_typed):
        try:
            _answer(statement, runs, output)
        except UserError as error:
            click.echo(str(error), err=True)
        except KeyboardInterrupt:
            runs.cancel()
            click.echo("interrupted", err=True)


def statements(read: Callable[[str], str]) -> Iterator[str]:
    r"""Yields queries without their ``;``, and commands that begin with a backslash, until ``\q``.

    Args:
        read: returns the next line after a prompt; raises ``EOFError`` at the end, ``KeyboardInterrupt`` where the user
            wants to begin again.
    """
    lines: list[str] = []
    while True:
        try:
            line = read(_NEXT if lines else _FIRST)
        except KeyboardInterrupt:
            lines.clear()
            continue
        except EOFError:
            break
        if not lines and line.strip().startswith("\\"):
            if line.split()[0] == r"\q":
                return
            yield line.strip()
        elif lines or line.strip():
            *whole, rest = _divided("\n".join((*lines, line)))
            yield from (query for query in whole if query)
            lines = [rest] if rest else []
    if lines:
        yield "\n".join(lines).strip()


def _divided(text: str) -> list[str]:
    """Returns the queries that end at a ``;`` outside of quotes and comments, and the rest of the text."""
    parts, begin, place = [], 0, 0
    while place < len(text):
        if text[place] in "'\"`":
            place = _end(text, place, text[place])
        elif text.startswith("--", place):
            place = text.find("\n", place) if "\n" in text[place:] else len(text)
        elif text.startswith("/*", place):
            place = text.index("*/", place) + 1 if "*/" in text[place:] else len(text)
        elif text[place] == ";":
            parts.append(text[begin:place].strip())
            begin = place + 1
        place += 1
    return [*parts, text[begin:].strip()]


def _end(text: str, begin: int, quote: str) -> int:
    place = begin + 1
    while place < len(text) and text[place] != quote:
        place += 2 if text[place] == "\\" and quote != "`" else 1
    return place


def _is_done(statement: str, runs: "Runs", output: Output) -> bool:
    _answer(statement, runs, output)
    return True


def _answer(statement: str, runs: "Runs", output: Output) -> None:
    from laststand.cli.spark.frames import explained, print_frame

    if statement.startswith("\\"):
        _answer_command(statement.split())
        return
    try:
        check_names(statement)
    except UnknownNameError as error:
        raise UserError(str(error)) from None
    with explained():
        frame = runs.sql(statement)
    print_frame(frame, output=output)


def _answer_command(words: list[str]) -> None:
    match words:
        case [r"\d"]:
            print_listing(("table", "columns"), [(name, len(table_columns(name))) for name in TABLE_NAMES])
        case [r"\d", table] if table.rstrip(";") in TABLE_NAMES:
            columns = table_columns(table.rstrip(";"))
            rows = [(each.name, each.spark_type, each.unit, each.meaning) for each in columns]
            print_listing(("column", "type", "unit", "meaning"), rows)
        case [r"\d", table]:
            raise UserError(f"no table {table!r}{suggestion(table.lower(), TABLE_NAMES)}")
        case [r"\?"]:
            click.echo(_HELP)
        case _:
            raise UserError(f"no command {words[0]!r}; expected one of \\d, \\d TABLE, \\q, \\?")


def _lines(_prompt: str) -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _typed(prompt: str) -> str:
    try:
        return input(prompt)
    except (EOFError, KeyboardInterrupt):
        click.echo()
        raise


def _complete() -> None:
    """Gives the prompt a history and completion of names, if this Python has readline."""
    with contextlib.suppress(ImportError):
        import readline

        names = sorted({*TABLE_NAMES, *(column.name for name in TABLE_NAMES for column in table_columns(name))})

        def complete(typed: str, number: int) -> str | None:
            found = [name for name in names if name.startswith(typed.lower())]
            return found[number] if number < len(found) else None

        readline.set_completer(complete)
        readline.set_completer_delims(" \t\n,()=<>+-*/.'\"")
        readline.parse_and_bind("tab: complete")
