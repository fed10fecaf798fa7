"""Ask a gRPC listener for a sign of life, below gRPC: do bytes get there and back?

An HTTP/2 server answers a connection with a SETTINGS frame at once (RFC 9113, section 3.4). So the probe sends the
client's half of that preface and waits for any byte. It needs no stub and no channel, only the listener's transport,
which network faults affect. A listener whose process is paused is as silent as one behind a cut link.
"""

import asyncio
import contextlib
import enum
import ssl
from typing import Final, Self

from laststand.emulator.core.address import host_and_port

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))

_HEAD_LENGTH: Final = 9
_PING: Final = 6
_ACK: Final = 1
_UNKNOWN_TYPE: Final = 0xFA
_BALLAST_LENGTH: Final = 1024
_READ_BYTES: Final = 65_536


class ProbeOutcome(enum.Enum):
    """The result of a probe."""

    PASSES = "passes"
    """Bytes went there and came back."""
    SILENT = "silent"
    """A connection was made, and no byte came back in time."""
    CLOSED = "closed"
    """No connection, or it was closed before a byte came: nobody listens there, or behind the proxy."""


async def probe(
    address: str,
    *,
    timeout_s: float,
    probe_connection: "type[ProbeConnection] | None" = None,
    context: ssl.SSLContext | None = None,
) -> ProbeOutcome:
    """Dial ``host:port`` and wait up to ``timeout_s`` seconds for the first byte of an answer.

    Args:
        address: address of the listener.
        timeout_s: for the whole probe.
        probe_connection: the protocol; by default, HTTP/2.
        context: of TLS; ``None`` if the node does not use it.
    """
    try:
        async with asyncio.timeout(timeout_s), (probe_connection or ProbeConnection)(address, context) as connection:
            return ProbeOutcome.PASSES if await connection.reader.read(1) else ProbeOutcome.CLOSED
    except TimeoutError:
        return ProbeOutcome.SILENT
    except OSError:
        return ProbeOutcome.CLOSED


class ProbeConnection:
    """A connection to an HTTP/2 server, on which round trips can be measured; an asynchronous context manager.

    It is usable once entered: the client's preface has been sent.

    Raises:
        OSError: nothing listens there, or the connection was closed.

    Attributes:
        greeting: the bytes that are sent first, and that the server answers.
    """

    greeting: bytes = _PREFACE
    reader: asyncio.StreamReader

    def __init__(self, address: str, context: ssl.SSLContext | None = None) -> None:
        self._address = address
        self._context = context
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        """Dials."""
        self.reader, self._writer = await asyncio.open_connection(*host_and_port(self._address), ssl=self._context)
        self._writer.write(self.greeting)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes."""
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def round_trip(self, *, ballast_bytes: int = 0) -> float:
        """Return the seconds from sending a message to its answer.

        Args:
            ballast_bytes: bytes that are sent before the message, in a frame that every server ignores.

        Raises:
            OSError: the connection was closed.
        """
        assert self._writer is not None
        started = asyncio.get_running_loop().time()
        try:
            await self._exchange(self._writer, ballast_bytes)
        except asyncio.IncompleteReadError:
            raise ConnectionResetError("closed by the other end") from None
        return asyncio.get_running_loop().time() - started

    async def _exchange(self, writer: asyncio.StreamWriter, ballast_bytes: int) -> None:
        """Sends a PING after frames of a type that servers ignore (RFC 9113, section 5.5), and awaits its answer."""
        for _ in range(-(-ballast_bytes // _BALLAST_LENGTH)):
            writer.write(_frame(_UNKNOWN_TYPE, bytes(_BALLAST_LENGTH)))
        writer.write(_frame(_PING, bytes(8)))
        is_answered = False
        while not is_answered:
            head = await self.reader.readexactly(_HEAD_LENGTH)
            await self.reader.readexactly(int.from_bytes(head[:3], "big"))
            is_answered = head[3] == _PING and bool(head[4] & _ACK)

    async def await_end(self, *, timeout_s: float) -> None:
        """Wait until the other end has closed or reset the connection.

        Raises:
            TimeoutError: the other end has done neither in time.
        """
        async with asyncio.timeout(timeout_s):
            with contextlib.suppress(OSError):
                while await self.reader.read(_READ_BYTES):
                    pass


def _frame(kind: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, 0, 0, 0, 0, 0)) + payload
