"""Ends by a signal: each has the exit code that a shell would report, which is no verdict."""

import signal
from types import FrameType
from typing import Final

_BY_SIGNAL: Final = 128
"""A process that a signal ended is reported as this and the signal's number."""


class Signals:
    """Makes SIGTERM and SIGHUP interruptions like Ctrl-C, and remembers which one came."""

    def __init__(self) -> None:
        self._received = signal.SIGINT

    @property
    def exit_code(self) -> int:
        """The exit code of an interrupted program."""
        return _BY_SIGNAL + self._received

    def install(self) -> None:
        """Begins to listen; also to Ctrl-C if that is ignored, as in a background job.

        There it is blocked instead: asyncio sets up an orderly interruption only if no program has replaced Python's
        own handler, and ``_interrupt`` calls that. A hangup that is ignored stays so, as ``nohup`` wants it.
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
