"""A process's end of its ZooKeeper session: the work of a ZooKeeper client library, as a state machine.

States and edges::

    CLOSED --open--> CONNECTING --answered--> CONNECTED --a request fails, or nothing is heard--> RECONNECTING
                                                  ^------------------ session goes on -----------------|
    any --session gone--> CLOSED (``SessionExpired``)

One poll is under way at all times while it is connected: it is the heartbeat, and it brings the events of watches.
Steps that are requested while it is not connected wait; steps that were under way are lost, with unknown outcome.
"""

from collections import deque
from enum import Enum, auto
from typing import Final, TypeAlias

from laststand.emulator.core.types import CauseId
from laststand.emulator.core.zookeeper import exchange
from laststand.emulator.core.zookeeper.identifiers import SessionId
from laststand.emulator.simulator.network import session_messages

CAUSE: Final = CauseId("zookeeper")
RETRY_MS: Final = 20
"""Between two tries to connect."""

Asked: TypeAlias = tuple[session_messages.SessionRequest, exchange.ZooKeeperRequest | None]
"""A request that was sent, and its sender."""


class _State(Enum):
    CLOSED = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    RECONNECTING = auto()


class SessionClient:
    """The client of one process.

    Args:
        timeout_ms: of each session.

    Attributes:
        outgoing: requests to send; the sender empties the list.
        heard: inputs for the process, in order; the caller that delivers them removes them.
        session_id: id of the present or the last session.
    """

    def __init__(self, *, timeout_ms: int) -> None:
        self.outgoing: list[Asked] = []
        self.heard: deque[exchange.ZooKeeperInput] = deque()
        self.session_id: SessionId | None = None
        self.request_timeout_ms = timeout_ms * 2 // 3
        self._timeout_ms = timeout_ms
        self._state = _State.CLOSED
        self._retry_at_ms: int | None = None
        self._connections = 0
        self._sent = 0
        self._events_seen = 0
        self._waiting: list[exchange.ZooKeeperRequest] = []

    def next_deadline_ms(self) -> int | None:
        """Returns when ``time_came`` is due."""
        return self._retry_at_ms

    # --- What the process wants -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Opens a session, the first or the next one."""
        self._state = _State.CONNECTING
        self._connections = self._sent = self._events_seen = 0
        self._send(session_messages.OpenSessionRequest(timeout_ms=self._timeout_ms))

    def close(self) -> None:
        """Ends the session, if there is one."""
        if self.session_id is not None and self._state is not _State.CLOSED:
            self._send(session_messages.CloseSessionRequest(session_id=self.session_id))
        self._state, self._retry_at_ms = _State.CLOSED, None

    def ask(self, request: exchange.ZooKeeperRequest) -> None:
        """Sends steps, now or once it is connected."""
        if self._state is not _State.CONNECTED:
            self._waiting.append(request)
            return
        frame = session_messages.ExecuteRequest(
            connection=self._connection, number=self._sent, steps=request.steps, events_seen=self._events_seen
        )
        self._sent += 1
        self._send(frame, request)

    # --- What the network brings ----------------------------------------------------------------------------------

    def answered(self, asked: Asked, answer: session_messages.SessionAnswer) -> None:
        """Processes the response to a request."""
        sent, request = asked
        if (
            self._state is _State.CLOSED
            or isinstance(sent, session_messages.CloseSessionRequest)
            or not self._is_current(sent)
        ):
            return
        match answer:
            case session_messages.SessionGone():
                self._state, self._retry_at_ms = _State.CLOSED, None
                self._waiting.clear()  # what the process asks for from now on belongs to its next session
                self.heard.append(exchange.SessionExpired(CAUSE))
            case session_messages.ConnectionRefused():
                self._lose_connection()
            case session_messages.SessionResponse():
                self._handle_response(sent, request, answer)

    def failed(self, asked: Asked, *, now_ms: int) -> None:
        """A request failed without a response."""
        sent, _ = asked
        if (
            self._state is _State.CLOSED
            or isinstance(sent, session_messages.CloseSessionRequest)
            or not self._is_current(sent)
        ):
            return
        if self._state is _State.CONNECTED:
            self._lose_connection()
        else:
            self._retry_at_ms = now_ms + RETRY_MS

    def time_came(self, *, now_ms: int) -> None:
        """Reconnects if the retry is due."""
        if self._retry_at_ms is None or now_ms < self._retry_at_ms:
            return
        self._retry_at_ms = None
        if self._state is _State.CONNECTING:
            self._send(session_messages.OpenSessionRequest(timeout_ms=self._timeout_ms))
        elif self._state is _State.RECONNECTING:
            self._connect()

    # --- Connections ----------------------------------------------------------------------------------------------

    @property
    def _connection(self) -> session_messages.Connection:
        assert self.session_id is not None, "a connection belongs to a session"
        return session_messages.Connection(self.session_id, self._connections)

    def _is_current(self, sent: session_messages.SessionRequest) -> bool:
        """Returns whether a request was sent on the current connection."""
        if isinstance(sent, session_messages.OpenSessionRequest):
            return self._state is _State.CONNECTING
        return not isinstance(sent, session_messages.CloseSessionRequest) and sent.connection == self._connection

    def _lose_connection(self) -> None:
        self._state = _State.RECONNECTING
        self.heard.append(exchange.ZooKeeperConnectionLost(CAUSE))
        self._connect()

    def _connect(self) -> None:
        self._connections += 1
        self._sent = 0
        self._send(session_messages.ConnectRequest(connection=self._connection, events_seen=self._events_seen))

    def _handle_response(
        self,
        sent: session_messages.SessionRequest,
        request: exchange.ZooKeeperRequest | None,
        answer: session_messages.SessionResponse,
    ) -> None:
        if isinstance(sent, session_messages.OpenSessionRequest):
            self.session_id = answer.session_id
            self.heard.append(exchange.SessionEstablished(cause_id=CAUSE, session_id=answer.session_id))
        for event in answer.events[max(0, self._events_seen - answer.first_event) :]:
            self._events_seen += 1
            self.heard.append(exchange.WatchFired(cause_id=CAUSE, event=event))
        match sent:
            case session_messages.OpenSessionRequest() | session_messages.ConnectRequest():
                self._go_on(is_new=isinstance(sent, session_messages.OpenSessionRequest))
            case session_messages.ExecuteRequest():
                assert request is not None, "steps are sent on somebody's behalf"
                self.heard.append(
                    exchange.ZooKeeperAnswered(
                        cause_id=CAUSE, correlation_id=request.correlation_id, answers=answer.answers
                    )
                )
            case _:
                self._poll()

    def _go_on(self, *, is_new: bool) -> None:
        self._state = _State.CONNECTED
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self.ask(request)
        if not is_new:
            self.heard.append(exchange.ZooKeeperReconnected(CAUSE))
        self._poll()

    def _poll(self) -> None:
        self._send(session_messages.PollRequest(connection=self._connection, events_seen=self._events_seen))

    def _send(self, sent: session_messages.SessionRequest, request: exchange.ZooKeeperRequest | None = None) -> None:
        self.outgoing.append((sent, request))
