"""``laststand status``: the state of a standing cluster."""

import sys
import time
from pathlib import Path

import click
import msgspec

from laststand.cli.output.output import Output, json_option
from laststand.cli.standing.connections import directory_argument, locate, status_of
from laststand.cli.standing.status_text import print_status, status_document


@click.command(short_help="Show nodes, partitions and faults.")
@directory_argument
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: seconds between two updates.",
)
@click.option("--metrics", "has_metrics", is_flag=True, help="Show the nodes' metrics, too, and their addresses.")
@json_option
def status(place: Path, *, watch: bool, interval_s: float, has_metrics: bool, output: Output) -> None:
    """Show nodes, partitions and all faults in force of CLUSTER, by default the latest one.

    With ``--watch`` a terminal is cleared before each update; elsewhere updates follow each other, in JSON one a line.
    """
    directory = locate(place)
    if not watch:
        print_status(status_of(directory), has_metrics=has_metrics, output=output)
        return
    while True:
        report = status_of(directory)
        if output is Output.JSON:
            click.echo(msgspec.json.encode(status_document(report)))
        else:
            click.clear()
            print_status(report, has_metrics=has_metrics, output=output)
        sys.stdout.flush()
        time.sleep(interval_s)
