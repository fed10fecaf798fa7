"""One end of a connection of frames (an int32 size and that many bytes), as a protocol of asyncio.

A frame that is larger than one read is received into memory of its own, so that it is not copied.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from laststand.emulator.rpc.limits import MESSAGE_BYTES_MAX

_SIZE_BYTES: Final = 4
_CHUNK_BYTES: Final = 1 << 16


class FrameEnd(asyncio.BufferedProtocol):
    """Receives frames, and passes them on in order, unless it is held; at first it is held.

    Args:
        on_frame: called with each frame, including its size; closes both ends of an invalid connection.
        on_lost: called when the connection is over.

    Attributes:
        other: the end whose frames are written to this one; it is held while this end's peer does not read.
    """

    other: "FrameEnd"

    def __init__(self, *, on_frame: Callable[[bytes | bytearray], None], on_lost: Callable[[], None]) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._chunk = memoryview(bytearray(_CHUNK_BYTES))
        self._filled = 0
        self._frame: bytearray | None = None
        self._received = 0
        self._frames: deque[bytes | bytearray] = deque()
        self._holds = 1

    @property
    def is_open(self) -> bool:
        """Frames can be written."""
        return self._transport is not None and not self._transport.is_closing()

    def write(self, frame: bytes | bytearray) -> None:
        """Writes a frame, unless the connection is closed."""
        if self._transport is not None:
            self._transport.write(frame)

    def close(self) -> None:
        """Closes the connection after all written bytes are sent."""
        if self._transport is not None:
            self._transport.close()

    def hold(self) -> None:
        """Hands no frame on until ``release`` is called as often."""
        self._holds += 1
        if self._holds == 1 and self._transport is not None:
            self._transport.pause_reading()

    def release(self) -> None:
        """Ends a hold."""
        self._holds -= 1
        self._hand_on()
        if self._holds == 0 and self._transport is not None:
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Receives nothing before ``release``."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Reports the end."""
        self._on_lost()

    def pause_writing(self) -> None:
        """Holds the other end, because the peer of this one does not read."""
        self.other.hold()

    def resume_writing(self) -> None:
        """Releases the other end."""
        self.other.release()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns the buffer for the next bytes: in the incomplete frame, or in the chunk."""
        return self._chunk[self._filled :] if self._frame is None else memoryview(self._frame)[self._received :]

    def buffer_updated(self, nbytes: int) -> None:
        """Splits received bytes into frames.

        Raises:
            ConnectionAbortedError: a frame is longer than any message may be; asyncio closes the connection.
        """
        if self._frame is None:
            self._split(self._filled + nbytes)
        else:
            self._received += nbytes
            if self._received == len(self._frame):
                self._frames.append(self._frame)
                self._frame = None
        self._hand_on()

    def _split(self, end: int) -> None:
        """Splits a chunk into frames; an incomplete one goes to the memory that receives the rest."""
        chunk, begin = self._chunk, 0
        self._filled = 0
        while end - begin >= _SIZE_BYTES:
            size = _SIZE_BYTES + int.from_bytes(chunk[begin : begin + _SIZE_BYTES], "big")
            if size > MESSAGE_BYTES_MAX:
                raise ConnectionAbortedError(f"a frame of {size} bytes")
            if end - begin < size:
                self._frame = bytearray(size)
                self._received = end - begin
                self._frame[: self._received] = chunk[begin:end]
                return
            self._frames.append(bytes(chunk[begin : begin + size]))
            begin += size
        self._filled = end - begin
        chunk[: self._filled] = bytes(chunk[begin:end])

    def _hand_on(self) -> None:
        while self._frames and not self._holds and self.is_open:
            self._on_frame(self._frames.popleft())
