"""``laststand produce``: lines of standard input or of a file become records."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from laststand.cli.options.completion import complete_topics
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import directory_option, locate, partitions_of, working
from laststand.emulator.plan.nouns import counted

if TYPE_CHECKING:
    from laststand.chaos.standing.client_session import ClientSession
    from laststand.cli.standing.line_input import LineInput
    from laststand.emulator.client.console_producer import ConsoleProducer, Headers, Tally
    from laststand.emulator.core.client.settings import ProducerSettings
    from laststand.emulator.core.types import TopicPartition
    from laststand.emulator.storage.record_codec import Compression

_ACKS: Final = ("all", "-1", "1", "0")
_COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_DISMISSED_TIMEOUT_MS: Final = 10_000
_TIMESTAMP_MAX: Final = 2**63 - 1


class ProduceOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The records to send, and their form.

    Attributes:
        path: of the lines; ``None`` for standard input.
        separator: between key and value; ``None`` for records without keys.
        linger_ms: how long lines are collected for a batch.
        batch_bytes: the maximum size of a batch; ``None`` for the producer's own limit.
    """

    settings: "ProducerSettings"
    path: Path | None
    separator: bytes | None
    linger_ms: int
    batch_bytes: int | None
    compression: "Compression"
    headers: "Headers"
    timestamp_ms: int | None


@click.command(short_help="Write lines of stdin into a topic.")
@click.argument("topic", shell_complete=complete_topics)
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Read lines from FILE instead of standard input.",
)
@click.option("--acks", type=click.Choice(_ACKS), default="all", show_default=True, help="What a send waits for.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Write to this partition only.")
@click.option(
    "--key-separator",
    metavar="TEXT",
    help="Lines are KEY, this separator, VALUE. Equal keys go to one partition, as with Kafka's default partitioner.",
)
@click.option(
    "--header", "headers", multiple=True, metavar="KEY=VALUE", help="Give every record this header. May be repeated."
)
@click.option(
    "--timestamp-ms",
    type=click.IntRange(min=0, max=_TIMESTAMP_MAX),
    metavar="MS",
    help="Timestamp of every record, since 1970; the time of sending if not given.",
)
@click.option(
    "--linger-ms",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="MS",
    help="Collect lines for this time before they are sent.",
)
@click.option(
    "--batch-size", type=click.IntRange(min=1), metavar="BYTES", help="Bytes of a batch, at most. [default: 256 KB]"
)
@click.option(
    "--compression",
    type=click.Choice(_COMPRESSIONS),
    default="none",
    show_default=True,
    help="How batches are compressed.",
)
@click.option(
    "--producer-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of Kafka's producer. May be repeated.",
)
@directory_option
@json_option
def produce(
    topic: str,
    path: Path | None,
    acks: str,
    partition: int | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    timestamp_ms: int | None,
    linger_ms: int,
    batch_size: int | None,
    compression: str,
    properties: tuple[str, ...],
    place: Path,
    output: Output,
) -> int:
    """Write each line of standard input as a record to TOPIC of a standing cluster, and wait for acknowledgements.

    The outcome of each record is in the run's history, so that ``laststand verify`` judges it. On a terminal stderr
    shows how far it is; Ctrl-C ends it, and the counts are printed all the same.

    A line without the key separator ends the input: every line before it is sent.

    Exit code: 0 every record was acknowledged, 1 a line was certainly not written, 2 the outcome of one is unknown.
    """
    from laststand.cli.options.assignments import assignments
    from laststand.cli.output.tables import print_json
    from laststand.emulator.client.console_producer import Tally
    from laststand.emulator.client.records import IDENTITY_HEADER
    from laststand.emulator.core.client.settings import producer_settings
    from laststand.emulator.core.types import Acks

    if key_separator == "":
        raise UserError("--key-separator: expected at least one character")
    from laststand.emulator.storage.record_codec import Compression

    named = assignments("--header", headers)
    if IDENTITY_HEADER in named:
        raise UserError(f"--header {IDENTITY_HEADER}: records have that header already, it tells who they are")
    if path is not None and str(path) != "-" and not path.is_file():
        raise UserError(f"--file {path}: no such file")
    level = {"all": Acks.ALL, "-1": Acks.ALL, "1": Acks.LEADER, "0": Acks.NONE}[acks]
    order = ProduceOrder(
        settings=producer_settings(level, assignments("--producer-property", properties)),
        path=None if path is None or str(path) == "-" else path,
        separator=None if key_separator is None else key_separator.encode(),
        linger_ms=linger_ms,
        batch_bytes=batch_size,
        compression=Compression[compression.upper()],
        headers=tuple((key, value.encode()) for key, value in named.items()),
        timestamp_ms=timestamp_ms,
    )
    directory = locate(place)
    partitions = partitions_of(directory, topic, partition)
    tally = Tally()
    refused: str | None = None
    try:
        refused = working(_produce(directory, order, partitions, tally))
    finally:
        if output is Output.JSON:
            print_json({**msgspec.structs.asdict(tally), "refused_line": refused})
        else:
            _print_summary(tally)
    if refused is not None:
        click.echo(f"laststand: {refused}; every line before it was sent, nothing from it on", err=True)
    if tally.unknown:
        return ExitCode.UNKNOWN
    return ExitCode.VIOLATION if tally.failed or refused is not None else ExitCode.VALID


async def _produce(
    directory: Path, order: ProduceOrder, partitions: "tuple[TopicPartition, ...]", tally: "Tally"
) -> str | None:
    """Produces the records; returns the error of a line that ended the input early, if one did."""
    from laststand.chaos.standing.client_session import client_session
    from laststand.cli.output.rate import showing_rate
    from laststand.emulator.client.console_producer import BATCH_BYTES_MAX, ConsoleProducer

    async with client_session(directory, "produce") as session, asyncio.TaskGroup() as tasks:
        opened = session.opened
        with session.history() as history:
            producer = ConsoleProducer(
                name=opened.name,
                settings=order.settings,
                brokers=opened.brokers,
                partitions=partitions,
                links=session.links(tasks),
                history=history,
                tally=tally,
                batch_bytes_max=order.batch_bytes or BATCH_BYTES_MAX,
                compression=order.compression,
                headers=order.headers,
                timestamp_ms=order.timestamp_ms,
            )
            producer.start()
            timeout_ms = 0  # what is interrupted waits for nothing
            try:
                async with showing_rate("acknowledged", lambda: (tally.acked, producer.sent_bytes)):
                    refused = await _send_file(producer, session, order)
                    timeout_ms = _DISMISSED_TIMEOUT_MS if session.ended.is_set() else order.settings.delivery_timeout_ms
            finally:
                await producer.finish(timeout_ms=timeout_ms)
    return refused


async def _send_file(producer: "ConsoleProducer", session: "ClientSession", order: ProduceOrder) -> str | None:
    from laststand.cli.standing.line_input import LineInput

    if order.path is None:
        return await _send_lines(producer, session, LineInput(), order)
    descriptor = os.open(order.path, os.O_RDONLY)
    try:
        return await _send_lines(producer, session, LineInput(descriptor), order)
    finally:
        os.close(descriptor)


async def _send_lines(
    producer: "ConsoleProducer", session: "ClientSession", lines: "LineInput", order: ProduceOrder
) -> str | None:
    """Sends lines up to the end of the input or the first malformed one; returns the error of that line."""
    count = 0
    ended = asyncio.ensure_future(session.ended.wait())
    try:
        while not ended.done():
            reading = asyncio.ensure_future(lines.next_lines(linger_s=order.linger_ms / 1000))
            await asyncio.wait((reading, ended), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
                return None
            given = reading.result()
            if not given:
                return None
            records = records_of(given, order.separator)
            if records:
                room = asyncio.ensure_future(producer.room())
                await asyncio.wait((room, ended), return_when=asyncio.FIRST_COMPLETED)
                room.cancel()
                producer.send(records)
            count += len(records)
            if len(records) < len(given):
                line = given[len(records)].decode(errors="replace")
                return f"line {count + 1} has no key separator {(order.separator or b'').decode()!r}: {line!r}"
        return None
    finally:
        ended.cancel()


def records_of(lines: Sequence[bytes], separator: bytes | None) -> list[tuple[bytes | None, bytes]]:
    """Returns the key and value of each line, up to the first without separator; without one lines are values."""
    if separator is None:
        return [(None, line) for line in lines]
    records: list[tuple[bytes | None, bytes]] = []
    for line in lines:
        key, found, value = line.partition(separator)
        if not found:
            break
        records.append((key, value))
    return records


def _print_summary(tally: "Tally") -> None:
    text = f"{counted(tally.acked, 'record')} acknowledged"
    if tally.failed:
        text += f", {tally.failed} not written"
    if tally.unknown:
        text += f", {tally.unknown} with unknown outcome"
    if tally.errors:
        text += f" ({', '.join(f'{name}: {count}' for name, count in sorted(tally.errors.items()))})"
    click.echo(text, err=True)
