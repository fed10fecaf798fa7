"""``laststand metadata-quorum``: the controllers of a standing cluster, which agree on its metadata."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.program.failure import CommandFailedError
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, ask, directory_option, locate, status_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laststand.emulator.core.quorum.voter_set import ReplicaKey
    from laststand.emulator.core.types import NodeId


@click.group("metadata-quorum", short_help="Describe the controllers' quorum, and change its voters.")
def metadata_quorum() -> None:
    """The quorum of controllers of a standing cluster, as kafka-metadata-quorum.sh shows and changes it."""


@metadata_quorum.command(short_help="Print leader, voters, observers, and how far each log is.")
@directory_option
@json_option
def describe(place: Path, output: Output) -> None:
    """Print leader, epoch and high watermark, and how far each controller's log is."""
    directory, _ = _quorum_at(place)
    found = administer(directory, lambda admin: admin.describe_quorum())
    if output is Output.JSON:
        print_json(found)
        return
    click.echo(f"leader {found.leader_id}, epoch {found.leader_epoch}, high watermark {found.high_watermark}")
    ends = [each.log_end_offset for each in found.voters if each.log_end_offset is not None]
    print_listing(
        ("NODE", "DIRECTORY", "STATUS", "LOG END", "LAG"),
        [
            (
                each.key.node_id,
                each.key.directory_id,
                "observer"
                if each not in found.voters
                else "leader"
                if each.key.node_id == found.leader_id
                else "voter",
                each.log_end_offset,
                None if each.log_end_offset is None else max(ends) - each.log_end_offset,
            )
            for each in (*found.voters, *found.observers)
        ],
    )


@metadata_quorum.command()
@click.argument("node", type=int)
@directory_option
@json_option
def add(node: int, place: Path, output: Output) -> None:
    """Make controller NODE a voter, once its log has caught up.

    A controller that is down is started; it is an observer until it becomes a voter. A controller with a new disk is
    another voter (KIP-853): remove the old voter first.
    """
    from laststand.chaos.play.voters import add_voter

    directory, controllers = _quorum_at(place)
    node_id = _controller(node, controllers)
    if next(each.state for each in status_of(directory).nodes if each.node_id == node_id) == "down":
        _start(directory, node_id)
    key = administer(directory, lambda admin: add_voter(admin, node_id))
    _print_changed(key, "voter", output)


@metadata_quorum.command(short_help="Make controller NODE an observer.")
@click.argument("node", type=int)
@click.option("--directory-id", metavar="ID", help="Directory id of its disk; that of the voter if not given.")
@directory_option
@json_option
def remove(node: int, directory_id: str | None, place: Path, output: Output) -> None:
    """Make controller NODE an observer; if it is the leader, it resigns.

    The controller continues to run without a vote; stop it with ``laststand chaos stop``.
    """
    from laststand.chaos.play.voters import remove_voter

    directory, controllers = _quorum_at(place)
    node_id = _controller(node, controllers)
    key = administer(directory, lambda admin: remove_voter(admin, node_id, directory_id))
    _print_changed(key, "no voter", output)


def _quorum_at(place: Path) -> "tuple[Path, Sequence[NodeId]]":
    """Returns the directory of a cluster with several controllers, and their ids."""
    from laststand.chaos.standing.order import read_order

    directory = locate(place)
    order = read_order(directory)
    if order.controllers == 1:
        raise UserError(f"the cluster in {directory} has no quorum: up --controllers 3 starts one that has")
    return directory, order.controller_ids


def _controller(node: int, controllers: "Sequence[NodeId]") -> "NodeId":
    for controller in controllers:
        if controller == node:
            return controller
    raise UserError(f"no controller {node}; there are: {', '.join(map(str, controllers))}")


def _start(directory: Path, node_id: "NodeId") -> None:
    from laststand.chaos.standing import messages
    from laststand.emulator.plan import actions

    for answer in ask(directory, messages.Perform(action=actions.Start(nodes=(node_id,)))):
        if isinstance(answer, messages.StepFailed):
            raise CommandFailedError(answer.reason)


def _print_changed(key: "ReplicaKey", status: str, output: Output) -> None:
    if output is Output.JSON:
        print_json({"node_id": key.node_id, "directory_id": key.directory_id, "status": status})
    else:
        click.echo(f"controller {key.node_id}, disk {key.directory_id}: {status}")
