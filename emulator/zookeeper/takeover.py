"""End another client's session, as a client can that knows its password: connect to it, and close it.

The password follows from the session's id (``SessionTrackerImpl``, ``ZooKeeperServer.generatePasswd``): Java's
``Random``, seeded with the id and a constant, makes its 16 bytes. The session's owner learns of the end at its next
contact with the server. The request to close has number 0, as the server's own have: in the transaction log the session
seems expired.
"""

import asyncio
import struct
from typing import Final

from laststand.emulator.core.address import host_and_port
from laststand.emulator.core.errors import EmulatorError
from laststand.emulator.core.zookeeper.identifiers import SessionId

_SECRET: Final = 0xB3415C00
_PASSWORD_BYTES: Final = 16
_TIMEOUT_MS: Final = 10_000
_ANSWER_WITHIN_S: Final = 10.0
_CLOSE_SESSION: Final = -11

_MULTIPLIER: Final = 0x5DEECE66D
_INCREMENT: Final = 0xB
_MASK: Final = (1 << 48) - 1


class TakeoverError(EmulatorError):
    """The server did not let a session be taken over."""


def session_password(session_id: SessionId) -> bytes:
    """Returns the password of a session."""
    seed = ((session_id ^ _SECRET) ^ _MULTIPLIER) & _MASK
    password = b""
    while len(password) < _PASSWORD_BYTES:
        seed = (seed * _MULTIPLIER + _INCREMENT) & _MASK
        password += (seed >> 16).to_bytes(4, "little")
    return password


async def end_session(address: str, session_id: SessionId) -> None:
    """Ends a session.

    Args:
        address: ``host:port`` of the server.
        session_id: of the session.

    Raises:
        TakeoverError: there is no such session any more, or the server does not answer.
    """
    was_alive = False
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            while await _is_alive_and_closed(address, session_id):
                was_alive = True
    except (OSError, TimeoutError) as error:
        raise TakeoverError(f"session {session_id:x}: ZooKeeper did not answer ({error})") from error
    if not was_alive:
        raise TakeoverError(f"session {session_id:x} is over already")


async def _is_alive_and_closed(address: str, session_id: SessionId) -> bool:
    """Asks for a session and for its end at once; returns whether it was alive when it was asked for.

    Its owner may reconnect between the two: then the server ends this connection, and the session continues.
    """
    reader, writer = await asyncio.open_connection(*host_and_port(address))
    try:
        writer.write(_frame(_connect_request(session_id)) + _frame(struct.pack(">ii", 0, _CLOSE_SESSION)))
        answer = await _read_frame(reader)
        (timeout_ms,) = struct.unpack_from(">i", answer, 4)
        if timeout_ms <= 0:
            return False
        await _read_frame(reader)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        pass
    finally:
        writer.close()
    return True


def _connect_request(session_id: SessionId) -> bytes:
    password = session_password(session_id)
    return struct.pack(">iqiqi16sx", 0, 0, _TIMEOUT_MS, session_id, len(password), password)


def _frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
