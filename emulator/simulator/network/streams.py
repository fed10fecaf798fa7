"""The metadata streams: each broker reads a controller's committed history from its own position on.

Each message contains everything from the reader's position up to the end when it was sent, so metadata is applied in
order whatever happens to messages: if one is held while a later one is delivered, the later one brings both batches,
and they are applied as one.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from laststand.emulator.core import effects, inputs, records
from laststand.emulator.core.requester import Requester
from laststand.emulator.core.types import CauseId, LeaderEpoch, MetadataOffset, NodeId, Way
from laststand.emulator.plan.channels import STREAM, Channel, Link
from laststand.emulator.simulator.network.network import KEEPALIVE_MS, LATENCY_MS, Network
from laststand.emulator.simulator.network.wire import Wire, requester_of
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import BrokerNode

_CAUSE = CauseId("stream")


class Streams(Protocol):
    """The metadata streams of brokers, as far as faults of nodes and links concern them."""

    def open(self, node: BrokerNode, effect: effects.OpenMetadataStream) -> None:
        """Opens a broker's stream."""
        ...

    def lose(self, node: BrokerNode, source: NodeId, *, notice_ms: int) -> None:
        """A broker's stream breaks, if ``source`` serves it."""
        ...

    def lose_all(self, source: NodeId) -> None:
        """A node serves no streams any more."""
        ...

    def forget(self, node: BrokerNode) -> None:
        """A broker's process ended."""
        ...


class StreamSource(Protocol):
    """A node that may serve metadata streams.

    Attributes:
        node_id: the node's id.
        log: the batches, of which readers get the first ``published``.
        published: number of batches that may be read.
    """

    node_id: NodeId
    log: list[records.MetadataBatch]
    published: int

    @property
    def served_epoch(self) -> LeaderEpoch | None:
        """The controller epoch in which the node serves streams at present; ``None`` if it serves none."""
        ...

    @property
    def committed_end_offset(self) -> MetadataOffset:
        """The end of the metadata that the node knows to be committed."""
        ...

    def may_read_metadata(self, requester: Requester) -> bool:
        """Returns whether a principal may open a stream, or continue to read from it."""
        ...


class _Subscription:
    """One stream of one process."""

    __slots__ = ("incarnation", "is_live", "node", "position", "source")

    def __init__(self, node: BrokerNode, source: StreamSource, position: int) -> None:
        self.node = node
        self.source = source
        self.incarnation = node.incarnation
        self.position = position
        self.is_live = True


class MetadataStreams:
    """All streams; a broker reads one at a time.

    Args:
        queue: virtual time.
        network: the network and its faults.
        wire: carries messages.
        sources: the controllers.
        step: hands an input to a broker.
    """

    def __init__(
        self,
        queue: EventQueue,
        network: Network,
        wire: Wire,
        sources: Mapping[NodeId, StreamSource],
        step: Callable[
            [BrokerNode, inputs.MetadataReceived | inputs.MetadataStreamOpened | inputs.MetadataStreamLost], None
        ],
    ) -> None:
        self._queue = queue
        self._network = network
        self._wire = wire
        self._sources = sources
        self._step = step
        self._subscriptions: dict[NodeId, _Subscription] = {}
        self._openings: dict[NodeId, int] = {}

    def open(self, node: BrokerNode, effect: effects.OpenMetadataStream) -> None:
        """Opens a broker's stream."""
        self.forget(node)
        opening = self._openings[node.node_id] = self._openings.get(node.node_id, 0) + 1
        incarnation, source = node.incarnation, self._sources[effect.destination]

        def arrive() -> None:
            if node.incarnation != incarnation or node.core is None or self._openings[node.node_id] != opening:
                return
            served = source.served_epoch
            if self._network.swallows_requests(Link(node.node_id, source.node_id)):
                self._report_lost(node, incarnation, KEEPALIVE_MS)
            elif served is None or served < effect.controller_epoch or not self._is_let_in(node, source):
                self._report_lost(node, incarnation, LATENCY_MS)
            else:
                self._accept(node, source, served, effect.from_offset)

        self._wire.travel(Channel(node.node_id, source.node_id, STREAM, Way.REQUEST), arrive)

    def _accept(self, node: BrokerNode, source: StreamSource, served: LeaderEpoch, from_offset: MetadataOffset) -> None:
        log = source.log
        position = next((index for index, batch in enumerate(log) if batch.base_offset >= from_offset), len(log))
        subscription = _Subscription(node, source, position)
        self._subscriptions[node.node_id] = subscription
        opened = inputs.MetadataStreamOpened(
            cause_id=_CAUSE, end_offset=source.committed_end_offset, controller_epoch=served
        )

        def deliver() -> None:
            if self._is_current(subscription):
                self._step(node, opened)

        self._wire.travel(_downstream(subscription), deliver)
        if position < source.published:
            self._send(subscription, _CAUSE)

    def publish(self, source: StreamSource, cause_id: CauseId) -> None:
        """Lets readers get one more batch of a controller's log, and sends it on every stream of that controller."""
        source.published += 1
        for node_id in sorted(self._subscriptions):
            if self._subscriptions[node_id].source is source:
                self._send(self._subscriptions[node_id], cause_id)

    def _send(self, subscription: _Subscription, cause_id: CauseId) -> None:
        end = subscription.source.published

        def deliver() -> None:
            if not self._is_current(subscription):
                return
            batches = tuple(subscription.source.log[subscription.position : end])
            if batches:
                subscription.position = end
                self._step(subscription.node, inputs.MetadataReceived(cause_id=cause_id, batches=batches))
                if not self._is_authorized(subscription.node, subscription.source):
                    self.lose(subscription.node, subscription.source.node_id, notice_ms=LATENCY_MS)

        self._wire.travel(_downstream(subscription), deliver)

    def _is_let_in(self, node: BrokerNode, source: StreamSource) -> bool:
        return node.node_id not in self._network.expired and self._is_authorized(node, source)

    def _is_authorized(self, node: BrokerNode, source: StreamSource) -> bool:
        """Returns whether a broker is authorized to read the next message; Kafka checks that at each fetch."""
        return source.may_read_metadata(requester_of(node.node_id))

    def _is_current(self, subscription: _Subscription) -> bool:
        node = subscription.node
        return subscription.is_live and node.core is not None and node.incarnation == subscription.incarnation

    def lose(self, node: BrokerNode, source: NodeId, *, notice_ms: int) -> None:
        """A broker's stream breaks, if ``source`` serves it; the broker notices after a while."""
        subscription = self._subscriptions.get(node.node_id)
        if subscription is not None and subscription.source.node_id == source:
            self.forget(node)
            self._report_lost(node, subscription.incarnation, notice_ms)

    def lose_all(self, source: NodeId) -> None:
        """A controller serves no streams any more."""
        for subscription in list(self._subscriptions.values()):
            self.lose(subscription.node, source, notice_ms=LATENCY_MS)

    def forget(self, node: BrokerNode) -> None:
        """A broker's process ended, or opens another stream."""
        subscription = self._subscriptions.pop(node.node_id, None)
        if subscription is not None:
            subscription.is_live = False

    def _report_lost(self, node: BrokerNode, incarnation: int, delay_ms: int) -> None:
        opening = self._openings[node.node_id]

        def lose() -> None:
            is_latest = self._openings[node.node_id] == opening
            if is_latest and node.incarnation == incarnation and node.core is not None:
                self._step(node, inputs.MetadataStreamLost(cause_id=_CAUSE))

        self._queue.after(delay_ms, lose)


def _downstream(subscription: _Subscription) -> Channel[NodeId]:
    return Channel(subscription.node.node_id, subscription.source.node_id, STREAM, Way.RESPONSE)
