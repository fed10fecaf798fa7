"""``laststand tap``: records the responses that unmodified clients of a cluster get."""

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laststand.cli.output.output import Output, json_option, report_done
from laststand.cli.program.requirements import require_kio
from laststand.cli.program.user_error import UserError

if TYPE_CHECKING:
    from laststand.emulator.cluster.external_cluster import ExternalCluster
    from laststand.emulator.cluster.kafka_tap import KafkaTap, Listen

_ENDS: Final = (signal.SIGINT, signal.SIGTERM)


@click.command(short_help="Record what unmodified clients of a cluster send and receive.")
@click.option(
    "--listen",
    "place",
    metavar="HOST:PORT",
    default="127.0.0.1:9092",
    show_default=True,
    help="Where clients reach the first broker; the others are at the next ports.",
)
@click.option("--advertised", metavar="HOST", help="The host in answers to clients; that of --listen if not given.")
@click.option("--upstream", metavar="HOST:PORT,...", required=True, help="Addresses of brokers of the cluster.")
@click.option("--out", metavar="RUN", required=True, type=click.Path(path_type=Path), help="The new run directory.")
@click.option("--era", metavar="NAME", help="Era whose rules judge the run; by default that of the cluster's features.")
@click.option("--keys", "has_keys", is_flag=True, help="Write down keys of records, too, so that lost ones are named.")
@click.option("--i-own-this-cluster", "owned", metavar="CLUSTER_ID", help="As for laststand run --driver external.")
@json_option
def tap(
    place: str,
    advertised: str | None,
    upstream: str,
    *,
    out: Path,
    era: str | None,
    has_keys: bool,
    owned: str | None,
    output: Output,
) -> None:
    """Forward clients of Kafka to a cluster and record what they send and receive, until Ctrl-C.

    Unmodified clients connect to the tap instead of the cluster. RUN gets their requests and responses, without the
    values of records. At the end all partitions that they have used are read once. laststand verify RUN then lists the
    acknowledged records that are gone.
    """
    require_kio()
    host, port = _host_and_port(place)

    from laststand.emulator.cluster.cluster_finder import find_cluster
    from laststand.emulator.cluster.kafka_tap import Listen
    from laststand.emulator.core.switches import era_switches

    listen = Listen(host, port, advertised or host)
    addresses = tuple(filter(None, upstream.split(",")))
    cluster = asyncio.run(find_cluster(addresses, option="--upstream", owned=owned))
    era_switches(era := era or cluster.nearest_era)
    asyncio.run(_tap(cluster, listen, out.absolute(), era, has_keys=has_keys))
    report_done(f"{out}: laststand verify {out}", {"run": str(out)}, output)


def _host_and_port(place: str) -> tuple[str, int]:
    from laststand.emulator.core.address import PORT_MAX, host_and_port

    with contextlib.suppress(ValueError):
        host, port = host_and_port(place)
        if host and 0 <= port <= PORT_MAX:
            return host, port
    raise UserError(f"--listen {place}: expected HOST:PORT, with a port from 0 to {PORT_MAX}")


async def _tap(cluster: "ExternalCluster", listen: "Listen", out: Path, era: str, *, has_keys: bool) -> None:
    from laststand.chaos.external.tap_run import run_tap

    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def wait(opened: "KafkaTap") -> None:
        for number in _ENDS:
            loop.add_signal_handler(number, done.set)
        click.echo(f"bootstrap.servers={opened.bootstrap}", err=True)
        await done.wait()
        for number in _ENDS:  # the second one interrupts the final read
            loop.remove_signal_handler(number)
        click.echo("read what clients have used", err=True)

    await run_tap(cluster, listen, directory=out, era=era, has_keys=has_keys, on_open=wait)
