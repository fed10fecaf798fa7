"""Follows the event files of a run that is under way: the new lines since the last look.

Frequent events come as columns, a part of a packed segment at a time. Such a part needs the header and the words before
it in its segment, so these are kept and read again with it.
"""

import logging
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.packed.layout import CELL, HEADER, KINDS_END, LINE_KINDS, WORD
from laststand.emulator.core.packed.reading import is_packed, whole_end
from laststand.emulator.storage.line_file import line_files
from laststand.emulator.verification.reading.line_blocks import DecodedEvents, decode_events
from laststand.emulator.verification.reading.packed_lines import read_events
from laststand.emulator.verification.tables.columns import Columns
from laststand.emulator.verification.tables.timeline import CollectedEvent

_READ_MAX: Final = 8 << 20
"""Bytes of a file that are taken at a time."""

_log: Final = logging.getLogger(__name__)


class NewEvents(NamedTuple):
    """The events that one process has written since the last call.

    Attributes:
        file: name of its event file.
        process: its node and incarnation.
        rare: events that are not packed, in its order.
        rows: columns of packed events, by kind, each in its order.
    """

    file: str
    process: tuple[int, int]
    rare: list[CollectedEvent[events.AnyEvent]]
    rows: dict[type[msgspec.Struct], Columns]

    @property
    def path(self) -> str:
        """The path of the event file within the run directory, by which events are referred to."""
        return f"events/{self.file}"


class EventTail:
    """The event files of a run, each read once.

    Args:
        events: their folder, which may not be there yet.
    """

    def __init__(self, events: Path) -> None:
        self._events = events
        self._files: dict[str, _FileTail] = {}
        self._broken: set[str] = set()

    def read(self) -> Iterator[NewEvents]:
        """Yields the new events. A file that cannot be read is logged, and left out from then on."""
        for path in line_files(self._events):
            if path.name in self._broken:
                continue
            tail = self._files.setdefault(path.name, _FileTail(path))
            try:
                yield from tail.read()
            except (ValueError, msgspec.MsgspecError, OSError) as error:
                self._broken.add(path.name)
                _log.warning("file=%s is left out of the view: %s", path.name, error)


class _FileTail:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._before = b""

    def read(self) -> Iterator[NewEvents]:
        while content := self._whole_lines():
            self._position += len(content)
            if is_packed(self._path):
                for stretch in self._stretches(content):
                    found = read_events(stretch)
                    yield self._new(found.writer[1:], found.texts, found.rows)
            else:
                lines = decode_events(content)
                yield self._new((lines.lines[0].node, lines.lines[0].incarnation), lines, {})

    def _new(
        self, process: tuple[int, int], lines: DecodedEvents, rows: dict[type[msgspec.Struct], Columns]
    ) -> NewEvents:
        collected = [
            CollectedEvent(
                node=line.node, incarnation=line.incarnation, sequence=line.sequence, time_ns=line.time_ns, event=event
            )
            for line, event in zip(lines.rare, lines.events, strict=True)
        ]
        return NewEvents(self._path.name, process, collected, rows)

    def _whole_lines(self) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._position)
            content = file.read(_READ_MAX)
        return content[: whole_end(content) if is_packed(self._path) else content.rfind(b"\n") + 1]

    def _stretches(self, content: bytes) -> Iterator[bytes]:
        """Yields the new lines of each segment, with the segment's header and the words before them."""
        first_bytes = content[::CELL]
        headers = [cell * CELL for cell, kind in enumerate(first_bytes) if kind == HEADER]
        for begin, end in pairwise(sorted({0, *headers, len(content)})):
            if begin in headers:
                self._before = b""
            stretch = content[begin:end]
            cells = first_bytes[begin // CELL : end // CELL]
            if any(kind in LINE_KINDS for kind in cells):
                yield self._before + stretch
            self._before += _without_lines(stretch, cells)


def _without_lines(stretch: bytes, cells: bytes) -> bytes:
    """Returns the header and the words of a stretch that begins with a line, a word or a header."""
    begins = [cell for cell, kind in enumerate(cells) if 0 < kind < KINDS_END]
    ends = [*begins[1:], len(cells)]
    found = zip(begins, ends, strict=True)
    return b"".join(stretch[begin * CELL : end * CELL] for begin, end in found if cells[begin] in (HEADER, WORD))
