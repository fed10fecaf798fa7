"""``laststand up``: starts a cluster that runs until ``laststand down``."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from emulator.cli.failure import CommandFailedError
from emulator.cli.output import Output, json_option
from emulator.cli.standing import DEFAULT_STORE, status_of
from emulator.cli.user_error import UserError

_SEED_BITS: Final = 31


@click.command(short_help="Start a standing cluster.")
@click.option(
    "--brokers", type=click.IntRange(min=1, max=100), default=3, show_default=True, metavar="N", help="How many."
)
@click.option("--era", metavar="ERA", help="Protocol.  [default: kip-966]")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a switch or a Kafka property.")
@click.option("--no-proxies", is_flag=True, help="No proxies between nodes: faster, but links cannot be cut.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Seed of power losses; random if not given.")
@click.option(
    "--out",
    "store",
    type=click.Path(path_type=Path),
    default=DEFAULT_STORE,
    show_default=True,
    metavar="DIR",
    help="Store: the cluster's directory is made in DIR/standing.",
)
@json_option
def up(
    brokers: int,
    era: str | None,
    settings: tuple[str, ...],
    *,
    no_proxies: bool,
    seed: int | None,
    store: Path,
    output: Output,
) -> None:
    """Start a controller, brokers 0 to N-1 and a proxy for each pair of them, and return when all brokers are unfenced.

    A supervisor in the background owns them all. It listens in the cluster's directory, where the other commands find
    it, and records there what happens, as in a run. Stop it with ``laststand down``, then verify the run with
    ``laststand verify``. If the supervisor is killed, the whole cluster ends with it.
    """
    from chaos.play.run_directory import LATEST, check_store, new_directory
    from chaos.standing.launch import NotStartedError, launch
    from chaos.standing.link import is_standing
    from chaos.standing.order import ORDER_FILE, STANDING, StandingOrder
    from emulator.cli.overrides import parse_overrides
    from emulator.cli.requirements import require_toxiproxy
    from emulator.core.switches import DEFAULT_ERA, era_switches

    overrides = parse_overrides(settings)
    era = era or DEFAULT_ERA
    switches = overrides.apply(era_switches(era))
    check_store(store)
    latest = store / STANDING / LATEST
    if (latest / ORDER_FILE).is_file() and is_standing(latest.resolve()):
        raise UserError(
            f"a cluster is up in {latest.resolve()} already; stop it with: laststand down {latest.resolve()}, "
            "or start this one in another store with --out"
        )
    toxiproxy = None if no_proxies else str(require_toxiproxy())
    directory = new_directory(store, STANDING, now=datetime.now(UTC))
    order = StandingOrder(
        directory=str(directory),
        brokers=brokers,
        era=era,
        switches=switches,
        properties=dict(overrides.properties),
        seed=random.SystemRandom().getrandbits(_SEED_BITS) if seed is None else seed,
        toxiproxy=toxiproxy,
    )
    try:
        launch(order)
    except NotStartedError as error:
        raise CommandFailedError(str(error)) from None
    from emulator.cli.status import print_status

    report = status_of(directory)
    if output is Output.JSON:
        print_status(report, output=output)
        return
    click.echo(f"{brokers} brokers and a controller serve, era {era}, supervisor {report.supervisor_pid}")
    click.echo(f"  run directory: {directory}")
    click.echo("  bootstrap:     " + ",".join(node.address for node in report.nodes if node.role == "broker"))
    click.echo(f"  stop it with:  laststand down {directory}")
