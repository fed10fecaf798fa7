"""Ends that come from outside, a signal or a closed pipe: each has the exit code that a shell would report.

None of them may look like a verdict, and Python's own answers would: click ends with 1 where a pipe is closed.
"""

import os
import select
import signal
import sys
from types import FrameType
from typing import IO, Final

_BY_SIGNAL: Final = 128
"""A process that a signal ended is reported as this and the signal's number."""

CLOSED_PIPE_EXIT_CODE: Final = _BY_SIGNAL + signal.SIGPIPE


class ClosedPipeError(Exception):
    """Nobody reads any more what this program prints."""


class Signals:
    """Makes SIGTERM and SIGHUP interruptions like Ctrl-C, and remembers which one came."""

    def __init__(self) -> None:
        self._received = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """Of an interrupted program."""
        return _BY_SIGNAL + self._received

    def hear(self) -> None:
        """Begins to listen; also to Ctrl-C where that is ignored, as in a job in the background.

        There it is blocked instead: asyncio sets up an orderly interruption only where nobody has replaced Python's own
        handler, and ``_interrupt`` calls that. A hangup that is ignored stays so, as ``nohup`` wants it.
        """
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, self._interrupt)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Does what Ctrl-C does at this moment."""
        self._received = signal.Signals(number)
        on_ctrl_c = signal.getsignal(signal.SIGINT)
        if not callable(on_ctrl_c):
            raise KeyboardInterrupt
        on_ctrl_c(signal.SIGINT, frame)


def leave_closed_pipes() -> bool:
    """Returns whether nobody reads stdout or stderr any more; what is still to be written there goes nowhere."""
    closed = [stream for stream in (sys.stdout, sys.stderr) if _is_closed(stream)]
    for stream in closed:
        # The interpreter flushes once more at its end, and would complain.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
    return bool(closed)


def _is_closed(stream: IO[str]) -> bool:
    """Whether a stream is a pipe whose reader is gone."""
    try:
        watched = select.poll()
        watched.register(stream, 0)
        return any(happened & select.POLLERR for _, happened in watched.poll(0))
    except (OSError, ValueError):
        return False
