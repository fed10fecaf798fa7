"""Prints results: ``--json``, which every verb has, and ``--csv``."""

from enum import Enum

import click
import msgspec


class Output(Enum):
    """The form in which results are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    """Only in verbs with ``csv_option``."""


json_option = click.option(
    "--json",
    "output",
    flag_value=Output.JSON,
    default=Output.TEXT,
    type=click.UNPROCESSED,
    help="Print results as JSON.",
)
"""Adds ``--json``; the function gets ``output``."""


csv_option = click.option(
    "--csv",
    "output",
    flag_value=Output.CSV,
    type=click.UNPROCESSED,
    help="Print results as CSV with a header.",
)
"""Adds ``--csv`` beside ``json_option``."""


def report_done(text: str, document: object, output: Output) -> None:
    """Prints that an action was done: a sentence, or in JSON its subject."""
    if output is Output.JSON:
        click.echo(msgspec.json.format(msgspec.json.encode(document)))
    else:
        click.echo(text)
