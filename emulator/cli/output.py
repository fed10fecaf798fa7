"""The option that every listing has: ``--json``."""

from enum import Enum

import click


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
