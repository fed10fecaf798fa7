"""The metadata streams: each broker reads the controller's committed history from its own position on.

Each message contains everything from the reader's position up to the end when it was sent, so metadata is applied in
order whatever happens to messages: if one is held while a later one is delivered, the later one brings both batches,
and they are applied as one.
"""

from collections.abc import Callable
from typing import Protocol

from laststand.emulator.core import effects, inputs
from laststand.emulator.core.types import CauseId, MetadataOffset, NodeId, Way
from laststand.emulator.plan.channels import STREAM, Channel, Link
from laststand.emulator.plan.nodes import CONTROLLER
from laststand.emulator.simulator.network.network import KEEPALIVE_MS, LATENCY_MS, Network
from laststand.emulator.simulator.network.wire import Wire, requester_of
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import BrokerNode, ControllerNode

_CAUSE = CauseId("stream")


class Streams(Protocol):
    """The metadata streams of brokers, as far as faults of nodes and links concern them."""

    def open(self, node: BrokerNode, effect: effects.OpenMetadataStream) -> None:
        """Opens a broker's stream."""
        ...

    def lose(self, node: BrokerNode, *, notice_ms: int) -> None:
        """A broker's stream breaks."""
        ...

    def lose_all(self) -> None:
        """The process that serves them ended."""
        ...

    def forget(self, node: BrokerNode) -> None:
        """A broker's process ended."""
        ...


class _Subscription:
    """One stream of one process."""

    __slots__ = ("incarnation", "is_live", "node", "position")

    def __init__(self, node: BrokerNode, position: int) -> None:
        self.node = node
        self.incarnation = node.incarnation
        self.position = position
        self.is_live = True


class MetadataStreams:
    """All streams of the controller that runs.

    Args:
        queue: virtual time.
        network: what is wrong with it.
        wire: carries messages.
        controller: whose history is read.
        step: hands an input to a broker.
    """

    def __init__(
        self,
        queue: EventQueue,
        network: Network,
        wire: Wire,
        controller: ControllerNode,
        step: Callable[
            [BrokerNode, inputs.MetadataReceived | inputs.MetadataStreamOpened | inputs.MetadataStreamLost], None
        ],
    ) -> None:
        self._queue = queue
        self._network = network
        self._wire = wire
        self._controller = controller
        self._step = step
        self._subscriptions: dict[NodeId, _Subscription] = {}

    def open(self, node: BrokerNode, effect: effects.OpenMetadataStream) -> None:
        """Opens a broker's stream."""
        incarnation = node.incarnation

        def arrive() -> None:
            if node.incarnation != incarnation or node.core is None:
                return
            if self._network.swallows_requests(Link(node.node_id, CONTROLLER)):
                self._report_lost(node, incarnation, KEEPALIVE_MS)
            elif self._controller.core is None or not self._is_authorized(node):
                self._report_lost(node, incarnation, LATENCY_MS)
            else:
                self._accept(node, effect.from_offset)

        self._wire.travel(Channel(node.node_id, CONTROLLER, STREAM, Way.REQUEST), arrive)

    def _accept(self, node: BrokerNode, from_offset: MetadataOffset) -> None:
        log = self._controller.log
        position = next((index for index, batch in enumerate(log) if batch.base_offset >= from_offset), len(log))
        subscription = _Subscription(node, position)
        self._subscriptions[node.node_id] = subscription
        opened = inputs.MetadataStreamOpened(
            cause_id=_CAUSE, end_offset=self._controller.controller.committed_end_offset
        )

        def deliver() -> None:
            if self._is_current(subscription):
                self._step(node, opened)

        self._wire.travel(_downstream(node), deliver)
        if position < self._controller.published:
            self._send(subscription, _CAUSE)

    def publish(self, cause_id: CauseId) -> None:
        """Makes one more batch of the controller's log readable, and sends it on every stream."""
        self._controller.published += 1
        for node_id in sorted(self._subscriptions):
            self._send(self._subscriptions[node_id], cause_id)

    def _send(self, subscription: _Subscription, cause_id: CauseId) -> None:
        end = self._controller.published

        def deliver() -> None:
            if not self._is_current(subscription):
                return
            batches = tuple(self._controller.log[subscription.position : end])
            if batches:
                subscription.position = end
                self._step(subscription.node, inputs.MetadataReceived(cause_id=cause_id, batches=batches))
                if not self._is_authorized(subscription.node):
                    self.lose(subscription.node, notice_ms=LATENCY_MS)

        self._wire.travel(_downstream(subscription.node), deliver)

    def _is_authorized(self, node: BrokerNode) -> bool:
        """Returns whether a broker may read the next message, as Kafka's brokers are asked at each fetch."""
        return self._controller.controller.may_read_metadata(requester_of(node.node_id))

    def _is_current(self, subscription: _Subscription) -> bool:
        node = subscription.node
        return subscription.is_live and node.core is not None and node.incarnation == subscription.incarnation

    def lose(self, node: BrokerNode, *, notice_ms: int) -> None:
        """A broker's stream breaks; it notices after a while."""
        subscription = self._subscriptions.pop(node.node_id, None)
        if subscription is not None:
            subscription.is_live = False
            self._report_lost(node, subscription.incarnation, notice_ms)

    def lose_all(self) -> None:
        """The controller's process ended."""
        for subscription in list(self._subscriptions.values()):
            self.lose(subscription.node, notice_ms=LATENCY_MS)

    def forget(self, node: BrokerNode) -> None:
        """A broker's process ended."""
        subscription = self._subscriptions.pop(node.node_id, None)
        if subscription is not None:
            subscription.is_live = False

    def _report_lost(self, node: BrokerNode, incarnation: int, delay_ms: int) -> None:
        def lose() -> None:
            if node.incarnation == incarnation and node.core is not None:
                self._step(node, inputs.MetadataStreamLost(cause_id=_CAUSE))

        self._queue.after(delay_ms, lose)


def _downstream(node: BrokerNode) -> Channel[NodeId]:
    return Channel(node.node_id, CONTROLLER, STREAM, Way.RESPONSE)
