"""What a supervisor finds in a directory in which a cluster stood before: events whose other half nobody wrote."""

from pathlib import Path
from typing import Final

import msgspec

from emulator.core.events import AnyEvent, ClientStarted, IncarnationEnded, IncarnationStarted
from emulator.core.types import NodeId

_EVENT: Final[msgspec.json.Decoder[AnyEvent]] = msgspec.json.Decoder(AnyEvent)
_HARNESS_FILES: Final = "harness-*.jsonl"


class Leftovers(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisors before left open.

    Attributes:
        harnesses: how many there were.
        processes: nodes and incarnations whose end nobody noted. They died with their supervisor.
        histories: files of the clients that were let in, relative to the run directory.
    """

    harnesses: int
    processes: tuple[tuple[NodeId, int], ...]
    histories: tuple[str, ...]


def find_leftovers(directory: Path) -> Leftovers:
    """Reads the harnesses' event files of a run directory. Lines that are no events are left to the oracle."""
    files = list((directory / "events").glob(_HARNESS_FILES))
    started: dict[tuple[NodeId, int], None] = {}
    histories: list[str] = []
    for path in sorted(files, key=lambda file: int(file.stem.rpartition("-")[2])):
        for line in path.read_bytes().splitlines():
            try:
                event = _EVENT.decode(line)
            except msgspec.MsgspecError:
                continue
            match event:
                case IncarnationStarted():
                    started[event.started_node, event.started_incarnation] = None
                case IncarnationEnded():
                    started.pop((event.ended_node, event.ended_incarnation), None)
                case ClientStarted():
                    histories.append(event.history_file)
                case _:
                    pass
    return Leftovers(harnesses=len(files), processes=tuple(started), histories=tuple(histories))
