"""The network's state: what is cut, what is held back, how long messages take.

The metadata stream is one more API (``STREAM``), and so is the controller's disk, whose completions travel like
messages (``SYNC``). Messages of a held channel wait in order until they are released or lost, so *held* is delay, and
releasing one channel before another is reordering.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from emulator.core.types import NodeId
from emulator.plan.channels import Channel, Link

LATENCY_MS: Final = 1
"""One way, unless a link was slowed."""

KEEPALIVE_MS: Final = 20
"""After which the dialling end notices that a link is cut."""

Delivery: TypeAlias = Callable[[], None]


class Network:
    """Everything that is wrong with the network at this moment.

    Attributes:
        cuts: links whose bytes stop, both ways.
        losing: links whose returning bytes stop.
        held: messages that wait, by channel.
        latencies_ms: of links that were slowed, one way.
    """

    def __init__(self) -> None:
        self.cuts: set[Link[NodeId]] = set()
        self.losing: set[Link[NodeId]] = set()
        self.held: dict[Channel[NodeId], deque[Delivery]] = {}
        self.latencies_ms: dict[Link[NodeId], int] = {}

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.cuts or self.losing or self.held or self.latencies_ms)

    @property
    def broken(self) -> set[Link[NodeId]]:
        """Links that do not carry all bytes."""
        return self.cuts | self.losing

    def latency_ms(self, source: NodeId, target: NodeId) -> int:
        """Returns how long a message takes from one node to another."""
        return self.latencies_ms.get(Link(source, target), LATENCY_MS) if self.latencies_ms else LATENCY_MS
