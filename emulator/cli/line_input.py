"""Lines of standard input for an event loop, whatever standard input is: a pipe, a file or a terminal."""

import asyncio
import sys
import threading
from typing import BinaryIO, Final

_LINES_AHEAD_MAX: Final = 10_000
_LINES_PER_CALL: Final = 1_000


class LineInput:
    """Reads ahead in a thread, up to a limit. Create it within a coroutine."""

    def __init__(self, stream: BinaryIO | None = None) -> None:
        """Begins to read ``stream``, standard input if not given."""
        self._stream = sys.stdin.buffer if stream is None else stream
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
        for line in self._stream:
            self._room.acquire()
            if not self._put(line.rstrip(b"\r\n")):
                return
        self._put(None)

    def _put(self, line: bytes | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:  # the loop is closed: nobody reads any more
            return False
        return True
