"""Messages between a process and ZooKeeper on the simulated network.

A session has one connection at a time. Its requests are numbered: the server executes them in order, and closes a
connection on which one is missing, as TCP does. Events of watches are numbered over the whole session, and sent until
the client acknowledges them, so that none is lost with a connection.
"""

from typing import NamedTuple

import msgspec

from laststand.emulator.core.zookeeper import operations
from laststand.emulator.core.zookeeper.identifiers import SessionId


class Connection(NamedTuple):
    """A connection of a session; the session's later ones have greater numbers."""

    session_id: SessionId
    number: int


class OpenSessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Opens a session and its first connection."""

    timeout_ms: int


class ConnectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Continues a session on a new connection; requests under way on older connections are no longer executed."""

    connection: Connection
    events_seen: int


class ExecuteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Executes steps."""

    connection: Connection
    number: int
    steps: operations.Steps
    events_seen: int


def operations_of(request: object) -> tuple[str, ...]:
    """Returns the operations of a request by their names in ``ZOOKEEPER_OPERATIONS``; empty for other requests."""
    if not isinstance(request, ExecuteRequest):
        return ()
    return tuple("Multi" if isinstance(step, operations.Transaction) else type(step).__name__ for step in request.steps)


class PollRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Keeps the session alive; answered when there are events, or when the next poll is due."""

    connection: Connection
    events_seen: int


class CloseSessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ends the session."""

    session_id: SessionId


SessionRequest = OpenSessionRequest | ConnectRequest | ExecuteRequest | PollRequest | CloseSessionRequest


class SessionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Answers a request of a session that is alive.

    Attributes:
        session_id: of the session.
        answers: to the steps; empty if there were none.
        first_event: number of the first of ``events``.
        events: watch events, delivered before ``answers``.
    """

    session_id: SessionId
    answers: operations.Answers = ()
    first_event: int = 0
    events: tuple[operations.WatchEvent, ...] = ()


class SessionGone(msgspec.Struct, frozen=True):
    """The session has expired, or never was."""


class ConnectionRefused(msgspec.Struct, frozen=True):
    """The connection no longer belongs to the session, or a request on it is missing; nothing was executed."""


SessionAnswer = SessionResponse | SessionGone | ConnectionRefused
