"""``laststand stop``: ends a standing cluster so that it can be started again."""

from pathlib import Path

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.standing.connections import directory_argument, end_cluster, locate


@click.command(short_help="Stop a standing cluster, to start it again.")
@directory_argument
@json_option
def stop(place: Path, *, output: Output) -> int:
    """Stop CLUSTER, by default the latest one, and keep its data: ``laststand start`` goes on with it.

    Clients are asked to finish; links are healed and paused nodes continued; then brokers, controller and proxies end
    in order. No partition is read to its end: ``laststand down`` does that, and until then the verdict is unknown.

    Exit code: 0 if all of that went well, 2 if not, so that the verdict will be unknown.
    """
    from laststand.chaos.standing import messages

    directory = locate(place)
    problem = end_cluster(directory, messages.StopCluster())
    again = f"laststand start {directory}"
    if output is Output.JSON:
        print_json({"directory": str(directory), "problem": problem, "start": again})
    else:
        click.echo("the cluster is stopped" if problem is None else f"the cluster is stopped, but: {problem}")
        click.echo(f"  run directory: {directory}")
        click.echo(f"  start it with: {again}")
    return ExitCode.VALID if problem is None else ExitCode.UNKNOWN
