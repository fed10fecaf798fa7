"""The run's history: one line per invocation and completion, in the order in which they happened.

Indexes have no gaps. Lines gather in memory until ``flush`` writes them at once; a shell flushes before it sends, so
that an operation is recorded before its request leaves the process.
"""

import fcntl
import os
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

from laststand.emulator.core.client.history_lines import history_line
from laststand.emulator.core.client.steps import ClientRecord
from laststand.emulator.core.history import HistoryLine, HistorySealed, Operation, OperationType, SendOperation
from laststand.emulator.core.packed.layout import SUFFIX
from laststand.emulator.core.types import Acks
from laststand.emulator.storage.line_file import LineFile, line_files, read_lines

HISTORY_FILE: Final = f"history{SUFFIX}"
"""Name of the history of a run's own clients."""

_ENCODER: Final = msgspec.json.Encoder()
_LINE: Final[msgspec.json.Decoder[HistoryLine]] = msgspec.json.Decoder(HistoryLine)
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class History:
    """Writer of a history, packed if the name of the file says so.

    It holds a lock on the file, so that no other process seals the file meanwhile.

    Raises:
        OSError: the file exists or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, _NEW_FILE | os.O_EXCL, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        self._next_index = 0
        self._file = LineFile(descriptor, path, constants={})

    def __enter__(self) -> "History":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        if error is None:
            _seal(self._file, index=self._next_index)
        self._file.close()

    def add(self, recorded: ClientRecord, *, process: str, acks: Acks | None = None, phase: str | None = None) -> None:
        """Adds the line about an operation; arguments as in ``history_line``."""
        now_ns = time.monotonic_ns()
        line = history_line(recorded, index=self._next_index, time_ns=now_ns, process=process, acks=acks, phase=phase)
        _add(self._file, line)
        self._next_index += 1

    def flush(self) -> None:
        """Writes the lines added since the last call."""
        self._file.flush()


def read_history(path: Path) -> list[HistoryLine]:
    """Returns the whole lines of a history.

    Raises:
        OSError: the file cannot be read.
        msgspec.MsgspecError: a line is none of a history.
    """
    return _LINE.decode_lines(read_lines(path))


def history_of(run: Path) -> Path:
    """Returns the history of a run's own clients.

    Raises:
        FileNotFoundError: the run has no history.
    """
    found = line_files(run, "history")
    if not found:
        raise FileNotFoundError(f"{run} has no history")
    return found[0]


def rewrite_history(path: Path, operations: Iterable[Operation]) -> None:
    """Replaces a history that is no longer written to, and seals it.

    Raises:
        OSError: the file cannot be written.
    """
    file = LineFile(os.open(path, _NEW_FILE | os.O_TRUNC, 0o644), path, constants={})
    for operation in operations:
        _add(file, operation)
    file.flush()
    _seal(file, index=file.digest.lines)
    file.close()


def complete_history(path: Path) -> int:
    """Gives every unfinished send in a dead client's history the outcome ``info``, and seals it; returns their number.

    A client that ended before its first line has an empty history. A torn last line is removed: its operation was never
    sent, since a client writes before it sends.
    """
    lines = read_history(path) if path.exists() else []
    operations = [line for line in lines if not isinstance(line, HistorySealed)]
    if len(operations) < len(lines):
        return 0
    unfinished: dict[str, SendOperation] = {}
    for operation in operations:
        if isinstance(operation, SendOperation):
            if operation.type is OperationType.INVOKE:
                unfinished[operation.operation_id] = operation
            else:
                unfinished.pop(operation.operation_id, None)
    endings = [
        msgspec.structs.replace(
            send,
            index=len(lines) + position,
            time_ns=time.monotonic_ns(),
            type=OperationType.INFO,
            error="CLIENT_GONE",
        )
        for position, send in enumerate(unfinished.values())
    ]
    rewrite_history(path, [*operations, *endings])
    return len(endings)


def _add(file: LineFile, line: HistoryLine) -> None:
    file.add(line, number=line.index, time_ns=line.time_ns, text=partial(_ENCODER.encode, line))


def _seal(file: LineFile, *, index: int) -> None:
    file.flush()
    digest = file.digest
    _add(file, HistorySealed(index=index, time_ns=time.monotonic_ns(), lines=digest.lines, digest=digest.hexdigest()))
    file.flush()
