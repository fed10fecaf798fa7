"""``laststand reassign``: assigns other replicas to partitions, and shows the progress."""

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from laststand.cli.options.partitions import read_json_file
from laststand.cli.output.output import Output, json_option
from laststand.cli.output.tables import print_json
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import administer, answers_exit_code, directory_option, locate
from laststand.emulator.core.errors import ErrorCode

if TYPE_CHECKING:
    from laststand.emulator.client.admin import AdminClient
    from laststand.emulator.core import admin_messages
    from laststand.emulator.core.types import TopicPartition


class ReassignmentState(Enum):
    """The progress of a reassignment."""

    COMPLETED = "completed"
    IN_PROGRESS = "in progress"
    NOT_REQUESTED = "not requested"


class _Target(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A partition in the file of ``--reassignment-json-file``; Kafka's ``log_dirs`` is ignored."""

    topic: str
    partition: int
    replicas: tuple[int, ...] = ()
    log_dirs: tuple[str, ...] = ()


class _ReassignmentFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file of ``--reassignment-json-file``."""

    version: int = 1
    partitions: tuple[_Target, ...]


class _Mode(Enum):
    EXECUTE = "execute"
    VERIFY = "verify"
    CANCEL = "cancel"
    LIST = "list"


@click.command(short_help="Assign other replicas to partitions.")
@click.option("--execute", "mode", flag_value=_Mode.EXECUTE, type=click.UNPROCESSED, help="Start it.  [default]")
@click.option("--verify", "mode", flag_value=_Mode.VERIFY, type=click.UNPROCESSED, help="Show its progress.")
@click.option(
    "--cancel",
    "mode",
    flag_value=_Mode.CANCEL,
    type=click.UNPROCESSED,
    help="Cancel it, where it is in progress, and keep the former replicas.",
)
@click.option(
    "--list", "mode", flag_value=_Mode.LIST, type=click.UNPROCESSED, help="Show every reassignment in progress."
)
@click.option(
    "--reassignment-json-file",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}',
)
@click.option(
    "--topic", metavar="NAME", help="With --partition, and --replicas for --execute and --verify: instead of a file."
)
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="With --topic.")
@click.option("--replicas", metavar="LIST", help="Broker ids, the preferred leader first: 1,2,3.")
@directory_option
@json_option
def reassign(
    mode: _Mode | None,
    json_file: Path | None,
    topic: str | None,
    partition: int | None,
    replicas: str | None,
    place: Path,
    output: Output,
) -> int:
    """Assign other replicas to partitions, with the options of kafka-reassign-partitions.sh.

    Exit code: 0 done, for --verify completed; 1 refused, for --verify not requested; 2 for --verify in progress.
    """
    mode = mode or _Mode.EXECUTE
    directory = locate(place)
    if mode is _Mode.LIST:
        _print_ongoing(administer(directory, lambda admin: admin.list_reassignments()), output)
        return ExitCode.VALID
    targets = _targets(json_file, topic, partition, replicas, mode)
    if mode is _Mode.CANCEL:
        return _print_cancelled(administer(directory, lambda admin: _cancel(admin, targets)), output)
    if mode is _Mode.VERIFY:
        return _print_progress(administer(directory, lambda admin: _progress(admin, targets)), targets, output)
    before, results = administer(directory, lambda admin: _execute(admin, targets))
    return _print_started(before, results, output)


def _targets(
    json_file: Path | None, topic: str | None, partition: int | None, replicas: str | None, mode: _Mode
) -> tuple[_Target, ...]:
    if (json_file is None) == (topic is None):
        raise UserError("give either --reassignment-json-file, or --topic and --partition")
    if json_file is not None:
        targets = read_json_file(json_file, _ReassignmentFile, option="--reassignment-json-file").partitions
    else:
        if topic is None or partition is None:
            raise UserError("--topic and --partition go together")
        targets = (_Target(topic=topic, partition=partition, replicas=_ids(replicas)),)
    if mode is not _Mode.CANCEL:
        for target in targets:
            if not target.replicas or len(set(target.replicas)) != len(target.replicas):
                raise UserError(
                    f"{target.topic}-{target.partition}: {list(target.replicas)} are no replicas of a partition, "
                    "expected different brokers, at least one"
                )
    return targets


def _ids(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    ids = [each.strip() for each in text.split(",")]
    if not all(each.isdecimal() for each in ids):
        raise UserError(f"--replicas {text}: expected broker ids, such as 1,2,3")
    return tuple(int(each) for each in ids)


def _name(target: _Target) -> "TopicPartition":
    from laststand.emulator.core.types import TopicPartition

    return TopicPartition(target.topic, target.partition)


async def _current(admin: "AdminClient", targets: Sequence[_Target]) -> dict[str, tuple[int, ...]]:
    """Returns the replicas of the targets' partitions by name."""
    topics = await admin.describe_topics(sorted({target.topic for target in targets}))
    found = {
        f"{topic.name}-{partition.partition}": tuple(int(replica) for replica in partition.replicas)
        for topic in topics
        for partition in topic.partitions
    }
    return {str(_name(target)): found[str(_name(target))] for target in targets if str(_name(target)) in found}


async def _execute(
    admin: "AdminClient", targets: Sequence[_Target]
) -> "tuple[_ReassignmentFile, tuple[admin_messages.PartitionResult, ...]]":
    from laststand.emulator.core.types import BrokerId, NodeId

    current = await _current(admin, targets)
    before = _ReassignmentFile(
        partitions=tuple(
            _Target(topic=target.topic, partition=target.partition, replicas=current[str(_name(target))])
            for target in targets
            if str(_name(target)) in current
        )
    )
    results = await admin.reassign(
        {_name(target): [BrokerId(NodeId(each)) for each in target.replicas] for target in targets}
    )
    return before, results


async def _cancel(admin: "AdminClient", targets: Sequence[_Target]) -> "tuple[admin_messages.PartitionResult, ...]":
    return await admin.reassign({_name(target): None for target in targets})


async def _progress(
    admin: "AdminClient", targets: Sequence[_Target]
) -> list[tuple[ReassignmentState, tuple[int, ...]]]:
    ongoing = {str(each.topic_partition) for each in await admin.list_reassignments([_name(t) for t in targets])}
    current = await _current(admin, targets)
    found = []
    for target in targets:
        replicas = current.get(str(_name(target)), ())
        if str(_name(target)) in ongoing:
            found.append((ReassignmentState.IN_PROGRESS, replicas))
        else:
            found.append(
                (
                    ReassignmentState.COMPLETED if replicas == target.replicas else ReassignmentState.NOT_REQUESTED,
                    replicas,
                )
            )
    return found


# --- Printing -----------------------------------------------------------------------------------------------------


def _print_ongoing(ongoing: "Sequence[admin_messages.OngoingReassignment]", output: Output) -> None:
    if output is Output.JSON:
        print_json(ongoing)
        return
    click.echo("Current partition reassignments:" if ongoing else "No partition reassignments found.")
    for each in ongoing:
        parts = [f"replicas: {_list(each.replicas)}"]
        if each.adding_replicas:
            parts.append(f"adding: {_list(each.adding_replicas)}")
        if each.removing_replicas:
            parts.append(f"removing: {_list(each.removing_replicas)}")
        click.echo(f"{each.topic_partition}: {'. '.join(parts)}.")


def _print_started(
    before: _ReassignmentFile, results: "Sequence[admin_messages.PartitionResult]", output: Output
) -> int:
    if output is Output.JSON:
        print_json({"before": before, "results": _results(results)})
        return _code(results)
    click.echo("Current partition replica assignment\n")
    click.echo(msgspec.json.encode(before).decode())
    click.echo("\nSave this to use as the --reassignment-json-file option during rollback")
    started = [str(each.topic_partition) for each in results if each.error is ErrorCode.NONE]
    if started:
        click.echo(f"Successfully started partition reassignments for {','.join(started)}")
    _print_errors(results)
    return _code(results)


def _print_cancelled(results: "Sequence[admin_messages.PartitionResult]", output: Output) -> int:
    if output is Output.JSON:
        print_json(_results(results))
        return _code(results)
    cancelled = [str(each.topic_partition) for each in results if each.error is ErrorCode.NONE]
    if cancelled:
        click.echo(f"Successfully cancelled partition reassignments for: {','.join(cancelled)}")
    _print_errors(results)
    return _code(results)


def _print_progress(
    found: list[tuple[ReassignmentState, tuple[int, ...]]], targets: Sequence[_Target], output: Output
) -> int:
    if output is Output.JSON:
        print_json(
            [
                {
                    "topic": target.topic,
                    "partition": target.partition,
                    "progress": progress.value,
                    "replicas": replicas,
                    "target": target.replicas,
                }
                for target, (progress, replicas) in zip(targets, found, strict=True)
            ]
        )
    else:
        click.echo("Status of partition reassignment:")
        for target, (progress, replicas) in zip(targets, found, strict=True):
            match progress:
                case ReassignmentState.COMPLETED:
                    click.echo(f"Reassignment of partition {_name(target)} is completed.")
                case ReassignmentState.IN_PROGRESS:
                    click.echo(f"Reassignment of partition {_name(target)} is still in progress.")
                case ReassignmentState.NOT_REQUESTED:
                    click.echo(
                        f"There is no active reassignment of partition {_name(target)}, but replica set is "
                        f"{_list(replicas) or 'empty'} rather than {_list(target.replicas)}."
                    )
    reached = {progress for progress, _ in found}
    if ReassignmentState.NOT_REQUESTED in reached:
        return ExitCode.VIOLATION
    return ExitCode.UNKNOWN if ReassignmentState.IN_PROGRESS in reached else ExitCode.VALID


def _print_errors(results: "Sequence[admin_messages.PartitionResult]") -> None:
    for each in results:
        if each.error is not ErrorCode.NONE:
            click.echo(f"{each.topic_partition}: {each.error.name} {each.error_message}".rstrip())


def _results(results: "Sequence[admin_messages.PartitionResult]") -> list[dict[str, str | int]]:
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "error": each.error.name,
            "error_message": each.error_message,
        }
        for each in results
    ]


def _code(results: "Sequence[admin_messages.PartitionResult]") -> int:
    return answers_exit_code([each.error for each in results], fine=(ErrorCode.NONE,))


def _list(ids: Sequence[int]) -> str:
    return ",".join(str(each) for each in ids)
