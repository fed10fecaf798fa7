"""The run's history: one line per invocation and completion, in the order in which they happened.

Indexes have no gaps. Lines gather in memory until ``flush``, which is one write; a shell flushes before it sends, so
that what left the process is always on record as invoked.
"""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

from emulator.core.client.history_lines import final_read_line, poll_line, send_line
from emulator.core.client.steps import FinalReadRecorded, PollRecorded, SendRecorded
from emulator.core.history import HistorySealed, Operation
from emulator.core.types import Acks
from emulator.storage.file_digest import FileDigest

_ENCODER: Final = msgspec.json.Encoder()


class History:
    """Writer of ``history.jsonl``. It holds a lock on the file, so that nobody completes what is still written.

    Raises:
        OSError: the file exists or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        self._next_index = 0
        self._digest = FileDigest()
        self._lines: list[Operation] = []

    def __enter__(self) -> "History":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        if error is None:
            self._write(seal(self._digest, index=self._next_index))
        os.close(self._descriptor)

    def add_send(self, recorded: SendRecorded, *, process: str, acks: Acks) -> None:
        """Adds a line about a batch."""
        now_ns = time.monotonic_ns()
        self._add(send_line(recorded, index=self._next_index, time_ns=now_ns, process=process, acks=acks))

    def add_poll(self, recorded: PollRecorded, *, process: str, phase: str) -> None:
        """Adds a line about a fetch."""
        now_ns = time.monotonic_ns()
        self._add(poll_line(recorded, index=self._next_index, time_ns=now_ns, process=process, phase=phase))

    def add_final_read(self, recorded: FinalReadRecorded, *, process: str) -> None:
        """Adds a line about the end of a final read."""
        self._add(final_read_line(recorded, index=self._next_index, time_ns=time.monotonic_ns(), process=process))

    def flush(self) -> None:
        """Writes the lines added since the last call."""
        if not self._lines:
            return
        payload = _ENCODER.encode_lines(self._lines)
        self._lines.clear()
        self._digest.update(payload)
        self._write(payload)

    def _write(self, payload: bytes) -> None:
        rest = memoryview(payload)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _add(self, operation: Operation) -> None:
        self._lines.append(operation)
        self._next_index += 1


def seal(digest: FileDigest, *, index: int) -> bytes:
    """Returns the line that seals a history which ends here.

    Args:
        digest: of all its lines.
        index: how many there are.
    """
    line = HistorySealed(index=index, time_ns=time.monotonic_ns(), lines=digest.lines, digest=digest.hexdigest())
    return _ENCODER.encode(line) + b"\n"
