"""Listings on stdout: columns for people, JSON for programs."""

from collections.abc import Sequence
from typing import TypeAlias

import click
import msgspec

Cell: TypeAlias = str | int | None
"""What a column holds; ``None`` is printed as ``-``."""


def print_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Prints a table, each column as wide as its widest cell; numbers are to the right."""
    texts = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    is_number = [
        all(isinstance(row[column], int | None) for row in rows) and bool(rows) for column in range(len(header))
    ]
    for line in (list(header), *texts):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def print_json(value: object) -> None:
    """Prints a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value)))
