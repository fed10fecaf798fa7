"""``laststand start``: goes on with a standing cluster that was stopped or died."""

from pathlib import Path

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.standing.connections import directory_argument
from laststand.cli.standing.launching import start_again


@click.command(short_help="Start a stopped cluster again.")
@directory_argument
@json_option
def start(place: Path, *, output: Output) -> None:
    """Start CLUSTER again, by default the latest one, with the data, ids and record that it had.

    It was ended with ``laststand stop``, by a shutdown of the machine, or its supervisor was killed. Ports are those of
    before where they are free, and always those of ``up --ports``. Every node runs again, the next incarnation of it.
    """
    start_again(place, output=output)
