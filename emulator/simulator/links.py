"""What can be done to the network: links are cut and mended, messages held, released, lost and duplicated."""

from collections import deque
from collections.abc import Mapping

from emulator.core.types import BrokerId, NodeId
from emulator.simulator.event_queue import EventQueue
from emulator.simulator.network import KEEPALIVE_MS, LATENCY_MS, STREAM, SYNC, Channel, Network, Way
from emulator.simulator.nodes import CONTROLLER, BrokerNode
from emulator.simulator.streams import MetadataStreams
from emulator.simulator.wire import Wire


class Links:
    """Changes the state of the network, and breaks what it breaks: metadata streams and connections.

    Args:
        queue: virtual time.
        network: the state to change.
        wire: requests under way.
        streams: of metadata.
        nodes: all brokers.
    """

    def __init__(
        self,
        queue: EventQueue,
        network: Network,
        wire: Wire,
        streams: MetadataStreams,
        nodes: Mapping[BrokerId, BrokerNode],
    ) -> None:
        self._queue = queue
        self._network = network
        self._wire = wire
        self._streams = streams
        self._nodes = nodes

    # --- Connections ------------------------------------------------------------------------------------------------

    def cut(self, source: NodeId, destination: NodeId) -> None:
        """Cuts the connections that ``source`` dials to ``destination``."""
        self._network.cuts.add((source, destination))
        self._break_stream(source, destination, notice_ms=KEEPALIVE_MS)

    def lose_responses(self, source: NodeId, destination: NodeId) -> None:
        """Loses the answers to what ``source`` asks of ``destination``."""
        self._network.losing.add((source, destination))
        self._break_stream(source, destination, notice_ms=KEEPALIVE_MS)

    def reset(self, source: NodeId, destination: NodeId) -> int:
        """Resets the connections that ``source`` dials to ``destination``; returns how many requests that ended."""
        self._break_stream(source, destination, notice_ms=LATENCY_MS)
        return self._wire.reset(source, destination)

    def _break_stream(self, source: NodeId, destination: NodeId, *, notice_ms: int) -> None:
        if destination == CONTROLLER and source in self._nodes:
            self._streams.lose(self._nodes[BrokerId(source)], notice_ms=notice_ms)

    def isolate(self, broker_id: BrokerId) -> None:
        """Cuts every link between a broker and other nodes; clients stay connected."""
        for other in (*self._nodes, CONTROLLER):
            if other != broker_id:
                self.cut(broker_id, other)
                self.cut(other, broker_id)

    def slow(self, source: NodeId, destination: NodeId, latency_ms: int) -> None:
        """Makes what one node dials to another, and the answers, take so long."""
        self._network.latencies_ms[source, destination] = latency_ms

    def mend(self, source: NodeId, destination: NodeId) -> None:
        """Mends one link; its latency and its held messages stay."""
        self._network.cuts.discard((source, destination))
        self._network.losing.discard((source, destination))

    def heal(self) -> None:
        """Mends all links, makes them as quick as before, and delivers what was held."""
        self._network.cuts.clear()
        self._network.losing.clear()
        self._network.latencies_ms.clear()
        for channel in list(self._network.held):
            self.release(channel)

    # --- Held messages ----------------------------------------------------------------------------------------------

    def hold(self, channel: Channel) -> None:
        """Holds a channel's messages from now on; those under way arrive."""
        self._network.held.setdefault(channel, deque())

    def release(self, channel: Channel, *, count: int | None = None) -> int:
        """Delivers the oldest ``count`` held messages of a channel; without a count all, and holds no longer.

        Returns how many are on their way now.
        """
        held = self._network.held.get(channel)
        if held is None:
            return 0
        number = len(held) if count is None else min(count, len(held))
        for _ in range(number):
            self._queue.after(0, held.popleft())
        if count is None:
            del self._network.held[channel]
        return number

    def release_newest(self, channel: Channel) -> int:
        """Delivers the newest held message of a channel before the others; returns how many are on their way."""
        held = self._network.held.get(channel)
        if not held:
            return 0
        self._queue.after(0, held.pop())
        return 1

    def lose_held(self, channel: Channel) -> int:
        """Loses the oldest held message of a channel; returns how many were lost."""
        held = self._network.held.get(channel)
        if not held:
            return 0
        held.popleft()
        return 1

    def duplicate_held(self, channel: Channel) -> int:
        """Delivers the oldest held request of a channel and keeps it; returns how many are on their way.

        So a request is executed twice, the second time when its sender may have gone on: the effect of a client that
        retries a request that the server had already received. Responses, metadata streams and disks repeat nothing.
        """
        held = self._network.held.get(channel)
        if not held or channel.way is not Way.REQUEST or channel.api in (STREAM, SYNC):
            return 0
        self._queue.after(0, held[0])
        return 1
