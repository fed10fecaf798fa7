"""Lines of a file or of standard input for an event loop, from a pipe, a file or a terminal."""

import asyncio
import os
import sys
import threading
from typing import Final

_BLOCKS_AHEAD_MAX: Final = 64
_LINGERING_LINES_MAX: Final = 100_000
_BLOCK_BYTES: Final = 1 << 18


class LineInput:
    """Reads ahead in a thread, up to a limit. Create it within a coroutine."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Begins to read a file descriptor, by default that of standard input."""
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._loop = asyncio.get_running_loop()
        self._blocks: asyncio.Queue[list[bytes]] = asyncio.Queue()
        self._room = threading.Semaphore(_BLOCKS_AHEAD_MAX)
        self._is_over = False
        # A daemon, since nothing ends a read of a terminal but a line, and the process must be able to.
        threading.Thread(target=self._read, daemon=True, name="line input").start()

    async def next_lines(self, *, linger_s: float = 0.0) -> list[bytes]:
        """Returns the next lines without their ends: at least one, and none at the end of the input.

        Args:
            linger_s: how long lines are collected, from the first of them on.
        """
        lines = await self._next_block()
        if not lines or linger_s == 0:
            return lines
        try:
            async with asyncio.timeout(linger_s):
                while len(lines) < _LINGERING_LINES_MAX and (more := await self._next_block()):
                    lines += more
        except TimeoutError:
            pass
        return lines

    async def _next_block(self) -> list[bytes]:
        if self._is_over:
            return []
        lines = await self._blocks.get()
        self._room.release()
        self._is_over = not lines
        return lines

    def _read(self) -> None:
        # Not through a buffered reader: this thread would hold its lock when the interpreter ends, which is fatal.
        rest = b""
        while block := os.read(self._descriptor, _BLOCK_BYTES):
            whole, end, rest = self._cut(rest, block)
            if end and not self._enqueue(whole.split(b"\n")):
                return
        if rest:
            self._enqueue([rest])
        self._enqueue([])

    @staticmethod
    def _cut(rest: bytes, block: bytes) -> tuple[bytes, bytes, bytes]:
        """Returns the complete lines that were read, their last line end (empty if there is none), and the rest."""
        end = block.rfind(b"\n")
        if end < 0:
            return b"", b"", rest + block
        return rest + block[:end], block[end : end + 1], block[end + 1 :]

    def _enqueue(self, lines: list[bytes]) -> bool:
        if any(line.endswith(b"\r") for line in lines):
            lines = [line.removesuffix(b"\r") for line in lines]
        self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._blocks.put_nowait, lines)
        except RuntimeError:  # the loop is closed: no task reads any more
            return False
        return True
