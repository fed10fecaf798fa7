"""Actions on the network: links are cut and healed, messages held, released, lost and duplicated."""

from collections import deque
from collections.abc import Collection, Mapping

from laststand.emulator.core.types import BrokerId, NodeId, Way
from laststand.emulator.plan.channels import STREAM, SYNC, Channel, Direction, Link
from laststand.emulator.simulator.network.network import KEEPALIVE_MS, LATENCY_MS, Interference, Latency, Network
from laststand.emulator.simulator.network.streams import Streams
from laststand.emulator.simulator.network.wire import Wire
from laststand.emulator.simulator.nodes.event_queue import EventQueue
from laststand.emulator.simulator.nodes.nodes import BrokerNode


class Links:
    """Changes the state of the network, with the effect on metadata streams and connections.

    Args:
        queue: virtual time.
        network: the state to change.
        wire: requests under way.
        streams: of metadata.
        nodes: all brokers.
        metadata_nodes: the nodes with metadata: the controllers.
    """

    def __init__(
        self,
        queue: EventQueue,
        network: Network,
        wire: Wire,
        streams: Streams,
        nodes: Mapping[BrokerId, BrokerNode],
        metadata_nodes: Collection[NodeId],
    ) -> None:
        self._queue = queue
        self._network = network
        self._wire = wire
        self._streams = streams
        self._nodes = nodes
        self._metadata_nodes = metadata_nodes

    # --- Connections ------------------------------------------------------------------------------------------------

    def cut(self, source: NodeId, target: NodeId) -> None:
        """Cuts the connections that ``source`` dials to ``target``."""
        self._network.cuts.add(Link(source, target))
        self._break_stream(source, target, notice_ms=KEEPALIVE_MS)

    def lose_responses(self, source: NodeId, target: NodeId) -> None:
        """Loses the answers to what ``source`` asks of ``target``."""
        self._network.losing.add(Link(source, target))
        self._break_stream(source, target, notice_ms=KEEPALIVE_MS)

    def half_open(self, source: NodeId, target: NodeId) -> None:
        """Loses the requests of ``source`` to ``target``; bytes in the other direction arrive."""
        self._network.deaf.add(Link(source, target))
        self._break_stream(source, target, notice_ms=KEEPALIVE_MS)

    def reset(self, source: NodeId, target: NodeId) -> int:
        """Resets the connections that ``source`` dials to ``target``; returns the number of requests that fail."""
        self._break_stream(source, target, notice_ms=LATENCY_MS)
        return self._wire.reset(source, target)

    def expire_certificate(self, node_id: NodeId) -> None:
        """Expires a node's client certificate: its new connections are refused, and those it has dialled are reset."""
        self._network.expired.add(node_id)
        for other in (*self._nodes, *self._metadata_nodes):
            self.reset(node_id, other)

    def renew_certificate(self, node_id: NodeId) -> None:
        """Gives a node a new client certificate: its connections are accepted again."""
        self._network.expired.discard(node_id)

    def _break_stream(self, source: NodeId, target: NodeId, *, notice_ms: int) -> None:
        if source in self._nodes:
            self._streams.lose(self._nodes[BrokerId(source)], target, notice_ms=notice_ms)

    def slow(self, link: Link[NodeId], latency_ms: int, *, jitter_ms: int, direction: Direction) -> None:
        """Sets the latency of a link's messages; it replaces an earlier one."""
        self._network.latencies[link] = Latency(link, latency_ms, jitter_ms=jitter_ms, direction=direction)

    def mend(self, source: NodeId, target: NodeId) -> None:
        """Heals one link; its held messages stay."""
        self._network.latencies.pop(Link(source, target), None)
        self._network.cuts.discard(Link(source, target))
        self._network.losing.discard(Link(source, target))
        self._network.deaf.discard(Link(source, target))

    def heal(self) -> None:
        """Heals all links, resets their latency, and delivers held messages."""
        self._network.interferences.clear()
        self._network.cuts.clear()
        self._network.losing.clear()
        self._network.deaf.clear()
        self._network.latencies.clear()
        for channel in list(self._network.held):
            self.release(channel)

    # --- Single messages --------------------------------------------------------------------------------------------

    def interfere(self, channel: Channel[NodeId], interference: Interference) -> None:
        """Loses, duplicates or delays a channel's messages from now on; held messages are released."""
        self.release(channel)
        self._network.interferences[channel] = interference

    # --- Held messages ----------------------------------------------------------------------------------------------

    def hold(self, channel: Channel[NodeId]) -> None:
        """Holds a channel's messages from now on; those under way arrive."""
        self._network.interferences.pop(channel, None)
        self._network.held.setdefault(channel, deque())

    def release(self, channel: Channel[NodeId], *, count: int | None = None) -> int:
        """Delivers the oldest ``count`` held messages of a channel; without a count all, and holds no longer.

        Returns the number of messages that are now on their way.
        """
        if count is None:
            self._network.interferences.pop(channel, None)
        held = self._network.held.get(channel)
        if held is None:
            return 0
        number = len(held) if count is None else min(count, len(held))
        for _ in range(number):
            self._queue.after(0, held.popleft())
        if count is None:
            del self._network.held[channel]
        return number

    def release_newest(self, channel: Channel[NodeId]) -> int:
        """Delivers the newest held message of a channel before the others; returns the number of messages delivered."""
        held = self._network.held.get(channel)
        if not held:
            return 0
        self._queue.after(0, held.pop())
        return 1

    def lose_held(self, channel: Channel[NodeId]) -> int:
        """Loses the oldest held message of a channel; returns the number of messages lost."""
        held = self._network.held.get(channel)
        if not held:
            return 0
        held.popleft()
        return 1

    def duplicate_held(self, channel: Channel[NodeId]) -> int:
        """Delivers the oldest held request of a channel and holds it on; returns the number delivered.

        Therefore the request is executed twice, the second time perhaps after its sender has moved on: the effect of a
        client that retries a request which the server had received. Responses, metadata streams and disk completions
        are never duplicated.
        """
        held = self._network.held.get(channel)
        if not held or channel.way is not Way.REQUEST or channel.api in (STREAM, SYNC):
            return 0
        self._queue.after(0, held[0])
        return 1
