"""``laststand consume``: prints records as lines of standard output."""

import asyncio
import base64
import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from laststand.cli.options.completion import complete_topics
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.exit_codes import ExitCode
from laststand.cli.program.streams import OutputError
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import directory_option, locate, partitions_of, working
from laststand.emulator.core.types import Offset, TopicPartition

if TYPE_CHECKING:
    from laststand.emulator.core.client.settings import ConsumerSettings
    from laststand.emulator.storage.record_codec import StoredRecord


class LineForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form of a record as a line."""

    output: Output
    print_timestamp: bool
    print_partition: bool
    print_offset: bool
    print_headers: bool
    print_key: bool
    separator: bytes

    def line(self, partition: TopicPartition, record: "StoredRecord") -> bytes:
        """Returns the line, with its end."""
        if self.output is Output.JSON:
            return _json_line(partition, record)
        parts: list[bytes] = []
        if self.print_timestamp:
            parts.append(b"CreateTime:%d" % record.timestamp_ms)
        if self.print_partition:
            parts.append(b"Partition:%d" % partition.partition)
        if self.print_offset:
            parts.append(b"Offset:%d" % record.offset)
        if self.print_headers:
            headers = (f"{key}:".encode() + (b"null" if value is None else value) for key, value in record.headers)
            parts.append(b",".join(headers) or b"NO_HEADERS")
        if self.print_key:
            parts.append(b"null" if record.key is None else record.key)
        parts.append(b"null" if record.value is None else record.value)
        return self.separator.join(parts) + b"\n"


@click.command(short_help="Print a topic's records as lines.")
@click.argument("topic", shell_complete=complete_topics)
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Read this partition only.")
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record; else with the next one.")
@click.option("--offset", metavar="N", help="With --partition: begin there; an offset, `earliest` or `latest`.")
@click.option(
    "--group",
    metavar="NAME",
    help="Begin where the last consumer of this group ended. Positions are kept in the run directory.",
)
@click.option("--max-messages", type=click.IntRange(min=1), metavar="N", help="End after N records.")
@click.option(
    "--timeout-ms", type=click.IntRange(min=1), metavar="MS", help="End when no record has come for this time."
)
@click.option("--print-timestamp", is_flag=True, help="Put the timestamp before each value.")
@click.option("--print-partition", is_flag=True, help="Put the partition before each value.")
@click.option("--print-offset", is_flag=True, help="Put the offset before each value.")
@click.option(
    "--print-headers", is_flag=True, help="Put the headers before each value; `laststand` is Laststand's own."
)
@click.option("--print-key", is_flag=True, help="Put the key before each value.")
@click.option("--key-separator", default="\t", metavar="TEXT", help="Separates the parts of a line.  [default: a tab]")
@click.option(
    "--consumer-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of Kafka's consumer. May be repeated.",
)
@directory_option
@json_option
def consume(
    topic: str,
    *,
    partition: int | None,
    from_beginning: bool,
    offset: str | None,
    group: str | None,
    max_messages: int | None,
    timeout_ms: int | None,
    print_timestamp: bool,
    print_partition: bool,
    print_offset: bool,
    print_headers: bool,
    print_key: bool,
    key_separator: str,
    properties: tuple[str, ...],
    place: Path,
    output: Output,
) -> int:
    """Print the value of each record of TOPIC of a standing cluster; with ``--json`` one object per line.

    Ends with Ctrl-C, ``--max-messages`` or ``--timeout-ms``. The run's history contains what was read, so that
    ``laststand verify`` checks it. In JSON, keys and values that are not UTF-8 are base64, under ``key_base64`` and
    ``value_base64``.

    A group is only a file of positions, stored when the consumer ends. A new group begins like a consumer without a
    group; nothing is rebalanced, so two consumers of one group each read everything.
    """
    from laststand.chaos.standing.groups import GroupFile
    from laststand.cli.options.assignments import assignments
    from laststand.emulator.core.client.settings import OffsetReset, consumer_settings

    settings = consumer_settings(assignments("--consumer-property", properties))
    reset = OffsetReset.EARLIEST if from_beginning else OffsetReset.LATEST
    if offset is not None:
        if partition is None or from_beginning or group is not None:
            raise UserError("--offset goes with --partition, and without --from-beginning and --group")
        if offset in ("earliest", "latest"):
            reset = OffsetReset(offset)
        elif not offset.isdecimal():
            raise UserError(f"--offset {offset}: expected an offset, earliest or latest")
    directory = locate(place)
    group_file = None if group is None else GroupFile(directory, group)
    partitions = partitions_of(directory, topic, partition)
    positions = {} if group_file is None else group_file.positions()
    if offset is not None and offset.isdecimal():
        positions = {partitions[0]: Offset(int(offset))}
    printer = Printer(
        form=LineForm(
            output=output,
            print_timestamp=print_timestamp,
            print_partition=print_partition,
            print_offset=print_offset,
            print_headers=print_headers,
            print_key=print_key,
            separator=key_separator.encode(),
        ),
        max_messages=max_messages,
    )
    settings = msgspec.structs.replace(settings, auto_offset_reset=reset)
    try:
        working(_consume(directory, settings, partitions, positions, printer, timeout_ms))
    finally:
        if group_file is not None:
            group_file.store(printer.positions)
        click.echo(f"Processed a total of {printer.count} messages", err=True)
    if printer.failure is not None:
        raise printer.failure
    return ExitCode.VALID


class Printer:
    """Prints records until there are enough.

    Attributes:
        count: number of records printed.
        printed_bytes: of lines.
        positions: positions to continue from, by partition.
        is_done: set when there are enough, or no more can be printed.
        failure: why no more can be printed.
    """

    def __init__(self, *, form: LineForm, max_messages: int | None) -> None:
        self.count = 0
        self.printed_bytes = 0
        self.positions: dict[TopicPartition, Offset] = {}
        self.is_done = asyncio.Event()
        self.failure: OutputError | None = None
        self._form = form
        self._max_messages = max_messages

    def show(self, partition: TopicPartition, records: "Sequence[StoredRecord]") -> None:
        """Prints the records of one poll, up to the number that is wanted."""
        if self.is_done.is_set():
            return
        wanted = records if self._max_messages is None else records[: self._max_messages - self.count]
        lines = b"".join(self._form.line(partition, record) for record in wanted)
        try:
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()
        except OutputError as error:
            self.failure = error
            self.is_done.set()
            return
        self.count += len(wanted)
        self.printed_bytes += len(lines)
        if wanted:
            self.positions[partition] = Offset(wanted[-1].offset + 1)
        if self.count == self._max_messages:
            self.is_done.set()


async def _consume(
    directory: Path,
    settings: "ConsumerSettings",
    partitions: tuple[TopicPartition, ...],
    positions: Mapping[TopicPartition, Offset],
    printer: Printer,
    timeout_ms: int | None,
) -> None:
    from laststand.chaos.standing.client_session import client_session
    from laststand.cli.output.rate import showing_rate
    from laststand.emulator.client.config import ConsumerConfig
    from laststand.emulator.client.consuming import RunningConsumer
    from laststand.emulator.client.counters import Counters
    from laststand.emulator.core.client.consumer import Phase

    async with client_session(directory, "consume") as session, asyncio.TaskGroup() as tasks:
        opened = session.opened
        with session.history() as history:
            consumer = RunningConsumer(
                config=ConsumerConfig(name=opened.name, partitions=partitions, settings=settings),
                phase=Phase.LIVE,
                brokers=opened.brokers,
                links=session.links(tasks),
                history=history,
                counters=Counters(),
                on_records=printer.show,
                positions=positions,
            )
            consumer.start()
            try:
                async with contextlib.AsyncExitStack() as stack:
                    if not sys.stdout.isatty():
                        progress = showing_rate("read", lambda: (printer.count, printer.printed_bytes))
                        await stack.enter_async_context(progress)
                    await _until_enough(printer, session.ended, timeout_ms)
            finally:
                await consumer.stop()


async def _until_enough(printer: Printer, ended: asyncio.Event, timeout_ms: int | None) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in (printer.is_done, ended)]
    timeout_s = None if timeout_ms is None else timeout_ms / 1000
    seen = -1
    try:
        while printer.count != seen:  # something came in the last interval
            seen = printer.count
            done, _ = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return
    finally:
        for future in waiting:
            future.cancel()


def _json_line(partition: TopicPartition, record: "StoredRecord") -> bytes:
    document: dict[str, str | int | dict[str, str | None] | None] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
    }
    for name, content in (("key", record.key), ("value", record.value)):
        try:
            document[name] = None if content is None else content.decode()
        except UnicodeDecodeError:
            document[f"{name}_base64"] = base64.b64encode(content or b"").decode()
    if record.headers:
        document["headers"] = {
            key: None if value is None else value.decode(errors="replace") for key, value in record.headers
        }
    return msgspec.json.encode(document) + b"\n"
