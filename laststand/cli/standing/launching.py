"""Starts a standing cluster, for the first time or again, and reports its addresses."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laststand.cli.output.output import Output
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.failure import CommandFailedError
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import locate, status_of
from laststand.cli.standing.status_text import print_status
from laststand.emulator.report.numbers import plural

if TYPE_CHECKING:
    from laststand.chaos.standing.order import StandingOrder

_WHO_CONNECTS: Final = "(gRPC: for laststand's commands and its Python clients; for Kafka's clients, use up --kafka)"


def start_again(place: Path, *, era: str | None = None, output: Output) -> None:
    """Starts a cluster again that was stopped or died, with every node in a named era, if any; reports its addresses.

    Raises:
        UserError: there is no such cluster, or it cannot be started again.
        CommandFailedError: the cluster did not come up.
    """
    from laststand.chaos.play.zookeeper_server import zookeeper_for
    from laststand.chaos.process.hosts import require_host, require_toxiproxy
    from laststand.chaos.standing.launch import NotStartedError, order_again
    from laststand.chaos.standing.order import read_order
    from laststand.emulator.core.errors import ConfigError

    directory = locate(place)
    before = read_order(directory)
    require_host(before.driver)
    zookeeper_for((before.era,), before.driver)
    toxiproxy = None if before.toxiproxy is None else require_toxiproxy(before.driver)
    try:
        order = order_again(directory, toxiproxy=toxiproxy, era=era)
    except (NotStartedError, ConfigError) as error:
        raise UserError(str(error)) from None
    launch_and_report(order, output=output)


def client_properties(order: "StandingOrder", client: str) -> dict[str, str]:
    """Returns the properties by which a Kafka client authenticates, if it has a certificate of the cluster."""
    from laststand.emulator.cluster.layout import token_file
    from laststand.emulator.rpc.certificates import Certificates

    certificates = Certificates.beside(token_file(order.path), client)
    if certificates is None or not order.node_properties().has_tls:
        return {}
    return certificates.client_properties


def launch_and_report(order: "StandingOrder", *, output: Output) -> None:
    """Starts a supervisor, waits until the cluster serves, and reports its addresses.

    Raises:
        CommandFailedError: the cluster did not come up.
    """
    from laststand.chaos.standing.launch import NotStartedError, launch
    from laststand.chaos.standing.names import register

    try:
        launch(order)
        register(order.path)
    except NotStartedError as error:
        raise CommandFailedError(str(error), exit_code=ExitCode.UNKNOWN) from None
    directory = order.path
    report = status_of(directory)
    if output is Output.JSON:
        print_status(report, output=output)
        return
    controllers = "a controller" if order.controllers == 1 else plural(order.controllers, "controller")
    other = controllers if report.zookeeper is None else "a ZooKeeper server"
    brokers = plural(order.brokers, "broker")
    click.echo(f"{brokers} and {other} serve, era {order.era}, supervisor {report.supervisor_pid}")
    click.echo(f"  run directory: {directory}")
    click.echo("  bootstrap:     " + ",".join(node.address for node in report.nodes if node.role == "broker"))
    click.echo(f"                 {_WHO_CONNECTS}")
    for client, servers in report.bootstrap_servers.items():
        click.echo(f"  client {client} of Kafka:")
        click.echo(f"bootstrap.servers={','.join(servers)}")
        for name, value in client_properties(order, client).items():
            click.echo(f"{name}={value}")
    if report.view is not None:
        click.echo(f"  live view:     {report.view}")
    click.echo(f"  end it with:   laststand down {directory}")
