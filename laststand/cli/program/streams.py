"""Standard streams that are closed, full, or have no reader: none of these states may look like a verdict.

Python and click themselves mostly end with exit code 1 then. Here stdout raises a separate error, which no handler of
file errors takes for an error of a run, and stderr never fails: a run continues without its progress, and is judged.
"""

import io
import os
import select
import sys
from typing import IO, TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STREAMS: Final = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))
"""Names and modes of the descriptors 0, 1 and 2."""


class OutputError(Exception):
    """Nothing can be printed on stdout."""


class ClosedPipeError(OutputError):
    """The reader of this program's output is gone."""


class UnwritableError(OutputError):
    """Stdout cannot be written to; the message says why."""


class _Output(io.FileIO):
    """The descriptor of stdout."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Writes some bytes.

        Raises:
            ClosedPipeError: the descriptor is a pipe without a reader.
            UnwritableError: another error.
        """
        try:
            return super().write(data)
        except BrokenPipeError as error:
            raise ClosedPipeError from error
        except OSError as error:
            raise UnwritableError(f"stdout cannot be written: {error.strerror}") from error


class _Messages(io.FileIO):
    """The descriptor of stderr: bytes that cannot be written there are dropped."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Writes bytes, or drops them."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def open_streams() -> None:
    """Makes all three streams usable; no file that the program opens later gets one of their descriptors.

    A closed stdin is empty, and writes to a closed stderr are dropped.

    Raises:
        UnwritableError: stdout is closed.
    """
    is_stdout_closed = sys.stdout is None
    for descriptor, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            _open_nowhere(descriptor, mode)
            setattr(sys, name, open(descriptor, "r" if mode == os.O_RDONLY else "w", closefd=False))  # noqa: SIM115
        elif getattr(sys, name) is getattr(sys, f"__{name}__") and name != "stdin":
            setattr(sys, name, _wrapped(getattr(sys, name), (_Output if name == "stdout" else _Messages)))
    if is_stdout_closed:
        raise UnwritableError("stdout is closed; send it to a file, or to /dev/null")


def leave_streams() -> bool:
    """Returns whether the reader of stdout is gone; a closed stderr does not change the exit code.

    What is still to be written to a stream that fails goes nowhere: the interpreter flushes once more at its end, and
    would complain.
    """
    closed = [stream for stream in (sys.stdout, sys.stderr) if _is_closed(stream)]
    for stream in closed:
        _open_nowhere(stream.fileno(), os.O_WRONLY)
    try:
        sys.stdout.flush()
    except OutputError:
        _open_nowhere(sys.stdout.fileno(), os.O_WRONLY)
    return sys.stdout in closed


def _wrapped(stream: TextIO, raw: type[io.FileIO]) -> io.TextIOWrapper:
    """Returns a stream like Python's own, except for failed writes."""
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(raw(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=bool(stream.line_buffering),
    )


def _open_nowhere(descriptor: int, mode: int) -> None:
    nowhere = os.open(os.devnull, mode)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def _is_closed(stream: IO[str]) -> bool:
    """Returns whether a stream is a pipe whose reader is gone."""
    try:
        watched = select.poll()
        watched.register(stream, 0)
        return any(happened & select.POLLERR for _, happened in watched.poll(0))
    except (OSError, ValueError):
        return False
