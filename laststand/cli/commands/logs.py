"""``laststand logs``: prints the log of a node, or of the supervisor."""

import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec

from laststand.cli.options.completion import complete_nodes
from laststand.cli.output.output import Output, json_option
from laststand.cli.program.user_error import UserError
from laststand.cli.standing.connections import directory_option, locate
from laststand.emulator.core.errors import suggestion
from laststand.emulator.core.packed.reading import LineReader, is_packed
from laststand.emulator.storage.line_file import line_files
from laststand.emulator.user_files import open_file

_FOLLOW_S: Final = 0.2
_BLOCK_BYTES: Final = 1 << 20
_HARNESS: Final = "harness"


@click.command(short_help="Print what a node, or the supervisor, logged.")
@click.argument("node", required=False, shell_complete=complete_nodes)
@click.option("--events", "wants_events", is_flag=True, help="The event log, one line of text per event.")
@click.option(
    "-f", "--follow", "is_following", is_flag=True, help="Print further lines as they are added, until Ctrl-C."
)
@click.option("-n", "--tail", type=click.IntRange(min=0), metavar="N", help="Begin with the last N lines.")
@directory_option
@json_option
def logs(
    node: str | None, *, wants_events: bool, is_following: bool, tail: int | None, place: Path, output: Output
) -> None:
    """Print the log of NODE, an id or `controller`; without NODE that of the supervisor, which is the harness.

    A log continues over all incarnations of the node. ``--events`` prints the event log, which ``laststand verify``
    judges; with ``--json``, its lines unchanged.
    """
    if output is Output.JSON and not wants_events:
        raise UserError("--json goes with --events: a log is text")
    source = Source(locate(place), node, wants_events=wants_events, as_text=output is Output.TEXT)
    lines = list(source.lines())
    for line in lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]:
        click.echo(line)
    while is_following:
        for line in source.lines():
            click.echo(line)
        time.sleep(_FOLLOW_S)


class Source:
    """The files of one log; each reading continues where the last one ended.

    Args:
        directory: of the run.
        node: an id, ``controller``, or ``None`` for the supervisor.
        wants_events: the event log instead of ``node.log``.
        as_text: events as text instead of their JSON.

    Raises:
        UserError: the cluster has no such node.
    """

    def __init__(self, directory: Path, node: str | None, *, wants_events: bool, as_text: bool) -> None:
        from laststand.emulator.plan.nodes import CONTROLLER

        name = str(CONTROLLER) if node == "controller" else node
        known = sorted((path.name for path in (directory / "nodes").glob("*")), key=lambda each: (len(each), each))
        if name is not None and name not in known:
            near = suggestion(name, ["controller", *known])
            raise UserError(f"no node {node}; there are: {', '.join(known) or 'none'}{near}")
        self._directory = directory
        self._name = _HARNESS if name is None else name
        self._wants_events = wants_events
        self._as_text = as_text
        self._read: dict[Path, int] = {}
        self._rest: dict[Path, bytes] = {}
        self._packed: defaultdict[Path, LineReader] = defaultdict(LineReader)
        self._clock_ns: dict[Path, int] = {}

    def lines(self) -> Iterator[str]:
        """Yields whole lines that were added since the last call, the files in the order of their incarnations."""
        for path in self._files():
            for line in self._new_lines(path):
                yield self._text(path, line) if self._wants_events and self._as_text else line.decode(errors="replace")

    def _files(self) -> list[Path]:
        if self._wants_events:
            found = line_files(self._directory / "events", f"{self._name}-*")
            return sorted(found, key=lambda path: int(path.stem.rpartition("-")[2]))
        if self._name == _HARNESS:
            return [self._directory / "run.log"]
        return [self._directory / "nodes" / self._name / "node.log"]

    def _new_lines(self, path: Path) -> Iterator[bytes]:
        try:
            with open_file(path) as file:
                file.seek(self._read.get(path, 0))
                while block := file.read(_BLOCK_BYTES):
                    self._read[path] = file.tell()
                    if is_packed(path):
                        yield from self._packed[path].lines(block)
                        continue
                    *whole, self._rest[path] = (self._rest.get(path, b"") + block).split(b"\n")
                    yield from whole
        except FileNotFoundError:
            return

    def _text(self, path: Path, line: bytes) -> str:
        from laststand.emulator.core import events

        try:
            event = msgspec.json.decode(line, type=events.AnyEvent)
            envelope = msgspec.json.decode(line, type=_Envelope)
        except msgspec.MsgspecError:
            return line.decode(errors="replace")
        if isinstance(event, events.NodeStarted):
            self._clock_ns[path] = event.wall_time_ns - envelope.time_ns
        wall_s = (envelope.time_ns + self._clock_ns.get(path, 0)) / 1e9
        when = datetime.fromtimestamp(wall_s, UTC).isoformat(sep=" ", timespec="milliseconds")
        return f"{when.removesuffix('+00:00')} {path.stem} #{envelope.sequence} {event.describe()}"


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The place and time of an event in its file."""

    sequence: int
    time_ns: int
