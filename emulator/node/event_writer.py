"""The event log of one incarnation: JSON lines, one write per turn of the process, before the turn's messages leave.

A line is the event's own JSON with an envelope spliced in front. A process that is killed loses nothing that it had
written; a power loss does not touch this file. The last line of a killed process may be torn; that of one that ended in
order seals the file.
"""

import os
import time
from typing import Final

import msgspec

from emulator.core.errors import StorageError
from emulator.core.events import Event, FileSealed
from emulator.core.types import CauseId, NodeId
from emulator.storage.file_digest import FileDigest

_ENCODER: Final = msgspec.json.Encoder()
_EVENT_STARTS: Final = b'"type":'


def encode_event(event: Event) -> bytes:
    """Returns an event as it ends its line: its own JSON without the opening brace."""
    return _ENCODER.encode(event)[1:]


def event_of_line(line: bytes) -> bytes:
    """Returns what ``encode_event`` made of the event on a line."""
    return line[line.index(_EVENT_STARTS) :]


class EventWriter:
    """Writes ``events/<node>-<incarnation>.jsonl``.

    Args:
        path: the file; it must not exist, because two incarnations never share one.
        run: the run's id.
        node_id: whose events these are.
        incarnation: which of its processes.

    Raises:
        StorageError: the file exists, or cannot be made.
    """

    def __init__(self, path: str, *, run: str, node_id: NodeId, incarnation: int) -> None:
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except OSError as error:
            raise StorageError(path=path, reason=error.strerror or "cannot be made") from error
        self._path = path
        self._node_id = node_id
        self._digest = FileDigest()
        envelope = _ENCODER.encode({"run": run, "node": node_id, "incarnation": incarnation})
        self._prefix = envelope[:-1] + b',"sequence":'
        self._sequence = 0
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        """Adds an event to the turn's write."""
        self._events.append(event)

    def flush(self) -> None:
        """Writes the turn's events; no effect if there are none.

        Raises:
            StorageError: the write failed; the process has to end.
        """
        if not self._events:
            return
        stamp = b',"time_ns":%d,' % time.monotonic_ns()
        prefix = self._prefix
        lines: list[bytes] = []
        for sequence, event in enumerate(self._events, self._sequence):
            lines += (prefix, b"%d" % sequence, stamp, encode_event(event), b"\n")
        self._sequence += len(self._events)
        self._events.clear()
        content = b"".join(lines)
        self._digest.update(content)
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise StorageError(path=self._path, reason=error.strerror or "write failed") from error

    def close(self) -> None:
        """Closes the file after a last write, and a line that seals it."""
        self.flush()
        cause_id = CauseId(f"seal-{self._node_id}")
        self.add(FileSealed(cause_id=cause_id, lines=self._digest.lines, digest=self._digest.hexdigest()))
        self.flush()
        os.close(self._descriptor)
