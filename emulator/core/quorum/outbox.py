"""Requests under way: at most one per node, and a pause after a failure (Kafka's ``RequestManager``)."""

from collections.abc import Iterable
from dataclasses import dataclass

from laststand.emulator.core.quorum.messages import QuorumRequest
from laststand.emulator.core.types import CorrelationId, NodeId


@dataclass(slots=True)
class _Connection:
    """The last request to a node: under way until ``until_ms``, or failed and to be repeated no sooner than that."""

    correlation_id: CorrelationId
    request: QuorumRequest
    until_ms: int
    has_failed: bool = False


class Outbox:
    """Connections by node.

    Args:
        request_timeout_ms: after which an unanswered request counts as failed.
        retry_backoff_ms: pause after a failed one.
    """

    def __init__(self, *, request_timeout_ms: int, retry_backoff_ms: int) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._connections: dict[NodeId, _Connection] = {}
        self._last_id = 0

    def is_ready(self, node_id: NodeId, *, now_ms: int) -> bool:
        """Returns whether a request may be sent to a node."""
        connection = self._connections.get(node_id)
        return connection is None or now_ms >= connection.until_ms

    def has_timed_out(self, node_id: NodeId, *, now_ms: int) -> bool:
        """Returns whether the request to a node was not answered in time."""
        connection = self._connections.get(node_id)
        return connection is not None and not connection.has_failed and now_ms >= connection.until_ms

    def is_backing_off(self, node_id: NodeId, *, now_ms: int) -> bool:
        """Returns whether a node is in the pause after a failed request."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.has_failed and now_ms < connection.until_ms

    def is_waiting(self, *, now_ms: int) -> bool:
        """Returns whether any request is under way; those that timed out are forgotten."""
        for node_id in [node_id for node_id, each in self._connections.items() if now_ms >= each.until_ms]:
            del self._connections[node_id]
        return any(not connection.has_failed for connection in self._connections.values())

    def ready_among(self, node_ids: Iterable[NodeId], *, now_ms: int) -> list[NodeId]:
        """Returns those nodes to which a request may be sent, in the order given."""
        return [node_id for node_id in node_ids if self.is_ready(node_id, now_ms=now_ms)]

    def open(self, node_id: NodeId, request: QuorumRequest, *, now_ms: int) -> CorrelationId:
        """Notes that a request is sent to a node that is ready; returns its id."""
        self._last_id += 1
        correlation_id = CorrelationId(self._last_id)
        self._connections[node_id] = _Connection(correlation_id, request, now_ms + self._request_timeout_ms)
        return correlation_id

    def awaited(self, correlation_id: CorrelationId) -> tuple[NodeId, QuorumRequest] | None:
        """Returns the node and the request that an answer belongs to; ``None`` if the request was forgotten."""
        for node_id, connection in self._connections.items():
            if connection.correlation_id == correlation_id and not connection.has_failed:
                return node_id, connection.request
        return None

    def close(self, correlation_id: CorrelationId) -> None:
        """A request was answered; the node is ready again."""
        if (awaited := self.awaited(correlation_id)) is not None:
            del self._connections[awaited[0]]

    def fail(self, correlation_id: CorrelationId, *, now_ms: int) -> None:
        """A request failed, or its answer was of no use."""
        if (awaited := self.awaited(correlation_id)) is not None:
            connection = self._connections[awaited[0]]
            connection.has_failed = True
            connection.until_ms = now_ms + self._retry_backoff_ms

    def forget(self, node_id: NodeId) -> None:
        """Forgets the request under way to a node."""
        self._connections.pop(node_id, None)

    def forget_all(self) -> None:
        """Forgets all requests: responses to requests of an earlier state are ignored."""
        self._connections.clear()

    def deadlines_ms(self) -> list[int]:
        """Returns when requests time out, and when pauses end."""
        return [connection.until_ms for connection in self._connections.values()]
