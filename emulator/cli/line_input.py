"""Lines of standard input for an event loop, whatever standard input is: a pipe, a file or a terminal."""

import asyncio
import os
import sys
import threading
from typing import Final

_LINES_AHEAD_MAX: Final = 10_000
_LINES_PER_CALL: Final = 1_000
_BLOCK_BYTES: Final = 1 << 16


class LineInput:
    """Reads ahead in a thread, up to a limit. Create it within a coroutine."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Begins to read a file descriptor, that of standard input if not given."""
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(_LINES_AHEAD_MAX)
        self._is_over = False
        # A daemon, since nothing ends a read of a terminal but a line, and the process must be able to.
        threading.Thread(target=self._read, daemon=True, name="line input").start()

    async def next_lines(self) -> list[bytes]:
        """Returns the lines that are there, at least one, without their ends; none once the input is over."""
        lines: list[bytes] = []
        while not self._is_over and len(lines) < _LINES_PER_CALL and (not lines or not self._lines.empty()):
            line = await self._lines.get()
            if line is None:
                self._is_over = True
            else:
                lines.append(line)
                self._room.release()
        return lines

    def _read(self) -> None:
        # Not through a buffered reader: this thread would hold its lock when the interpreter ends, which is fatal.
        rest = b""
        while block := os.read(self._descriptor, _BLOCK_BYTES):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                self._room.acquire()
                if not self._put(line.removesuffix(b"\r")):
                    return
        if rest:
            self._put(rest)
        self._put(None)

    def _put(self, line: bytes | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:  # the loop is closed: nobody reads any more
            return False
        return True
