"""``laststand attach``: takes over a cluster that docker compose started."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.standing.connections import DEFAULT_STORE
from laststand.cli.standing.launching import launch_and_report

_SEED_BITS: Final = 31


@click.command(short_help="Take over a cluster that docker compose started.")
@click.option(
    "--compose-project",
    "project",
    metavar="NAME",
    help="The project, as in docker compose ls; by default that of the container in which this runs.",
)
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
def attach(project: str | None, store: Path, *, output: Output) -> None:
    """Watch the containers of a compose project, so that ``status``, ``topics``, ``chaos`` and ``verify`` work on them.

    Its directory's ``events`` and ``nodes`` are links into the project's volumes. If the user may not read the volumes,
    a helper container copies them: events at once, logs at the end. ``laststand down`` stops the nodes in order;
    containers and volumes stay, until ``docker compose down``.
    """
    from laststand.chaos.play.run_directory import check_store, new_directory
    from laststand.chaos.process.hosts import require_toxiproxy
    from laststand.chaos.standing.order import STANDING, StandingOrder
    from laststand.emulator.cluster.docker_sdk import require_docker_sdk

    require_docker_sdk()
    from laststand.emulator.cluster.containers.engine import connect
    from laststand.emulator.cluster.containers.project import Project, VolumeAccess
    from laststand.emulator.core.eras import plain_switches
    from laststand.emulator.core.switches import DEFAULT_ERA
    from laststand.emulator.node.config import zookeeper_config
    from laststand.emulator.node.environment import kafka_listeners, properties_from, rules_from
    from laststand.emulator.plan.drivers import DriverName

    check_store(store)
    found = Project(connect(), project)
    access = found.volume_access()
    found.check_unattached(access)
    variables = found.variables()
    rules = rules_from(variables)
    directory = new_directory(store, STANDING, now=datetime.now(UTC))
    if access is VolumeAccess.DIRECT:
        found.link_directories(directory)
    order = StandingOrder(
        directory=str(directory),
        brokers=len(found.broker_ids),
        controllers=found.controllers,
        era=variables.get("ERA") or DEFAULT_ERA,
        switches=plain_switches(rules),
        zookeeper=zookeeper_config(rules),
        properties=properties_from(variables, of_file=found.properties_file()),
        seed=random.SystemRandom().getrandbits(_SEED_BITS),
        toxiproxy=str(require_toxiproxy(DriverName.DOCKER)),
        driver=DriverName.DOCKER,
        project=found.name,
        run=variables["RUN"],
        kafka_clients=tuple(kafka_listeners(variables)),
    )
    launch_and_report(order, output=output)
