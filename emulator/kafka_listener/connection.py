"""One client's connection: frames in their order, one request at a time, as Kafka's own network threads do it.

Kafka reads a request, mutes the connection until the answer is handed to the socket, and reads on. So answers have
the order of requests, a request is not applied before its predecessor is answered, and a client that reads nothing
makes the broker keep one answer at most.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

from laststand.emulator.core.requester import ANONYMOUS, Requester
from laststand.emulator.core.types import NodeId
from laststand.emulator.kafka_listener.message_codec import Buffers

_log: Final = logging.getLogger(__name__)

_SIZE_BYTES: Final = 4
_READ_AHEAD: Final = 2
"""Frames that may wait; then nothing more is read from the socket."""

_TLS_HELLO: Final = b"\x16\x03"
_HTTP: Final = (b"GET ", b"POST", b"HEAD", b"PUT ")


class RefusedError(Exception):
    """A request that Kafka answers by closing the connection; the text says why."""


class Handle(Protocol):
    """Answers frames."""

    async def __call__(self, connection: "KafkaConnection", frame: bytes) -> Buffers | None:
        """Returns the answer; ``None`` for a request without one.

        Raises:
            RefusedError: the connection is to be closed.
        """
        ...


class KafkaConnection(asyncio.Protocol):
    """A connection of a client.

    Args:
        link: the Kafka client, as an end of links, to whose listener the connection was made.
        number: unique in this process.
        max_bytes: the largest frame (``socket.request.max.bytes``).
        handle: answers frames; ``None`` while no client is served.
        on_end: called once the connection is over.

    Attributes:
        link: the given link.
        number: the given number.
        peer: the client's address, ``host:port``.
        client_id: of the newest request.
        software: name and version that the client gave in ApiVersions.
        principal: of the client; ``User:ANONYMOUS`` if it does not authenticate.
        is_authenticated: whether it has authenticated.
        exchange: the state of its authentication (``sasl.Exchange``).
        is_secure: whether it uses TLS.
    """

    def __init__(
        self,
        *,
        link: NodeId,
        number: int,
        max_bytes: int,
        handle: Handle | None,
        on_end: "Callable[[KafkaConnection], None]",
    ) -> None:
        self.link = link
        self.number = number
        self.peer = ""
        self.client_id = ""
        self.software = ""
        self.principal = ANONYMOUS
        self.is_authenticated = False
        self.exchange: object | None = None
        self.is_secure = False
        self._max_bytes = max_bytes
        self._handle = handle
        self._on_end = on_end
        self._buffer = bytearray()
        self._frames: deque[bytes] = deque()
        self._has_frames = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._is_half_closed = False
        self._muted_s = 0.0
        self._awaiting_write: list[Callable[[bool], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._active_s: float | None = None  # until the connection is made

    def authenticate(self, principal: str) -> None:
        """Notes that the client has authenticated."""
        self.principal = principal
        self.is_authenticated = True
        self.exchange = None

    @property
    def requester(self) -> Requester:
        """The client as the sender of requests."""
        return Requester(self.principal, self.peer.rpartition(":")[0])

    def close_if_idle(self, *, now_s: float, max_idle_s: float) -> None:
        """Closes the connection if nothing was received or sent for a time, even if reading is paused.

        Args:
            now_s: of the event loop.
            max_idle_s: ``connections.max.idle.ms``, in seconds.
        """
        if self._active_s is not None and now_s - self._active_s >= max_idle_s:
            self._refuse(f"idle for {max_idle_s:.0f} s")
            self._transport.abort()

    def when_written(self, callback: Callable[[bool], None]) -> None:
        """Registers a callback that is called with whether the next response was written to an open connection."""
        self._awaiting_write.append(callback)

    def report_unwritten(self) -> None:
        """Reports that the next response was not handed to the socket."""
        self._report_written(is_written=False)

    def mute(self, for_ms: int) -> None:
        """Stops reading for a time after the next response, as the client is above its quota."""
        self._muted_s = for_ms / 1000

    def close(self) -> None:
        """Closes the connection; written bytes are still sent. A connection that is not open yet is refused then."""
        if self._active_s is None:
            self._handle = None
        else:
            self._transport.close()

    # --- Called by asyncio ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts to serve."""
        self._active_s = asyncio.get_running_loop().time()
        self._transport = cast(asyncio.Transport, transport)
        host, port, *_ = transport.get_extra_info("peername") or ("?", 0)
        self.peer = f"{host}:{port}"
        if self._handle is None:
            self._transport.abort()
        else:
            self._task = asyncio.get_running_loop().create_task(self._serve(self._handle))

    def data_received(self, data: bytes) -> None:
        """Splits received bytes into frames."""
        self._active_s = asyncio.get_running_loop().time()
        self._buffer += data
        while len(self._buffer) >= _SIZE_BYTES:
            size = int.from_bytes(self._buffer[:_SIZE_BYTES], "big", signed=True)
            if not 0 < size <= self._max_bytes:
                self._refuse(_size_problem(bytes(self._buffer[:_SIZE_BYTES]), size))
                return
            end = _SIZE_BYTES + size
            if len(self._buffer) < end:
                break
            self._frames.append(bytes(memoryview(self._buffer)[_SIZE_BYTES:end]))
            del self._buffer[:end]
            self._has_frames.set()
        if len(self._frames) > _READ_AHEAD:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Keeps the connection until the received requests are answered; a TLS connection cannot be half-closed."""
        self._is_half_closed = True
        self._has_frames.set()
        return not self.is_secure

    def pause_writing(self) -> None:
        """Holds the next request back: the client does not read its answers."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Resumes reading."""
        self._may_write.set()

    def connection_lost(self, _: Exception | None) -> None:
        """Gives up unanswered requests."""
        if self._task is not None:
            self._task.cancel()
        self.report_unwritten()
        self._on_end(self)

    # --- Requests -------------------------------------------------------------------------------------------------

    async def _serve(self, handle: Handle) -> None:
        try:
            while (frame := await self._next_frame()) is not None:
                answer = await handle(self, frame)
                if answer is not None:
                    size = sum(map(len, answer))
                    self._transport.writelines([size.to_bytes(_SIZE_BYTES, "big"), *answer])
                    self._report_written(is_written=not self._transport.is_closing())
                    await self._may_write.wait()
                    self._active_s = asyncio.get_running_loop().time()
                if self._muted_s:
                    muted_s, self._muted_s = self._muted_s, 0.0
                    await asyncio.sleep(muted_s)
            self._transport.close()
        except RefusedError as error:
            self._refuse(str(error))
        except Exception:
            # No request of a client ends the broker.
            _log.exception("connection=%d peer=%s client=%s failed", self.number, self.peer, self.client_id)
            self._transport.abort()

    def _report_written(self, *, is_written: bool) -> None:
        awaiting, self._awaiting_write = self._awaiting_write, []
        for callback in awaiting:
            callback(is_written)

    async def _next_frame(self) -> bytes | None:
        """Returns the next frame; ``None`` once the client has sent its last one."""
        while not self._frames:
            if self._is_half_closed:
                return None
            self._has_frames.clear()
            await self._has_frames.wait()
        frame = self._frames.popleft()
        if not self._is_half_closed and len(self._frames) <= _READ_AHEAD:
            self._transport.resume_reading()
        return frame

    def _refuse(self, reason: str) -> None:
        _log.warning("connection=%d peer=%s client=%s closed reason=%s", self.number, self.peer, self.client_id, reason)
        self._transport.close()


class AnswerlessConnection(KafkaConnection):
    """Replaces the connection for a request that is delivered a second time: its response is dropped.

    Args:
        number: unique in this process.
        original: the connection of the request.
    """

    def __init__(self, *, number: int, original: KafkaConnection) -> None:
        super().__init__(link=original.link, number=number, max_bytes=0, handle=None, on_end=lambda _: None)
        self.peer = original.peer
        self.software = original.software
        self.principal = original.principal
        self.is_authenticated = original.is_authenticated

    def close(self) -> None:
        """Changes nothing: no client is connected."""


def _size_problem(head: bytes, size: int) -> str:
    if head.startswith(_TLS_HELLO):
        return "a TLS client on a plaintext listener"
    if head in _HTTP:
        return "an HTTP client on Kafka's port"
    return f"a request of {size} bytes"
