"""A producer's or consumer's connection to the supervisor, for as long as it works."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laststand.chaos.standing import messages
from laststand.chaos.standing.link import NoClusterError, SupervisorLostError, not_connected
from laststand.chaos.standing.socket import short_path
from laststand.emulator.client.history import History
from laststand.emulator.client.shell import Links
from laststand.emulator.cluster.layout import token_file
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.requester import node_name
from laststand.emulator.core.types import CLIENT_ID
from laststand.emulator.rpc.channel import keepalive_for
from laststand.emulator.rpc.run_token import RunToken


class ClientSession:
    """A client's session with the supervisor: its name, files and token, until the supervisor ends it.

    Attributes:
        opened: its name, its history file and its addresses of nodes.
        token: of the cluster.
        ended: set when the supervisor asks it to finish, or is gone.
        is_lost: whether the supervisor is gone.
    """

    def __init__(self, opened: messages.ClientOpened, token: RunToken) -> None:
        self.opened = opened
        self.token = token
        self.ended = asyncio.Event()
        self.is_lost = False

    def history(self) -> History:
        """Returns the client's history, to be opened."""
        return History(Path(self.opened.history_path))

    def links(self, tasks: asyncio.TaskGroup) -> Links:
        """Returns the client's way to the nodes."""
        keepalive = keepalive_for(session_timeout_ms=self.opened.session_timeout_ms)
        return Links(addresses=self.opened.addresses, keepalive=keepalive, token=self.token, tasks=tasks)


@asynccontextmanager
async def client_session(directory: Path, verb: str) -> AsyncIterator[ClientSession]:
    """Opens a session. Leave the block with a complete history; if an error leaves it, the supervisor completes it.

    Raises:
        NoClusterError: no supervisor listens there, or it refused.
        SupervisorLostError: the supervisor ended meanwhile.
    """
    try:
        with short_path(directory) as path:
            reader, writer = await asyncio.open_unix_connection(path, limit=messages.LINE_LENGTH_MAX)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise not_connected(directory, error) from None
    try:
        writer.write(messages.encode_line(messages.OpenClient(verb=verb)))
        opened = await _read(reader)
        match opened:
            case messages.ClientOpened():
                pass
            case messages.Refused(reason=reason):
                raise NoClusterError(reason)
            case None:
                raise SupervisorLostError(directory)
            case other:
                raise InvariantError(f"the supervisor answered {other!r}")
        session = ClientSession(opened, RunToken.read(token_file(directory), name=node_name(CLIENT_ID)))
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(_listen(reader, session))
            yield session
            listening.cancel()
        if session.is_lost:
            raise SupervisorLostError(directory)
        writer.write(messages.encode_line(messages.CloseClient()))
        await writer.drain()
    finally:
        writer.close()


async def _listen(reader: asyncio.StreamReader, session: ClientSession) -> None:
    session.is_lost = await _read(reader) is None
    session.ended.set()


async def _read(reader: asyncio.StreamReader) -> messages.Answer | None:
    try:
        line = await reader.readline()
    except ConnectionError:
        return None
    return messages.decode_answer(line) if line else None
