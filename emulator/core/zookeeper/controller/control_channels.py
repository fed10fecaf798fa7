"""Control requests on their way: one queue per registered broker, one request at a time (``ControllerChannelManager``).

A request that was not answered is sent again every 100 ms until it is, or until the broker is registered no more; so it
may be executed twice, the copy after later requests over the new connection. A broker that comes back has a new queue.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

import msgspec

from laststand.emulator.core.types import BrokerEpoch, BrokerId, CorrelationId
from laststand.emulator.core.zookeeper import control_messages
from laststand.emulator.core.zookeeper.controller.context import RegisteredBroker
from laststand.emulator.core.zookeeper.controller.control_batch import AddressedRequest

RETRY_BACKOFF_MS: Final = 100


class SentControlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that leaves now."""

    correlation_id: CorrelationId
    broker_id: BrokerId
    request: control_messages.ControlMessage


class _Channel:
    """One broker's queue; its head is under way while ``awaited`` is set."""

    __slots__ = ("awaited", "broker_epoch", "queue", "retry_at_ms")

    def __init__(self, broker_epoch: BrokerEpoch) -> None:
        self.broker_epoch = broker_epoch
        self.queue: deque[control_messages.ControlMessage] = deque()
        self.awaited: CorrelationId | None = None
        self.retry_at_ms: int | None = None


class ControlChannels:
    """All queues of one controller. Their length is bounded by what is sent to a broker until its session expires."""

    def __init__(self, *, first_correlation_id: int = 0) -> None:
        self.next_correlation_id = CorrelationId(first_correlation_id)
        self._channels: dict[BrokerId, _Channel] = {}

    def retain(self, brokers: Mapping[BrokerId, RegisteredBroker]) -> None:
        """Opens and closes queues, so that there is one per registered incarnation."""
        for broker_id in list(self._channels):
            registered = brokers.get(broker_id)
            if registered is None or registered.broker_epoch != self._channels[broker_id].broker_epoch:
                del self._channels[broker_id]
        for broker_id, registered in brokers.items():
            if broker_id not in self._channels:
                self._channels[broker_id] = _Channel(registered.broker_epoch)

    def enqueue(self, addressed: AddressedRequest) -> None:
        """Queues a request; nothing is kept for a broker without a queue."""
        channel = self._channels.get(addressed.broker_id)
        if channel is not None:
            channel.queue.append(addressed.request)

    def queued(self, broker_id: BrokerId) -> tuple[control_messages.ControlMessage, ...]:
        """Returns the requests that a broker has not answered yet, in order."""
        channel = self._channels.get(broker_id)
        return () if channel is None else tuple(channel.queue)

    def next_deadline_ms(self) -> int | None:
        """Returns when something is to be sent again."""
        due = [channel.retry_at_ms for channel in self._channels.values() if channel.retry_at_ms is not None]
        return min(due, default=None)

    def pop_due(self, *, now_ms: int) -> list[SentControlRequest]:
        """Returns the requests that leave now: the head of each queue without a request under way."""
        sent = []
        for broker_id, channel in sorted(self._channels.items()):
            is_backing_off = channel.retry_at_ms is not None and channel.retry_at_ms > now_ms
            if channel.awaited is not None or not channel.queue or is_backing_off:
                continue
            channel.retry_at_ms = None
            channel.awaited = self.next_correlation_id
            self.next_correlation_id = CorrelationId(self.next_correlation_id + 1)
            sent.append(
                SentControlRequest(correlation_id=channel.awaited, broker_id=broker_id, request=channel.queue[0])
            )
        return sent

    def answered(self, correlation_id: CorrelationId) -> tuple[BrokerId, control_messages.ControlMessage] | None:
        """Returns the broker that answered and its request, and frees its queue; ``None`` if the queue is closed."""
        for broker_id, channel in self._channels.items():
            if channel.awaited == correlation_id:
                channel.awaited = None
                return broker_id, channel.queue.popleft()
        return None

    def failed(self, correlation_id: CorrelationId, *, now_ms: int) -> None:
        """Notes that no answer came: the same request is sent again after the backoff."""
        for channel in self._channels.values():
            if channel.awaited == correlation_id:
                channel.awaited = None
                channel.retry_at_ms = now_ms + RETRY_BACKOFF_MS
