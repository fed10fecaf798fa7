"""``laststand up``: starts a cluster that stands until ``laststand stop`` or ``laststand down``."""

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from laststand.cli.options.completion import complete_clusters
from laststand.cli.options.deprecated import warn_of_deprecated
from laststand.cli.options.settings import era_option, set_option, tls_option
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import DEFAULT_STORE
from laststand.cli.standing.launching import launch_and_report, start_again
from laststand.emulator.plan.nodes import CONTROLLER_COUNTS, STANDBY_CONTROLLERS_MAX
from laststand.emulator.plan.path_words import LATEST, PATH_WORD_RULE, is_path_word

_SEED_BITS: Final = 31
_PORT_MIN: Final = 1024
_PORT_MAX: Final = 65_535


@click.command(short_help="Start a standing cluster.")
@click.option(
    "--brokers", type=click.IntRange(min=1, max=100), default=3, show_default=True, metavar="N", help="How many."
)
@click.option(
    "--controllers",
    type=click.Choice([str(count) for count in CONTROLLER_COUNTS]),
    default="1",
    show_default=True,
    help="Number of controllers; several form a quorum.",
)
@click.option(
    "--standby-controllers",
    type=click.IntRange(min=0, max=STANDBY_CONTROLLERS_MAX),
    default=0,
    metavar="N",
    help="Number of further controllers, which are down and no voters until laststand metadata-quorum add starts one "
    "and makes it a voter.",
)
@click.option(
    "--combined",
    is_flag=True,
    help="Controller 100 shares a process with broker 0, and so on (process.roles=broker,controller).",
)
@click.option("--name", metavar="NAME", help="Name of the cluster, accepted wherever its directory is.")
@click.option(
    "--from",
    "again",
    type=click.Path(path_type=Path),
    metavar="CLUSTER",
    shell_complete=complete_clusters,
    help="Go on with a cluster that was stopped or died, as laststand start does.",
)
@click.option(
    "--ports",
    metavar="LIST",
    help="Ports of the brokers, such as 19092,19093,19094; with one more, the first is the controller's.",
)
@click.option("--kafka", "is_kafka", is_flag=True, help="Serve clients of Apache Kafka, on free ports.")
@click.option(
    "--kafka-client",
    "kafka_clients",
    multiple=True,
    metavar="NAME",
    help="Serve a client of Apache Kafka at addresses of its own, so that its links can be cut separately. Repeatable.",
)
@click.option(
    "--kafka-port",
    type=click.IntRange(_PORT_MIN, _PORT_MAX),
    metavar="PORT",
    help="Port of broker 0 for such clients, and the next ones for the others.",
)
@tls_option
@era_option
@set_option
@click.option(
    "--driver",
    type=click.Choice(["process", "docker"]),
    default="process",
    show_default=True,
    help="Processes, or the same in containers.",
)
@click.option("--no-proxies", is_flag=True, help="No proxies between nodes: faster, but links cannot be cut.")
@click.option("--view", "is_viewed", is_flag=True, help="Serve a live page on loopback, and print its address.")
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
    controllers: str,
    standby_controllers: int,
    name: str | None,
    again: Path | None,
    ports: str | None,
    kafka_clients: tuple[str, ...],
    kafka_port: int | None,
    era: str | None,
    settings: tuple[str, ...],
    *,
    combined: bool,
    has_tls: bool,
    is_kafka: bool,
    driver: str,
    no_proxies: bool,
    is_viewed: bool,
    seed: int | None,
    store: Path,
    output: Output,
) -> None:
    """Start controllers, brokers 0 to N-1 and a proxy for each pair of them, and return when all brokers are unfenced.

    In an era with ZooKeeper a ZooKeeper server replaces the controllers, and brokers elect one of them as controller.

    A supervisor in the background owns all processes. The other commands find it in the cluster's directory, where
    everything that happens is recorded as in a run. ``laststand stop`` and ``start`` pause it. End it with ``laststand
    down``, then verify it with ``laststand verify``. If the supervisor is killed, processes die with it; containers are
    removed by ``laststand down``, ``laststand start`` or ``laststand docker prune``.
    """
    from laststand.chaos.play.run_directory import check_store, new_directory
    from laststand.chaos.play.zookeeper_server import zookeeper_for
    from laststand.chaos.process.hosts import require_host, require_toxiproxy
    from laststand.chaos.standing.link import is_standing
    from laststand.chaos.standing.order import ORDER_FILE, STANDING, StandingOrder
    from laststand.cli.program.requirements import require_view
    from laststand.emulator.cluster.zookeeper_program import property_refusals
    from laststand.emulator.core.eras import era_rules, is_zookeeper_era, plain_switches
    from laststand.emulator.core.properties import TLS_PROPERTIES, node_properties
    from laststand.emulator.core.switches import DEFAULT_ERA
    from laststand.emulator.node.config import zookeeper_config
    from laststand.emulator.plan.drivers import DriverName
    from laststand.emulator.plan.names import FEW_BROKERS, NO_QUORUM_TO_JOIN
    from laststand.emulator.plan.nodes import KAFKA, check_kafka_clients
    from laststand.emulator.plan.overrides import parse_overrides
    from laststand.emulator.plan.unsupported_properties import tls_refusal, voters_refusal

    if again is not None:
        _check_alone(click.get_current_context())
        start_again(again, output=output)
        return
    folder = STANDING if name is None else f"{STANDING}/{_checked_name(name)}"
    fixed_ports = {} if ports is None else parse_ports(ports, brokers=brokers)
    overrides = parse_overrides(settings)
    properties = {**(TLS_PROPERTIES if has_tls else {}), **dict(overrides.properties)}
    era = era or DEFAULT_ERA
    host = DriverName(driver)
    zookeeper_for((era,), host)
    if controllers != "1" and is_zookeeper_era(era):
        raise UserError(f"--era {era} excludes --controllers {controllers}: its metadata is in ZooKeeper")
    if standby_controllers and controllers == "1":
        raise UserError(f"--standby-controllers {standby_controllers}: {NO_QUORUM_TO_JOIN}")
    if combined and is_zookeeper_era(era):
        raise UserError(f"--era {era} excludes --combined: it has no controllers")
    if combined and host is DriverName.DOCKER:
        raise UserError("--driver docker excludes --combined: a container has one node")
    if combined and brokers < int(controllers):
        raise UserError(f"--combined: {FEW_BROKERS}, and there are {brokers} for {controllers}")
    if (no_voters := voters_refusal(properties, int(controllers) + standby_controllers)) is not None:
        raise UserError(f"--controllers {controllers}: {no_voters}")
    if is_zookeeper_era(era):
        for refused in property_refusals(node_properties(properties)):
            raise UserError(refused)
    if (no_tls := tls_refusal(properties, host)) is not None:
        hint = "laststand compose --tls prints a cluster of containers that do"
        raise UserError(f"--driver {host.value} excludes --tls: {no_tls}; {hint}")
    rules = overrides.apply(era_rules(era))
    warn_of_deprecated(dict(overrides.properties), era=era)
    check_store(store)
    if is_viewed:
        require_view()
    latest = store / folder / LATEST
    if (latest / ORDER_FILE).is_file() and is_standing(latest.resolve()):
        raise UserError(
            f"a cluster is up in {latest.resolve()} already; stop it with: laststand down {latest.resolve()}, "
            "or give this one another --name"
        )
    require_host(host)
    if fixed_ports and host is DriverName.DOCKER:
        raise UserError("--driver docker excludes --ports: every container has an address of its own")
    if kafka_port is not None and host is DriverName.DOCKER:
        raise UserError("--driver docker excludes --kafka-port: every container has an address of its own")
    if (is_kafka or kafka_port is not None) and not kafka_clients:
        kafka_clients = (KAFKA,)
    problem = check_kafka_clients(kafka_clients)
    if problem is not None:
        raise UserError(f"--kafka-client: {problem}")
    kafka_ports = {} if kafka_port is None else kafka_ports_from(kafka_port, kafka_clients, brokers=brokers)
    toxiproxy = None if no_proxies else str(require_toxiproxy(host))
    directory = new_directory(store, folder, now=datetime.now(UTC))
    order = StandingOrder(
        directory=str(directory),
        brokers=brokers,
        controllers=int(controllers),
        standby_controllers=standby_controllers,
        combined=combined,
        era=era,
        switches=plain_switches(rules),
        zookeeper=zookeeper_config(rules),
        properties=properties,
        seed=random.SystemRandom().getrandbits(_SEED_BITS) if seed is None else seed,
        toxiproxy=toxiproxy,
        ports=fixed_ports,
        driver=host,
        view=is_viewed,
        kafka_clients=kafka_clients,
        kafka_ports=kafka_ports,
    )
    launch_and_report(order, output=output)


def parse_ports(text: str, *, brokers: int) -> dict[int, int]:
    """Returns ports by node id: of brokers 0 to N-1; if there is one more, the first is the controller's.

    Raises:
        UserError: the ports are not different, not as many as nodes, or one is in use.
    """
    from laststand.emulator.plan.nodes import CONTROLLER

    parts = [part.strip() for part in text.split(",")]
    ports = [int(part) for part in parts if part.isdecimal() and _PORT_MIN <= int(part) <= _PORT_MAX]
    if len(ports) != len(parts) or len(set(ports)) != len(ports):
        raise UserError(
            f"--ports {text}: expected different ports from {_PORT_MIN} to {_PORT_MAX}, such as 19092,19093"
        )
    _check_free(ports, f"--ports {text}")
    if len(ports) == brokers:
        return dict(enumerate(ports))
    if len(ports) == brokers + 1:
        return {int(CONTROLLER): ports[0], **dict(enumerate(ports[1:]))}
    raise UserError(f"--ports {text}: expected {brokers} ports, one for each broker, or the controller's before them")


def kafka_ports_from(first: int, clients: Sequence[str], *, brokers: int) -> dict[str, dict[int, int]]:
    """Returns the ports of brokers for each client of Kafka by its name: those of the first client, then the next.

    Raises:
        UserError: the numbers are too high for ports, or one of the ports is in use.
    """
    numbers = range(first, first + len(clients) * brokers)
    if numbers[-1] > _PORT_MAX:
        raise UserError(f"--kafka-port {first}: {len(numbers)} ports from there on go beyond {_PORT_MAX}")
    _check_free(numbers, f"--kafka-port {first}")
    ports = iter(numbers)
    return {client: dict(zip(range(brokers), ports, strict=False)) for client in clients}


def _check_free(ports: Iterable[int], option: str) -> None:
    from laststand.emulator.cluster.ports import is_free

    taken = [str(port) for port in ports if not is_free(port)]
    if taken:
        raise UserError(f"{option}: {', '.join(taken)} {'is' if len(taken) == 1 else 'are'} in use")


def _checked_name(name: str) -> str:
    if not is_path_word(name):
        raise UserError(f"--name {name}: expected {PATH_WORD_RULE}")
    return name


def _check_alone(context: click.Context) -> None:
    """Refuses all options besides ``--from``: the cluster continues with its former settings."""
    allowed = {"again", "output"}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in allowed and source is click.core.ParameterSource.COMMANDLINE:
            raise UserError(f"--from excludes {parameter.opts[0]}: the cluster goes on as it was")
