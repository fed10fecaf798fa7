"""The event log of one incarnation: one write per turn of the process, before the turn's messages leave.

A broker packs the lines of frequent events (``laststand.emulator.core.packed``). Any other line is the event's own JSON
with an envelope in front. A killed process loses nothing that it had written; a power loss does not affect this file.
The last line of a killed process may be torn; that of a process that ended in order seals the file.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from laststand.emulator.core import events
from laststand.emulator.core.errors import StorageError
from laststand.emulator.core.types import CauseId, NodeId
from laststand.emulator.storage.line_file import LineFile

_ENCODER: Final = msgspec.json.Encoder()
_EVENT_STARTS: Final = b'"type":'


def encode_event(event: events.Event) -> bytes:
    """Returns an event as it ends its line: its own JSON without the opening brace."""
    return _ENCODER.encode(event)[1:]


def event_of_line(line: bytes) -> bytes:
    """Returns the bytes of ``encode_event`` for the event on a line."""
    return line[line.index(_EVENT_STARTS) :]


class EventWriter:
    """Writes ``events/<node>-<incarnation>.jsonl`` or ``.packed``.

    Args:
        path: the file, packed if its name says so; it must not exist, because two incarnations never share one.
        run: the run's id.
        node_id: the node of the events.
        incarnation: number of the process.
        clock: gives the time of events that no turn made, in ns.

    Raises:
        StorageError: the file exists, or cannot be made.
    """

    def __init__(
        self,
        path: str,
        *,
        run: str,
        node_id: NodeId,
        incarnation: int,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except OSError as error:
            raise StorageError(path=path, reason=error.strerror or "cannot be made") from error
        self._path = path
        self._node_id = node_id
        self._clock = clock
        envelope = {"run": run, "node": node_id, "incarnation": incarnation}
        self._file = LineFile(descriptor, Path(path), constants=envelope)
        self._prefix = _ENCODER.encode(envelope)[:-1]
        self._sequence = 0
        self._events: list[events.Event] = []

    def add(self, event: events.Event) -> None:
        """Adds an event to the turn's write."""
        self._events.append(event)

    def flush(self, *, at_ns: int | None = None) -> None:
        """Writes the turn's events; no effect if there are none.

        Args:
            at_ns: the time of the turn in which the decisions were made, however long the process is paused, or waits
                for its disk, before it writes them. The present time, if no turn made them.

        Raises:
            StorageError: the write failed; the process has to end.
        """
        if not self._events:
            return
        time_ns = self._clock() if at_ns is None else at_ns
        for sequence, event in enumerate(self._events, self._sequence):
            text = partial(self._text, event, sequence, time_ns)
            self._file.add(event, number=sequence, time_ns=time_ns, text=text)
        self._sequence += len(self._events)
        self._events.clear()
        try:
            self._file.flush()
        except OSError as error:
            raise StorageError(path=self._path, reason=error.strerror or "write failed") from error

    def _text(self, event: events.Event, sequence: int, time_ns: int) -> bytes:
        return b'%s,"sequence":%d,"time_ns":%d,%s' % (self._prefix, sequence, time_ns, encode_event(event))

    def close(self) -> None:
        """Closes the file after a last write, and a line that seals it."""
        self.flush()
        cause_id, digest = CauseId(f"seal-{self._node_id}"), self._file.digest
        self.add(events.FileSealed(cause_id=cause_id, lines=digest.lines, digest=digest.hexdigest()))
        self.flush()
        self._file.close()
