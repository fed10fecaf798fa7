"""The demo as processes would have written it: the events of brokers packed."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.packed.writing import LinePacker

_EVENT: msgspec.json.Decoder[events.AnyEvent] = msgspec.json.Decoder(events.AnyEvent)
SEGMENT_BYTES = 4096


def packed_events(run: Path, target: Path) -> None:
    """Copies the event files of a run that was written by hand, those of brokers packed in several segments."""
    target.mkdir(parents=True)
    for name, lines in event_lines(run).items():
        (target / name).write_bytes(b"".join(content for _, content in lines))


def event_lines(run: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Returns the time and the bytes of each line of a run, by the name of its file; brokers' lines are packed."""
    found = {}
    for path in sorted((run / "events").glob("*.jsonl")):
        lines = path.read_bytes().splitlines()
        if path.name.startswith(("harness", "100")):
            found[path.name] = [(json.loads(line)["time_ns"], line + b"\n") for line in lines]
        else:
            found[f"{path.stem}.packed"] = list(_packed(lines))
    return found


def _packed(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    first = json.loads(lines[0])
    constants = {name: first[name] for name in ("run", "node", "incarnation")}
    packer = LinePacker(constants, segment_bytes=SEGMENT_BYTES)
    for line in lines:
        place = json.loads(line)
        packer.add(
            _EVENT.decode(line),
            number=place["sequence"],
            time_ns=place["time_ns"],
            text=lambda text=line: text,  # type: ignore[misc]
        )
        yield place["time_ns"], packer.pop()
