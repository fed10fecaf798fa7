"""``laststand inspect``: shows replicas or controllers' logs side by side, or ZooKeeper's nodes."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.options.completion import complete_partitions
from laststand.cli.options.partitions import parse_partition
from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, directory_option, locate, status_of
from laststand.cli.standing.metadata_logs import print_metadata_logs
from laststand.cli.standing.znodes import print_znodes
from laststand.emulator.core.errors import suggestion

if TYPE_CHECKING:
    from laststand.chaos.standing.inspection import InspectedPartition


@click.command(short_help="Show replicas or controllers' logs side by side, or ZooKeeper's nodes.")
@click.argument("partition", metavar="TOPIC-PARTITION|metadata|/PATH", shell_complete=complete_partitions)
@click.option("--from", "since", type=click.IntRange(min=0), metavar="OFFSET", help="For metadata: the first record.")
@directory_option
@json_option
def inspect(partition: str, since: int | None, place: Path, output: Output) -> None:
    """Show what each replica of TOPIC-PARTITION, such as orders-0, holds.

    Running brokers are asked; for the others, and for epochs and flushed offsets, files are read. After a power loss
    the log would end at FLUSHED or later.

    ``metadata`` shows the logs of all controllers: each record, who has it, and whether it is committed. --dir may also
    name a run, or a directory with copies of controllers' log directories, of Kafka or of Laststand.

    In an era with ZooKeeper /PATH shows a node and all below it with versions and data, from the server's
    transaction log, whether the cluster is up or not: ``/``, ``/controller``, ``/brokers/topics``.
    """
    from laststand.chaos.standing.inspection import inspect_partition

    if partition == "metadata":
        print_metadata_logs(place, since=since, output=output)
        return
    if since is not None:
        raise UserError("--from is for metadata only")
    if partition.startswith("/"):
        print_znodes(locate(place), partition, output=output)
        return
    directory, wanted = locate(place), parse_partition(partition)
    report = status_of(directory)
    found = [each for each in report.partitions if (each.topic, each.partition) == (wanted.topic, wanted.partition)]
    if not found:
        known = [f"{each.topic}-{each.partition}" for each in report.partitions]
        there = ", ".join(known) or "none"
        raise UserError(f"no partition {partition}; there are: {there}{suggestion(partition, known)}")
    inspected = administer(directory, lambda admin: inspect_partition(admin, report, found[0]))
    if output is Output.JSON:
        print_json(inspected)
    else:
        _print(inspected)


def _print(inspected: "InspectedPartition") -> None:
    status = inspected.partition
    click.echo(
        f"{status.topic}-{status.partition}: leader {'none' if status.leader is None else status.leader}, "
        f"leader epoch {status.leader_epoch}, isr {list(status.isr)}, elr {list(status.elr)}, "
        f"last known elr {list(status.last_known_elr)}, min ISR {status.min_insync_replicas}"
        f"{', RECOVERING' if status.is_recovering else ''}"
    )
    print_listing(
        (
            "REPLICA",
            "ROLES",
            "STATE",
            "BY",
            "START",
            "LOG END",
            "HIGH WATERMARK",
            "LAST EPOCH",
            "EPOCHS",
            "FLUSHED",
            "UNFLUSHED BYTES",
        ),
        [
            (
                each.broker_id,
                ",".join(each.roles) or None,
                each.state,
                each.source,
                each.log_start_offset,
                each.log_end_offset,
                each.high_watermark,
                each.last_written_leader_epoch,
                " ".join(f"{entry.leader_epoch}:{entry.start_offset}" for entry in each.epochs) or None,
                each.flushed_end_offset,
                each.unflushed_bytes,
            )
            for each in inspected.replicas
        ],
    )
