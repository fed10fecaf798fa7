"""``laststand elect-leaders``: elects leaders, or shows what electing them would lose."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from laststand.cli.options.partitions import read_json_file
from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import (
    administer,
    answers_exit_code,
    directory_option,
    locate,
    status_of,
    status_when_noticed,
)
from laststand.emulator.core.errors import suggestion

if TYPE_CHECKING:
    from laststand.chaos.standing.election_cost import Candidate
    from laststand.chaos.standing.status import PartitionStatus, StatusReport
    from laststand.emulator.client.admin import AdminClient
    from laststand.emulator.core import admin_messages

_TYPES: Final = ("preferred", "unclean", "designated", "longest-log-balanced", "longest-log-aggressive")


class _ElectionEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A partition in the file of ``--path-to-json-file``."""

    topic: str
    partition: int
    desired_leader: int | None = None


class _ElectionFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of ``--path-to-json-file``."""

    partitions: tuple[_ElectionEntry, ...]


class ElectionCost(msgspec.Struct, frozen=True, kw_only=True):
    """A partition, and what electing each live replica would cost."""

    partition: "PartitionStatus"
    candidates: "tuple[Candidate, ...]"


@click.command(name="elect-leaders", short_help="Elect leaders, or show what that would lose.")
@click.option(
    "--election-type",
    type=click.Choice(_TYPES, case_sensitive=False),
    metavar="TYPE",
    help=f"One of {', '.join(_TYPES)}, in any case. Not needed with --dry-run.",
)
@click.option("--topic", metavar="NAME", help="With --partition: this partition only.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="With --topic.")
@click.option("--all-topic-partitions", is_flag=True, help="Every partition that needs an election.")
@click.option(
    "--path-to-json-file",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='{"partitions": [{"topic": "orders", "partition": 0, "desiredLeader": 1}]}; desiredLeader: designated only.',
)
@click.option("--leader", type=click.IntRange(min=0), metavar="ID", help="With --election-type designated.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only show what each live replica of offline partitions holds, and what electing it would lose.",
)
@click.option(
    "--wait/--no-wait",
    "waits",
    default=True,
    show_default=True,
    help="With --dry-run: wait until the sessions of brokers that are down or paused have ended.",
)
@directory_option
@json_option
def elect_leaders(
    election_type: str | None,
    topic: str | None,
    partition: int | None,
    *,
    all_topic_partitions: bool,
    json_file: Path | None,
    leader: int | None,
    dry_run: bool,
    waits: bool,
    place: Path,
    output: Output,
) -> int:
    """Elect leaders, with the options of kafka-leader-election.sh.

    preferred elects the first replica of the assignment; unclean any live replica where no clean one is left;
    designated the given replica, whatever is lost; with the longest-log types the controller compares the logs of the
    live replicas, and waits for all of the last known ELR (balanced) or only for those that answer (aggressive).

    Exit code: 0 every partition has the requested leader, 1 an election was refused, 254 all were, for a user error.
    """
    chosen = _chosen(topic, partition, json_file, leader, is_all=all_topic_partitions)
    directory = locate(place)
    if dry_run:
        report = status_when_noticed(directory) if waits else status_of(directory)
        _print_costs(administer(directory, lambda admin: _costs(admin, report, chosen)), output)
        return ExitCode.VALID
    if election_type is None:
        raise UserError(f"give --election-type, one of {', '.join(_TYPES)}, or --dry-run")
    is_designated = election_type == "designated"
    if is_designated and (chosen is None or any(each.desired_leader is None for each in chosen)):
        raise UserError("--election-type designated: name partitions, and a leader of each (--leader, desiredLeader)")
    if not is_designated and any(each.desired_leader is not None for each in chosen or ()):
        raise UserError("a leader can be named with --election-type designated only")
    from laststand.emulator.core import admin_messages

    election = admin_messages.RequestedElection[election_type.replace("-", "_").upper()]
    results = administer(directory, lambda admin: admin.elect_leaders(election, chosen))
    return _print_results(results, output)


def _chosen(
    topic: str | None, partition: int | None, json_file: Path | None, leader: int | None, *, is_all: bool
) -> "tuple[admin_messages.ElectablePartition, ...] | None":
    from laststand.emulator.core import admin_messages
    from laststand.emulator.core.types import BrokerId, NodeId

    if sum((topic is not None, json_file is not None, is_all)) != 1:
        raise UserError("give one of --topic with --partition, --all-topic-partitions and --path-to-json-file")
    if (topic is None) != (partition is None):
        raise UserError("--topic and --partition go together")
    if leader is not None and topic is None:
        raise UserError("--leader goes with --topic and --partition; in a file, write desiredLeader")
    entries = (
        [_ElectionEntry(topic=topic, partition=partition, desired_leader=leader)]
        if topic and partition is not None
        else []
    )
    if json_file is not None:
        entries = list(read_json_file(json_file, _ElectionFile, option="--path-to-json-file").partitions)
    if is_all:
        return None
    return tuple(
        admin_messages.ElectablePartition(
            topic=entry.topic,
            partition=entry.partition,
            desired_leader=None if entry.desired_leader is None else BrokerId(NodeId(entry.desired_leader)),
        )
        for entry in entries
    )


async def _costs(
    admin: "AdminClient", report: "StatusReport", chosen: "Sequence[admin_messages.ElectablePartition] | None"
) -> list[ElectionCost]:
    from laststand.chaos.standing.election_cost import candidates
    from laststand.chaos.standing.inspection import inspect_partition

    wanted = None if chosen is None else {(each.topic, each.partition) for each in chosen}
    known = [(each.topic, each.partition) for each in report.partitions]
    missing = [f"{topic}-{number}" for topic, number in sorted((wanted or set()) - {*known})]
    if missing:
        near = suggestion(missing[0], [f"{topic}-{number}" for topic, number in known])
        raise UserError(f"no partition {' '.join(missing)}{near}")
    return [
        ElectionCost(partition=status, candidates=candidates(await inspect_partition(admin, report, status)))
        for status in report.partitions
        if (status.is_offline if wanted is None else (status.topic, status.partition) in wanted)
    ]


def _print_costs(costs: list[ElectionCost], output: Output) -> None:
    if output is Output.JSON:
        print_json(costs)
        return
    if not costs:
        click.echo("no partition is offline")
    for position, cost in enumerate(costs):
        if position:
            click.echo()
        _print_cost(cost)


def _print_cost(cost: ElectionCost) -> None:
    status = cost.partition
    leader = "none" if status.leader is None else status.leader
    click.echo(
        f"{status.topic}-{status.partition}: leader {leader}, isr {list(status.isr)}, elr {list(status.elr)}, "
        f"last known elr {list(status.last_known_elr)}"
    )
    if not cost.candidates:
        click.echo("  no replica runs")
        return
    print_listing(
        (
            "CANDIDATE",
            "FENCED",
            "ROLES",
            "LAST EPOCH",
            "LOG END",
            "HIGH WATERMARK",
            "WOULD LOSE",
            "COMMITTED",
            "AGAINST",
        ),
        [
            (
                each.broker_id,
                "yes" if each.fenced else "no",
                ",".join(each.roles) or None,
                each.last_written_leader_epoch,
                each.log_end_offset,
                each.high_watermark,
                each.records_lost,
                each.committed_lost,
                "; ".join(
                    f"{loss.records} of {loss.broker_id} ({loss.state}) from {loss.first_offset} on"
                    for loss in each.losses
                )
                or None,
            )
            for each in cost.candidates
        ],
    )


def _print_results(results: "Sequence[admin_messages.PartitionResult]", output: Output) -> int:
    from laststand.emulator.core.errors import ErrorCode

    fine = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    if output is Output.JSON:
        print_json(
            [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "error": each.error.name,
                    "error_message": each.error_message,
                }
                for each in results
            ]
        )
    elif not results:
        click.echo("No partition needs an election.")
    else:
        for each in results:
            match each.error:
                case ErrorCode.NONE:
                    text = "leader elected"
                case ErrorCode.ELECTION_NOT_NEEDED:
                    text = "no election needed"
                case _:
                    text = f"{each.error.name} {each.error_message}".rstrip()
            click.echo(f"{each.topic}-{each.partition}: {text}")
    return answers_exit_code([each.error for each in results], fine=fine)
