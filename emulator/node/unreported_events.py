"""Recovers events that an earlier process of a controller decided durably and was killed before writing.

A kill between the commit of a record and the write of its event leaves a decision without an event. The metadata log
keeps the events with their records; the next process, or the next of several controllers that leads, first writes those
that no event file has.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.node.event_writer import encode_event, event_of_line


def event_files(event_file: str, node_ids: Iterable[NodeId]) -> list[str]:
    """Returns the paths of nodes' event files, ``<node>-<incarnation>.jsonl``, in the directory of this node's own."""
    directory = Path(event_file).parent
    return [str(path) for node_id in node_ids for path in sorted(directory.glob(f"{node_id}-*.jsonl"))]


def read_reported(paths: Iterable[str]) -> frozenset[bytes]:
    """Returns the encoded events on the complete lines of files; a missing file has none."""
    reported: set[bytes] = set()
    for path in paths:
        try:
            with open(path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            continue
        reported.update(event_of_line(line) for line in content.split(b"\n")[:-1])
    return frozenset(reported)


def unreported_events(
    kept: Sequence[events.ControllerEvent], reported: frozenset[bytes]
) -> list[events.ControllerEvent]:
    """Returns, in order, the events of the metadata log that are not among those reported."""
    return [event for event in kept if encode_event(event) not in reported]
