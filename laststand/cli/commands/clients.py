"""``laststand clients``: clients of Kafka, and the answers that they got."""

from pathlib import Path

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import directory_option, locate
from laststand.emulator.core.errors import suggestion


@click.command(short_help="List clients of Kafka, and the answers that they got.")
@click.argument("name", required=False)
@directory_option
@json_option
def clients(name: str | None, place: Path, output: Output) -> None:
    """List connections of Kafka clients to a cluster (up or down) or in a run, and the answers that brokers sent them.

    NAME is a client id, or a name that was given to up --kafka-client. Records are ACKED once the acknowledgement was
    handed to the socket, UNKNOWN if the connection broke before that, READ if a fetch returned their batch.
    """
    from laststand.chaos.standing.kafka_clients import client_connections

    found = client_connections(place if (place / "events").is_dir() else locate(place))
    chosen = [each for each in found if name is None or name in (each.client_id, each.link)]
    if name is not None and not chosen:
        known = sorted({each.client_id for each in found})
        near = suggestion(name, known)
        raise UserError(f"no client of Kafka is called {name}; on record: {', '.join(known) or 'none'}{near}")
    if output is Output.JSON:
        print_json(chosen)
        return
    print_listing(
        (
            "CLIENT",
            "LINK",
            "BROKER",
            "CONNECTION",
            "STATE",
            "SOFTWARE",
            "ADDRESS",
            "ACKED",
            "REFUSED",
            "UNKNOWN",
            "READ",
        ),
        [
            (
                each.client_id,
                each.link,
                each.broker,
                each.connection,
                "connected" if each.is_connected else "gone",
                each.software or None,
                each.address or None,
                each.acked,
                each.refused,
                each.unknown,
                each.read,
            )
            for each in chosen
        ],
    )
