"""``laststand status``: how a standing cluster is."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from emulator.cli.output import Output, json_option
from emulator.cli.standing import directory_argument, locate, status_of
from emulator.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from chaos.standing.status import StatusReport


@click.command(short_help="Show nodes, partitions and faults.")
@directory_argument
@json_option
def status(place: Path, output: Output) -> None:
    """Show the nodes, the partitions and what is broken of the cluster in DIR, by default the latest one."""
    print_status(status_of(locate(place)), output=output)


def print_status(report: "StatusReport", *, output: Output) -> None:
    """Prints a report, as text or as one JSON object."""
    if output is Output.JSON:
        print_json(report)
        return
    click.echo(f"{report.directory}  era {report.era}, supervisor {report.supervisor_pid}")
    click.echo()
    print_table(
        ("NODE", "ROLE", "STATE", "PID", "INCARNATION", "EPOCH", "FENCED", "ADDRESS"),
        [
            (
                node.node_id,
                node.role,
                node.state,
                node.pid,
                node.incarnation,
                node.broker_epoch,
                None if node.fenced is None else "yes" if node.fenced else "no",
                node.address,
            )
            for node in report.nodes
        ],
    )
    if report.partitions:
        click.echo()
        print_table(
            ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "MIN ISR", ""),
            [
                (
                    f"{each.topic}-{each.partition}",
                    "none" if each.leader is None else each.leader,
                    each.leader_epoch,
                    ids(each.replicas),
                    ids(each.isr),
                    ids(each.elr),
                    each.min_insync_replicas,
                    ", ".join(
                        word
                        for word, holds in (
                            ("offline", each.is_offline),
                            ("under min ISR", each.is_under_min_isr),
                            ("under-replicated", each.is_under_replicated),
                        )
                        if holds
                    ),
                )
                for each in report.partitions
            ],
        )
    click.echo()
    click.echo(_summary(report))
    for fault in report.faults:
        click.echo(f"  fault: {fault}")
    for client in report.clients:
        click.echo(f"  client: {client}")
    if report.problem is not None:
        click.echo(f"  the verdict will be unknown: {report.problem}")


def _summary(report: "StatusReport") -> str:
    partitions = report.partitions
    return (
        f"{len(partitions)} partitions: "
        f"{sum(each.is_offline for each in partitions)} offline, "
        f"{sum(each.is_under_min_isr for each in partitions)} under min ISR, "
        f"{sum(each.is_under_replicated for each in partitions)} under-replicated; "
        f"{len(report.faults)} faults in force"
    )


def ids(brokers: Sequence[int]) -> str:
    """Returns broker ids as Kafka's tools print them."""
    return ",".join(str(broker) for broker in brokers)
