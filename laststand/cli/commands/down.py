"""``laststand down``: stops a standing cluster in order."""

from pathlib import Path

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.requirements import verify_command
from laststand.cli.standing.connections import directory_argument, end_cluster, locate


@click.command(short_help="End a standing cluster for good.")
@directory_argument
@click.option("--as-is", is_flag=True, help="Do not heal, resume or start anything first.")
@json_option
def down(place: Path, *, as_is: bool, output: Output) -> int:
    """End CLUSTER, by default the latest one, for good, and say how to verify what it left.

    Clients finish, links are healed, nodes that are down or paused run again, and every partition gets a leader and a
    full ISR; a fresh consumer reads every partition; then brokers, controller and proxies stop in order.

    To start the cluster again with its data, end it with ``laststand stop`` instead. If the supervisor of a cluster in
    containers was killed, only the containers are removed: ``laststand start`` can still start the cluster again.

    Exit code: 0 if all of that went well, 2 if not, so that the verdict will be unknown.
    """
    from laststand.chaos.scenario.scenario import Ending
    from laststand.chaos.standing import messages

    directory = locate(place)
    problem: str | None
    removed = _remove_abandoned(directory)
    if removed:
        problem = f"its supervisor was killed, and {removed} containers and networks that it left were removed"
    else:
        problem = end_cluster(directory, messages.TakeDown(ending=Ending.AS_IS if as_is else Ending.RESTORE))
    verify = verify_command(directory)
    if output is Output.JSON:
        print_json({"directory": str(directory), "problem": problem, "verify": verify})
    else:
        click.echo("the cluster is down" if problem is None else f"the cluster is down, but: {problem}")
        click.echo(f"  run directory: {directory}")
        click.echo(f"  verify it with: {verify}")
    return ExitCode.VALID if problem is None else ExitCode.UNKNOWN


def _remove_abandoned(directory: Path) -> int:
    """Removes the containers and networks of a killed supervisor; returns their number."""
    from laststand.chaos.process.hosts import remove_leftovers
    from laststand.chaos.standing.link import is_standing
    from laststand.chaos.standing.order import read_order
    from laststand.emulator.plan.drivers import DriverName

    order = read_order(directory)
    if order.driver is not DriverName.DOCKER or order.project is not None or is_standing(directory):
        return 0
    return remove_leftovers(order.driver, directory)
