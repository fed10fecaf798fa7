"""``laststand start``: starts a standing cluster again that was stopped or died."""

from pathlib import Path

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.standing.connections import directory_argument
from laststand.cli.standing.launching import start_again


@click.command(short_help="Start a stopped cluster again.")
@directory_argument
@click.option(
    "--era",
    metavar="ERA",
    help="Era whose rules every node follows from now on, such as kafka-4.2, or kip-966,elr=off.  [default: as before]",
)
@json_option
def start(place: Path, era: str | None, *, output: Output) -> None:
    """Start CLUSTER again, by default the latest one, with the data, ids and record that it had.

    CLUSTER was ended with ``laststand stop``, by a shutdown of the machine, or its supervisor was killed. Ports are the
    earlier ones if they are free, and always those of ``up --ports``. Every node runs again, as its next incarnation.
    With --era all nodes run other software; to upgrade them one by one, use ``laststand chaos start NODE --era``.
    """
    start_again(place, era=era, output=output)
