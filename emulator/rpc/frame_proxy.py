"""A proxy for the connections that one node dials to another, which reads frames: an int32 size, and that many bytes.

The connection class of a protocol decides the fate of the frames.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from typing import Final, Protocol

from laststand.emulator.core.address import host_and_port
from laststand.emulator.rpc.limits import MESSAGE_BYTES_MAX

_LOOPBACK: Final = "127.0.0.1"
_SIZE_BYTES: Final = 4


class FrameConnection(Protocol):
    """A connection of a dialler, and the proxy's connection to the node for it."""

    async def run(self, dialler: asyncio.StreamReader, node: asyncio.StreamReader) -> None:
        """Forwards until the node ends its connection, or the dialler does and no request of the dialler is left."""
        ...


class FrameProxy(ABC):
    """Forwards connections; ``open`` starts to listen.

    Args:
        target_address: ``host:port`` of the node.
    """

    def __init__(self, target_address: str) -> None:
        self._target_address = target_address
        self._server: asyncio.Server
        self._connections: set[asyncio.Task[None]] = set()

    @abstractmethod
    def connection(self, dialler: asyncio.StreamWriter, node: asyncio.StreamWriter) -> FrameConnection:
        """Returns the forwarder of a new connection."""

    async def open(self, host: str = _LOOPBACK) -> str:
        """Listens on a free port of an interface; returns its ``host:port``."""
        self._server = await asyncio.start_server(self._forward, host, 0)
        return f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Closes the port and all connections."""
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        # Cancelled by `close`, perhaps while it closes already; asyncio would report that as an error of this callback.
        with contextlib.suppress(asyncio.CancelledError):
            await self._connect(reader, writer)
        self._connections.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            node_reader, node_writer = await asyncio.open_connection(*host_and_port(self._target_address))
            try:
                await self.connection(writer, node_writer).run(reader, node_reader)
            finally:
                await _close(node_writer)
        except OSError:
            pass  # nobody listens there: the dialler's connection ends
        finally:
            await _close(writer)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Reads a frame's content.

    Raises:
        IncompleteReadError: the connection ended.
        OSError: the connection broke, or the frame is longer than any message may be.
    """
    size = int.from_bytes(await reader.readexactly(_SIZE_BYTES), "big")
    if size > MESSAGE_BYTES_MAX:
        raise ConnectionAbortedError(f"a frame of {size} bytes")
    return await reader.readexactly(size)


def write_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    """Writes a frame, unless the connection is closed."""
    if not writer.is_closing():
        writer.write(len(frame).to_bytes(_SIZE_BYTES, "big") + frame)


async def drain(writer: asyncio.StreamWriter) -> None:
    """Waits for a slow reader; a closed connection is noticed by its own reader."""
    with contextlib.suppress(OSError):
        await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
