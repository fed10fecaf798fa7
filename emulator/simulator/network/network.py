"""The network's state: cut links, held messages, latencies.

The metadata stream is one more API (``STREAM``), and so is the controller's disk, whose completions travel like
messages (``SYNC``). Messages of a held channel wait in order until they are released or lost, so *held* is delay, and
releasing one channel before another is reordering.
"""

from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from laststand.emulator.core.types import MessageFate, NodeId
from laststand.emulator.plan.channels import Channel, Direction, Link

LATENCY_MS: Final = 1
"""One way, unless a link was slowed."""

KEEPALIVE_MS: Final = 20
"""After which the dialling end notices that a link is cut."""


def silence_ms(session_timeout_ms: int) -> int:
    """Returns the time after which a sender gives up a silent peer.

    A quarter of the session passes before a ping is sent, and another before it counts as unanswered: the gRPC
    keepalive of real processes.
    """
    return session_timeout_ms // 2


Delivery: TypeAlias = Callable[[], None]


class Latency:
    """The latency of a slow link, one way. Messages of one channel stay in order, as on one connection.

    Args:
        latency_ms: on average.
        jitter_ms: upper bound of the random difference of each message's latency; a link's draws are always the same.
        direction: direction of the affected messages.
    """

    def __init__(self, link: Link[NodeId], latency_ms: int, *, jitter_ms: int, direction: Direction) -> None:
        self.direction = direction
        self._latency_ms = latency_ms
        self._jitter_ms = jitter_ms
        self._chance = Random(str(link))
        self._last_ms: dict[Channel[NodeId], int] = {}

    def arrival_ms(self, channel: Channel[NodeId], *, now_ms: int) -> int:
        """Returns when a message that leaves now arrives."""
        if not self._jitter_ms:
            return now_ms + self._latency_ms
        deviation_ms = self._chance.randint(-self._jitter_ms, self._jitter_ms)
        arrival_ms = now_ms + max(LATENCY_MS, self._latency_ms + deviation_ms)
        self._last_ms[channel] = max(arrival_ms, self._last_ms.get(channel, 0))
        return self._last_ms[channel]


class Interference:
    """A fault on messages of one kind, other than holding them.

    Args:
        fate: lost, duplicated or delayed.
        left: number of further messages that are affected; ``None`` for all until the interference ends.
        delay_ms: delay of each message.
    """

    __slots__ = ("delay_ms", "fate", "left")

    def __init__(self, *, fate: MessageFate, left: int | None = None, delay_ms: int = 0) -> None:
        self.fate = fate
        self.left = left
        self.delay_ms = delay_ms

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interference):
            return NotImplemented
        return (self.fate, self.left, self.delay_ms) == (other.fate, other.left, other.delay_ms)

    __hash__ = None  # type: ignore[assignment]  # ``left`` counts down


def _unrecorded(channel: Channel[NodeId], fate: MessageFate) -> None:
    """Ignores a touched message."""


class Network:
    """The faults of the network at this moment.

    Attributes:
        cuts: links that lose all bytes, in both directions.
        losing: links that lose bytes from the target.
        deaf: links that lose bytes to the target.
        expired: nodes whose client certificates have expired: connections that they dial are refused.
        held: messages that wait, by channel.
        latencies: of links that were slowed.
        interferences: other faults of single messages, by channel.
        intercepted: number of messages that faults have affected, by channel.
        on_intercept: called with each affected message and its fate.
    """

    def __init__(self) -> None:
        self.cuts: set[Link[NodeId]] = set()
        self.losing: set[Link[NodeId]] = set()
        self.deaf: set[Link[NodeId]] = set()
        self.expired: set[NodeId] = set()
        self.held: dict[Channel[NodeId], deque[Delivery]] = {}
        self.latencies: dict[Link[NodeId], Latency] = {}
        self.interferences: dict[Channel[NodeId], Interference] = {}
        self.intercepted: Counter[Channel[NodeId]] = Counter()
        self.on_intercept: Callable[[Channel[NodeId], MessageFate], None] = _unrecorded

    @property
    def is_whole(self) -> bool:
        """True if no link is broken, no message is held, and nothing interferes with messages."""
        return not (self.broken or self.held or self.interferences)

    @property
    def broken(self) -> set[Link[NodeId]]:
        """Links that have any fault."""
        return self.cuts | self.losing | self.deaf | self.latencies.keys()

    def is_blocked(self, link: Link[NodeId]) -> bool:
        """Returns whether a link does not carry all bytes."""
        return link in self.cuts or link in self.losing or link in self.deaf

    def swallows_requests(self, link: Link[NodeId]) -> bool:
        """Returns whether nothing arrives on a link."""
        return link in self.cuts or link in self.deaf

    def intercept(self, channel: Channel[NodeId], fate: MessageFate) -> None:
        """Counts a message that a fault touches, and records it."""
        self.intercepted[channel] += 1
        self.on_intercept(channel, fate)

    def interfere(self, channel: Channel[NodeId], interference: Interference) -> None:
        """Counts a message that an interference affects; an interference with a count may thereby end."""
        self.intercept(channel, interference.fate)
        if interference.left is not None:
            interference.left -= 1
            if not interference.left:
                del self.interferences[channel]

    def arrival_ms(self, channel: Channel[NodeId], *, now_ms: int) -> int:
        """Returns when a message that leaves now arrives."""
        latency = self.latencies.get(Link(channel.source, channel.target)) if self.latencies else None
        if latency is None or not latency.direction.includes(channel.way):
            return now_ms + LATENCY_MS
        return latency.arrival_ms(channel, now_ms=now_ms)
