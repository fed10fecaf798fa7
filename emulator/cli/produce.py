"""``laststand produce``: writes lines of standard input as records."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from emulator.cli.exit_codes import ExitCode
from emulator.cli.output import Output, json_option
from emulator.cli.standing import directory_option, locate, partitions_of, working
from emulator.cli.user_error import UserError

if TYPE_CHECKING:
    from chaos.standing.client_session import ClientSession
    from emulator.client.console_producer import ConsoleProducer, Tally
    from emulator.core.client.settings import ProducerSettings
    from emulator.core.types import TopicPartition

_ACKS: Final = ("all", "-1", "1", "0")
_DISMISSED_TIMEOUT_MS: Final = 10_000
_ROOM_INTERVAL_S: Final = 0.01


@click.command(short_help="Write lines of stdin into a topic.")
@click.argument("topic")
@click.option(
    "--acks", type=click.Choice(_ACKS), default="all", show_default=True, help="Acknowledgements that a send waits for."
)
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Write to this partition only.")
@click.option(
    "--key-separator",
    metavar="TEXT",
    help="Lines are KEY, this separator, VALUE. Equal keys go to one partition, as with Kafka's default partitioner.",
)
@click.option("--producer-property", "properties", multiple=True, metavar="KEY=VALUE", help="Kafka's producer setting.")
@directory_option
@json_option
def produce(
    topic: str,
    acks: str,
    partition: int | None,
    key_separator: str | None,
    properties: tuple[str, ...],
    place: Path,
    output: Output,
) -> int:
    """Write each line of standard input as a record to TOPIC of a standing cluster, and wait for acknowledgements.

    The run's history contains each record's outcome, so that ``laststand verify`` checks it.

    Exit code: 0 every record was acknowledged, 1 one was certainly not written, 2 the outcome of one is unknown.
    """
    from emulator.cli.assignments import assignments
    from emulator.cli.tables import print_json
    from emulator.core.client.settings import producer_settings
    from emulator.core.types import Acks

    if key_separator == "":
        raise UserError("--key-separator: expected at least one character")
    level = {"all": Acks.ALL, "-1": Acks.ALL, "1": Acks.LEADER, "0": Acks.NONE}[acks]
    settings = producer_settings(level, assignments("--producer-property", properties))
    directory = locate(place)
    partitions = partitions_of(directory, topic, partition)
    separator = None if key_separator is None else key_separator.encode()
    tally = working(_produce(directory, settings, partitions, separator))
    if output is Output.JSON:
        print_json(tally)
    else:
        _print_summary(tally)
    if tally.unknown:
        return ExitCode.UNKNOWN
    return ExitCode.VIOLATION if tally.failed else ExitCode.VALID


async def _produce(
    directory: Path, settings: "ProducerSettings", partitions: "tuple[TopicPartition, ...]", separator: bytes | None
) -> "Tally":
    from chaos.standing.client_session import client_session
    from emulator.client.console_producer import ConsoleProducer
    from emulator.client.history import History
    from emulator.client.shell import Links
    from emulator.rpc.channel import keepalive_for

    async with client_session(directory, "produce") as session, asyncio.TaskGroup() as tasks:
        opened = session.opened
        with History(Path(opened.history_path)) as history:
            keepalive = keepalive_for(session_timeout_ms=opened.session_timeout_ms)
            producer = ConsoleProducer(
                name=opened.name,
                settings=settings,
                brokers=opened.brokers,
                partitions=partitions,
                links=Links(addresses=opened.addresses, keepalive=keepalive, tasks=tasks),
                history=history,
            )
            producer.start()
            timeout_ms = 0  # what is interrupted waits for nothing
            try:
                await _send_lines(producer, session, separator)
                timeout_ms = _DISMISSED_TIMEOUT_MS if session.ended.is_set() else settings.delivery_timeout_ms
            except UserError:  # about a line; those before it were sent
                timeout_ms = settings.delivery_timeout_ms
                raise
            finally:
                await producer.finish(timeout_ms=timeout_ms)
    return producer.tally


async def _send_lines(producer: "ConsoleProducer", session: "ClientSession", separator: bytes | None) -> None:
    from emulator.cli.line_input import LineInput

    lines = LineInput()
    ended = asyncio.ensure_future(session.ended.wait())
    try:
        while not ended.done():
            reading = asyncio.ensure_future(lines.next_lines())
            await asyncio.wait((reading, ended), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
                return
            records = [_record(line, separator) for line in reading.result()]
            if not records:
                return
            while not producer.has_room and not ended.done():  # noqa: ASYNC110 (the state machine tells nobody)
                await asyncio.sleep(_ROOM_INTERVAL_S)
            producer.send(records)
    finally:
        ended.cancel()


def _record(line: bytes, separator: bytes | None) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    if not found:
        raise UserError(f"no key separator {separator.decode()!r} in the line {line.decode(errors='replace')!r}")
    return key, value


def _print_summary(tally: "Tally") -> None:
    text = f"{tally.acked} records acknowledged"
    if tally.failed:
        text += f", {tally.failed} not written"
    if tally.unknown:
        text += f", {tally.unknown} with unknown outcome"
    if tally.errors:
        text += f" ({', '.join(f'{name}: {count}' for name, count in sorted(tally.errors.items()))})"
    click.echo(text, err=True)
