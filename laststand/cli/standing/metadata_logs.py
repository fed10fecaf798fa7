"""``laststand inspect metadata``: the logs of controllers side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from laststand.cli.output.output import Output
from laststand.cli.output.tables import print_json, print_listing
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import DEFAULT_STORE, administer, locate
from laststand.emulator.core.errors import ConfigError

if TYPE_CHECKING:
    from laststand.emulator.autopsy.metadata_logs import ComparedLogs, ControllerLog, LeaderAnswer

_SHOWN: Final = 50
"""Records that are shown where no offset is given: the last ones."""


def print_metadata_logs(place: Path, *, since: int | None, output: Output) -> None:
    """Prints the logs of the controllers of a standing cluster, of a run, or of copies.

    Args:
        place: a cluster, up or down, a run directory, or a directory of log directories.
        since: the first offset to print; ``None`` for the last records.
        output: the form.

    Raises:
        UserError: there is no metadata log.
        StorageError: a log cannot be read.
    """
    from laststand.emulator.autopsy.log_directories import find_log_directories
    from laststand.emulator.autopsy.metadata_logs import compare_metadata_logs

    answer = None
    if _is_standing(place):
        place = locate(place)
        answer = _ask_leader(place)
    elif not place.is_dir():
        raise UserError(f"{place} is no cluster, no run and no directory")
    try:
        compared = compare_metadata_logs(find_log_directories([str(place)]), answer=answer)
    except ConfigError as error:
        raise UserError(f"{place} holds no controller's metadata log ({error})") from None
    if output is Output.JSON:
        print_json(compared)
    else:
        _print(compared, since=since)


def _is_standing(place: Path) -> bool:
    from laststand.chaos.standing.link import NoClusterError, find_standing

    try:
        find_standing(place)
    except NoClusterError:
        return place == DEFAULT_STORE
    return True


def _ask_leader(directory: Path) -> "LeaderAnswer | None":
    """Returns the answer of the quorum's leader; ``None`` without a quorum, or without an answer."""
    from laststand.chaos.standing.order import read_order
    from laststand.cli.program.failure import CommandFailedError
    from laststand.emulator.autopsy.metadata_logs import LeaderAnswer

    if read_order(directory).controllers == 1:
        return None
    try:
        said = administer(directory, lambda admin: admin.describe_quorum())
    except (UserError, CommandFailedError):
        return None
    if said.leader_id is None or said.high_watermark is None:
        return None
    return LeaderAnswer(said.leader_id, said.high_watermark)


def _print(compared: "ComparedLogs", *, since: int | None) -> None:
    print_listing(
        ("NODE", "DIRECTORY", "STATUS", "EPOCH", "VOTED", "START", "END", "LAST EPOCH"),
        [
            (
                log.node_id,
                log.directory_id,
                "voter" if log.is_voter else "no voter",
                None if log.election is None else log.election.leader_epoch,
                _voted(log),
                log.start_offset,
                log.end_offset,
                log.last_epoch,
            )
            for log in compared.logs
        ],
    )
    if compared.missing:
        click.echo(f"no log of {_names(compared.missing)}, of the voters {_names(compared.voters)}")
    for log in compared.logs:
        if log.problem is not None:
            click.echo(f"{log.node_id}: {log.problem}")
    shown = [each for each in compared.records if since is None or each.offset >= since]
    if since is None and len(shown) > _SHOWN:
        click.echo(f"the last {_SHOWN} of {len(shown)} records; --from 0 shows all")
        shown = shown[-_SHOWN:]
    click.echo(f"committed for certain: all below offset {compared.committed_end_offset}")
    print_listing(
        ("OFFSET", "EPOCH", "ON", "COMMITTED", "RECORD"),
        [(each.offset, each.leader_epoch, _names(each.nodes), str(each.committed), each.record) for each in shown],
    )


def _voted(log: "ControllerLog") -> int | None:
    return None if log.election is None or log.election.voted is None else log.election.voted.node_id


def _names(nodes: "tuple[int, ...]") -> str:
    return ",".join(map(str, nodes))
