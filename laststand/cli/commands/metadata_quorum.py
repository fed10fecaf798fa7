"""``laststand metadata-quorum``: the controllers of a standing cluster, which agree on its metadata."""

from pathlib import Path

import click

from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, directory_option, locate


@click.group("metadata-quorum", short_help="What the leader of several controllers knows of them.")
def metadata_quorum() -> None:
    """The quorum of controllers of a standing cluster, as kafka-metadata-quorum.sh shows it."""


@metadata_quorum.command()
@directory_option
@json_option
def describe(place: Path, output: Output) -> None:
    """Print leader, epoch and high watermark, and how far each controller's log is."""
    from laststand.chaos.standing.order import read_order

    directory = locate(place)
    if read_order(directory).controllers == 1:
        raise UserError(f"the cluster in {directory} has no quorum: up --controllers 3 starts one that has")
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
