"""Requests that this broker has sent and that are unanswered, by correlation id; and which peers answer.

Senders keep no copy of a request: it is handed back with its response or failure, so that a response can be compared
with its request (a fetch response is used only for the offsets and epochs of its request).
"""

import msgspec

from laststand.emulator.core import effects, events, messages
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import CorrelationId, NodeId, RequestFailure


class SentRequest(msgspec.Struct, frozen=True):
    """A request that was sent, and its receiver."""

    destination: NodeId
    request: messages.Request


class InFlightRequests:
    """All requests in flight. Senders bound their number: one request of each kind per peer."""

    def __init__(self) -> None:
        self._sent: dict[CorrelationId, SentRequest] = {}
        self._next = 0
        self._unreachable: set[NodeId] = set()

    def send(self, turn: Turn, destination: NodeId, request: messages.Request, *, timeout_ms: int) -> None:
        """Sends a request that fails after ``timeout_ms`` without an answer."""
        correlation_id = CorrelationId(self._next)
        self._next += 1
        self._sent[correlation_id] = SentRequest(destination, request)
        turn.send(
            effects.SendRequest(
                destination=destination,
                correlation_id=correlation_id,
                request=request,
                timeout_ms=timeout_ms,
                cause_id=turn.cause_id,
            )
        )

    def answered(self, turn: Turn, correlation_id: CorrelationId) -> SentRequest:
        """Returns the request that was answered.

        Raises:
            InvariantError: no such request is under way.
        """
        sent = self._pop(correlation_id)
        if sent.destination in self._unreachable:
            self._unreachable.discard(sent.destination)
            turn.record(events.PeerReachable(cause_id=turn.cause_id, peer=sent.destination))
        return sent

    def failed(self, turn: Turn, correlation_id: CorrelationId, failure: RequestFailure) -> SentRequest:
        """Returns the request that will not be answered.

        Raises:
            InvariantError: no such request is under way.
        """
        sent = self._pop(correlation_id)
        if sent.destination not in self._unreachable:
            self._unreachable.add(sent.destination)
            turn.record(events.PeerUnreachable(cause_id=turn.cause_id, peer=sent.destination, failure=failure))
        return sent

    def _pop(self, correlation_id: CorrelationId) -> SentRequest:
        sent = self._sent.pop(correlation_id, None)
        if sent is None:
            raise InvariantError(f"no request {correlation_id} under way")
        return sent
