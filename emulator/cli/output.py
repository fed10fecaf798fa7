"""The option that every verb has: ``--json``."""

from enum import Enum

import click
import msgspec


class Output(Enum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"


json_option = click.option(
    "--json",
    "output",
    flag_value=Output.JSON,
    default=Output.TEXT,
    type=click.UNPROCESSED,
    help="Print results as JSON.",
)
"""Adds ``--json``; the function gets ``output``."""


def report_done(text: str, document: object, output: Output) -> None:
    """Prints that something was done: a sentence, or as JSON what it is about."""
    if output is Output.JSON:
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
    else:
        click.echo(text)
