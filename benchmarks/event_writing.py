"""A leader's cost of writing down a batch: three frequent events, packed as brokers do it and as lines of JSON.

CPU time of one process, one write to the file for each batch, as each turn of a broker makes one.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.figure import Figure
from benchmarks.generate_log import LEADER_EVENTS_PER_BATCH, leader_events
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.node.event_writer import EventWriter

BATCHES: Final = 30_000
REPETITIONS: Final = 5
_NAMES: Final = {"packed": "0-0.packed", "json": "0-0.jsonl"}


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """Per event."""

    microseconds: float
    size: float


def measure() -> Iterator[Figure]:
    """Yields time and size of an event in both forms, taken in turn."""
    events = list(leader_events(BATCHES))
    found: dict[str, list[_Written]] = {form: [] for form in _NAMES}
    for _ in range(REPETITIONS):
        for form, name in _NAMES.items():
            found[form].append(_write(events, name))
    for form, written in found.items():
        yield Figure(name=f"events_{form}_us", unit="us", values=tuple(each.microseconds for each in written))
        yield Figure(name=f"events_{form}_size", unit="bytes", values=tuple(each.size for each in written))


def _write(events: list[events.Event], name: str) -> _Written:
    with tempfile.TemporaryDirectory(prefix="laststand-bench-") as directory:
        path = Path(directory) / name
        begin = time.process_time()
        writer = EventWriter(str(path), run="bench", node_id=NodeId(0), incarnation=0)
        for turn in range(0, len(events), LEADER_EVENTS_PER_BATCH):
            for event in events[turn : turn + LEADER_EVENTS_PER_BATCH]:
                writer.add(event)
            writer.flush()
        writer.close()
        seconds = time.process_time() - begin
        return _Written(microseconds=1e6 * seconds / len(events), size=path.stat().st_size / len(events))
