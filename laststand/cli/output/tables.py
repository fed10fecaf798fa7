"""Listings on stdout: tables for people, JSON for programs."""

import sys
from collections.abc import Sequence
from typing import Final, TypeAlias

import click
import msgspec
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

Cell: TypeAlias = str | int | float | None
"""A value in a column; ``None`` is printed as ``-``, a fraction with three decimals."""

PAGE_WIDTH: Final = 160
_ANY_WIDTH: Final = 10_000
_COLUMN_GAP: Final = 2


def print_table(table: Table, *, page_width: int = PAGE_WIDTH) -> None:
    """Prints a table as wide as the terminal, or ``page_width`` characters wide without a terminal."""
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else page_width).print(table)


def print_listing(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Prints rows without borders, numbers aligned right; rows are folded only on a terminal that is too narrow."""
    listing = Table(box=None, pad_edge=False, padding=(0, _COLUMN_GAP, 0, 0), header_style="")
    for heading, *cells in zip(header, *rows, strict=True):
        is_number = bool(cells) and all(isinstance(cell, int | float | None) for cell in cells)
        listing.add_column(Text(heading), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        listing.add_row(*(Text(_text(cell)) for cell in row))
    unlimited = Console(width=_ANY_WIDTH)
    widest = Measurement.get(unlimited, unlimited.options, listing).maximum
    print_table(listing, page_width=widest + _COLUMN_GAP)  # the measure leaves out the gap behind an empty last column


def fits(rows: Sequence[Sequence[str]]) -> bool:
    """Returns whether a listing of these rows, with its header, fits the width of the terminal or of a page."""
    width = Console(file=sys.stdout).width if sys.stdout.isatty() else PAGE_WIDTH
    widest = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return sum(widest) + _COLUMN_GAP * len(widest) <= width


def _text(cell: Cell) -> str:
    match cell:
        case None:
            return "-"
        case float():
            return f"{cell:.3f}"
        case _:
            return str(cell)


def print_json(value: object) -> None:
    """Prints a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value)))
