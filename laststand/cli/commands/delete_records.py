"""``laststand delete-records``: deletes the records of partitions below offsets."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from laststand.cli.options.completion import complete_topics
from laststand.cli.options.partitions import read_json_file
from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, answers_exit_code, directory_option, locate

if TYPE_CHECKING:
    from laststand.emulator.client.admin import AdminClient
    from laststand.emulator.core import messages
    from laststand.emulator.core.types import BrokerId, Offset, TopicPartition

_HIGH_WATERMARK: Final = -1
"""The high watermark as an offset: everything that is committed."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A partition in the file of ``--offset-json-file``."""

    topic: str
    partition: int
    offset: int


class _OffsetFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of ``--offset-json-file``."""

    version: int = 1
    partitions: tuple[_Entry, ...]


@click.command(name="delete-records", short_help="Delete records below an offset.")
@click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="With --partition and --offset.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="With --topic.")
@click.option(
    "--offset",
    type=click.IntRange(min=_HIGH_WATERMARK),
    metavar="OFFSET",
    help="Delete the records below it; -1 for the high watermark.",
)
@click.option(
    "--offset-json-file",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='Instead: {"partitions": [{"topic": "orders", "partition": 0, "offset": 3}], "version": 1}',
)
@directory_option
@json_option
def delete_records(
    topic: str | None,
    partition: int | None,
    offset: int | None,
    json_file: Path | None,
    place: Path,
    output: Output,
) -> int:
    """Delete the records of partitions below an offset, with the options of kafka-delete-records.sh.

    The leader raises its log start offset; the lowest log start offset of the live replicas is printed.

    Exit code: 0 all were deleted, 1 some were not, 2 a replica did not confirm it, 254 none, for a user error.
    """
    offsets = _offsets(topic, partition, offset, json_file)

    async def delete(admin: "AdminClient") -> "tuple[messages.DeleteRecordsResult, ...]":
        return await admin.delete_records(offsets, await _leaders(admin, list(offsets)))

    results = administer(locate(place), delete)
    if output is Output.JSON:
        print_json(
            [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "error": each.error.name,
                    "low_watermark": each.low_watermark,
                }
                for each in results
            ]
        )
    else:
        click.echo("Records delete operation completed:")
        for each in results:
            outcome = (
                f"error: {each.error.name}" if each.low_watermark is None else f"low_watermark: {each.low_watermark}"
            )
            click.echo(f"partition: {each.topic}-{each.partition}\t{outcome}")
    return answers_exit_code([each.error for each in results])


def _offsets(
    topic: str | None, partition: int | None, offset: int | None, json_file: Path | None
) -> "dict[TopicPartition, Offset | None]":
    from laststand.emulator.core.types import Offset, TopicPartition

    named = (topic, partition, offset)
    if json_file is not None:
        if any(each is not None for each in named):
            raise UserError("--offset-json-file excludes --topic, --partition and --offset")
        entries = read_json_file(json_file, _OffsetFile, option="--offset-json-file").partitions
    elif topic is None or partition is None or offset is None:
        raise UserError("give --topic, --partition and --offset, or --offset-json-file")
    else:
        entries = (_Entry(topic=topic, partition=partition, offset=offset),)
    found: dict[TopicPartition, Offset | None] = {}
    for entry in entries:
        name = TopicPartition(entry.topic, entry.partition)
        if name in found or entry.offset < _HIGH_WATERMARK:
            reason = "is there twice" if name in found else f"has the offset {entry.offset}: expected -1 or more"
            raise UserError(f"--offset-json-file {json_file}: {name} {reason}")
        found[name] = None if entry.offset == _HIGH_WATERMARK else Offset(entry.offset)
    return found


async def _leaders(admin: "AdminClient", partitions: "list[TopicPartition]") -> "dict[TopicPartition, BrokerId]":
    """Returns the leaders of partitions.

    Raises:
        UserError: there is no such partition, or it has no leader.
    """
    topics = await admin.describe_topics(sorted({each.topic for each in partitions}))
    known = {(topic.name, each.partition): each for topic in topics for each in topic.partitions}
    leaders = {}
    for name in partitions:
        described = known.get(name)
        if described is None:
            raise UserError(f"no partition {name}")
        if described.leader is None:
            raise UserError(f"{name} has no leader, which deletes the records")
        leaders[name] = described.leader
    return leaders
