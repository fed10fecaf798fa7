"""Ask a gRPC listener for a sign of life, below gRPC: do bytes get there and back?

An HTTP/2 server answers a connection with a SETTINGS frame at once (RFC 9113, section 3.4). So the probe sends the
client's half of that preface and waits for any byte. It needs no stub, no channel, and nothing but the listener's
transport, which is what a network fault is about. A listener whose process is paused is as silent as one behind a cut.
"""

import asyncio
import contextlib
import enum

from emulator.cluster.ports import LOOPBACK

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


class ProbeOutcome(enum.Enum):
    """What a probe found."""

    PASSES = "passes"
    """Bytes went there and came back."""
    SILENT = "silent"
    """A connection was made, and no byte came back in time."""
    CLOSED = "closed"
    """No connection, or it was closed before a byte came: nobody listens there, or behind the proxy."""


async def probe(port: int, *, timeout_s: float) -> ProbeOutcome:
    """Dial a loopback port and wait up to ``timeout_s`` seconds for the first byte of an HTTP/2 server."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            writer.write(_PREFACE)
            return ProbeOutcome.PASSES if await reader.read(1) else ProbeOutcome.CLOSED
    except TimeoutError:
        return ProbeOutcome.SILENT
    except OSError:
        return ProbeOutcome.CLOSED
    finally:
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
