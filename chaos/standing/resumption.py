"""Finds unfinished records in the directory of an earlier cluster: events whose counterpart was never written.

In a cluster that another program started, these are also events of processes that had ended before the supervisor came.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.storage.line_file import line_files, read_texts
from laststand.emulator.user_files import read_bytes

_EVENT: Final[msgspec.json.Decoder[events.AnyEvent]] = msgspec.json.Decoder(events.AnyEvent)
_HARNESS_FILES: Final = "harness-*.jsonl"
_NODE_FILES: Final = "[0-9]*-*"
_LAST_LINES: Final = 2
"""The last lines of a process that stopped in order: that it did, and the seal."""


class Leftovers(msgspec.Struct, frozen=True, kw_only=True):
    """The unfinished records that earlier supervisors left.

    Attributes:
        harnesses: number of earlier harnesses.
        started: nodes and incarnations of all processes on record.
        processes: nodes and incarnations whose end was not recorded. They died with their supervisor.
        histories: history files of connected clients, relative to the run directory.
    """

    harnesses: int
    started: frozenset[tuple[NodeId, int]]
    processes: tuple[tuple[NodeId, int], ...]
    histories: tuple[str, ...]


def find_leftovers(directory: Path) -> Leftovers:
    """Reads the harnesses' event files of a run directory. Lines that are no events are left to the oracle."""
    files = list((directory / "events").glob(_HARNESS_FILES))
    started: set[tuple[NodeId, int]] = set()
    running: dict[tuple[NodeId, int], None] = {}
    histories: list[str] = []
    for path in sorted(files, key=lambda file: int(file.stem.rpartition("-")[2])):
        for line in read_bytes(path).splitlines():
            try:
                event = _EVENT.decode(line)
            except msgspec.MsgspecError:
                continue
            match event:
                case events.IncarnationStarted():
                    started.add((event.started_node, event.started_incarnation))
                    running[event.started_node, event.started_incarnation] = None
                case events.IncarnationEnded():
                    running.pop((event.ended_node, event.ended_incarnation), None)
                case events.ClientStarted():
                    histories.append(event.history_file)
                case _:
                    pass
    return Leftovers(
        harnesses=len(files), started=frozenset(started), processes=tuple(running), histories=tuple(histories)
    )


class UnrecordedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that has left events, and whose start no harness recorded.

    Attributes:
        has_stopped: whether its events show that it ended in order.
    """

    node_id: NodeId
    incarnation: int
    has_stopped: bool


def find_unrecorded(directory: Path, started: frozenset[tuple[NodeId, int]]) -> Iterator[UnrecordedProcess]:
    """Yields the processes of a run directory that are not among those on record, by node and incarnation."""
    found = {_process_of(path): path for path in line_files(directory / "events", _NODE_FILES)}
    for node_id, incarnation in sorted(found.keys() - started):
        yield UnrecordedProcess(
            node_id=node_id, incarnation=incarnation, has_stopped=_has_stopped(found[node_id, incarnation])
        )


def _process_of(event_file: Path) -> tuple[NodeId, int]:
    node, _, incarnation = event_file.stem.partition("-")
    return NodeId(int(node)), int(incarnation)


def _has_stopped(event_file: Path) -> bool:
    for line in read_texts(event_file).content.splitlines()[-_LAST_LINES:]:
        with suppress(msgspec.MsgspecError):
            if isinstance(_EVENT.decode(line), events.NodeStopped):
                return True
    return False
