"""The network's state: what is cut, what is held back, how long messages take.

A message belongs to a *channel*: who dials whom, for which API, and whether it is on its way there (request) or back
(response). The metadata stream is one more API, and so is the controller's disk, whose completions travel like
messages. Messages of a held channel wait in order until they are released or lost, so *held* is delay, and releasing
one channel before another is reordering.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from emulator.core.types import NodeId

LATENCY_MS: Final = 1
"""One way, unless a link was slowed."""

KEEPALIVE_MS: Final = 20
"""After which the dialling end notices that a link is cut."""

STREAM: Final = "Stream"
"""The metadata stream's messages, as an API."""

SYNC: Final = "Sync"
"""Completions of the controller's disk, as an API of the controller with itself."""


class Way(Enum):
    """Direction of a message, as seen by who dialled."""

    REQUEST = "request"
    RESPONSE = "response"


class Channel(NamedTuple):
    """Messages of one kind between two nodes; prints as ``0->1 Fetch response``."""

    source: NodeId
    destination: NodeId
    api: str
    way: Way

    def __str__(self) -> str:
        return f"{self.source}->{self.destination} {self.api} {self.way.value}"


Link: TypeAlias = tuple[NodeId, NodeId]
"""Connections that the first dials to the second."""

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
        self.cuts: set[Link] = set()
        self.losing: set[Link] = set()
        self.held: dict[Channel, deque[Delivery]] = {}
        self.latencies_ms: dict[Link, int] = {}

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.cuts or self.losing or self.held or self.latencies_ms)

    def latency_ms(self, source: NodeId, destination: NodeId) -> int:
        """Returns how long a message takes from one node to another."""
        return self.latencies_ms.get((source, destination), LATENCY_MS) if self.latencies_ms else LATENCY_MS
