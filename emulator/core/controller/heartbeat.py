"""A broker's state as the controller sees it, and the next one on a heartbeat.

::

    FENCED <-------------> UNFENCED ------> CONTROLLED_SHUTDOWN
       |     want_fence       |                      |
       | want_shut_down       | want_shut_down,      | leads nothing, and every active
       v                      v leads nothing        v broker knows of the shutdown
       +--------------> SHUTDOWN_NOW <---------------+

Kafka's ``BrokerHeartbeatManager.calculateNextBrokerState``.
"""

from enum import Enum

import msgspec

from laststand.emulator.core.types import MetadataOffset


class BrokerControlState(Enum):
    """The state of a broker by its heartbeats: fenced or not, shutting down or not."""

    FENCED = "FENCED"
    UNFENCED = "UNFENCED"
    CONTROLLED_SHUTDOWN = "CONTROLLED_SHUTDOWN"
    SHUTDOWN_NOW = "SHUTDOWN_NOW"

    @property
    def is_fenced(self) -> bool:
        """The controller answers heartbeats of a broker in this state with ``is_fenced``."""
        return self in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)


class HeartbeatIntent(Enum):
    """The wish that a heartbeat carries."""

    SERVE = "serve"
    FENCE = "fence"
    SHUT_DOWN = "shut_down"
    FENCE_AND_SHUT_DOWN = "fence_and_shut_down"


class BrokerProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The broker's progress, which decides beside the heartbeat's intent.

    Attributes:
        applied_offset: last metadata record that the broker applied, inclusive.
        registration_offset: offset of its registration record.
        has_leaderships: whether it leads any partition.
        shutdown_offset: last record of the batch that started its controlled shutdown; ``None`` before.
        active_offsets: the same as ``applied_offset`` of every active broker, ``None`` where unknown; who does not
            shut down needs none.
    """

    applied_offset: MetadataOffset
    registration_offset: MetadataOffset
    has_leaderships: bool
    shutdown_offset: MetadataOffset | None
    active_offsets: tuple[MetadataOffset | None, ...]

    @property
    def is_caught_up(self) -> bool:
        """The broker has applied its own registration."""
        return self.applied_offset >= self.registration_offset

    @property
    def is_shutdown_known(self) -> bool:
        """Every active broker has applied the start of the shutdown; true where none is active."""
        if self.shutdown_offset is None:
            return False
        return all(offset is not None and self.shutdown_offset <= offset for offset in self.active_offsets)


def heartbeat_intent(*, want_fence: bool, want_shut_down: bool) -> HeartbeatIntent:
    """Returns the two flags of a heartbeat as one value."""
    if want_shut_down:
        return HeartbeatIntent.FENCE_AND_SHUT_DOWN if want_fence else HeartbeatIntent.SHUT_DOWN
    return HeartbeatIntent.FENCE if want_fence else HeartbeatIntent.SERVE


def next_state(current: BrokerControlState, asked: HeartbeatIntent, progress: BrokerProgress) -> BrokerControlState:
    """Returns the state that a heartbeat leads to; a shutdown that began is not taken back by a later heartbeat."""
    match current:
        case BrokerControlState.FENCED:
            if asked in (HeartbeatIntent.SHUT_DOWN, HeartbeatIntent.FENCE_AND_SHUT_DOWN):
                return BrokerControlState.SHUTDOWN_NOW
            is_ready = asked is HeartbeatIntent.SERVE and progress.is_caught_up
            return BrokerControlState.UNFENCED if is_ready else BrokerControlState.FENCED
        case BrokerControlState.UNFENCED:
            return _next_unfenced(asked, progress)
        case BrokerControlState.CONTROLLED_SHUTDOWN:
            is_done = not progress.has_leaderships and progress.is_shutdown_known
            return BrokerControlState.SHUTDOWN_NOW if is_done else BrokerControlState.CONTROLLED_SHUTDOWN
        case BrokerControlState.SHUTDOWN_NOW:
            return BrokerControlState.SHUTDOWN_NOW


def _next_unfenced(asked: HeartbeatIntent, progress: BrokerProgress) -> BrokerControlState:
    match asked:
        case HeartbeatIntent.FENCE_AND_SHUT_DOWN:
            return BrokerControlState.SHUTDOWN_NOW
        case HeartbeatIntent.FENCE:
            return BrokerControlState.FENCED
        case HeartbeatIntent.SHUT_DOWN:
            return (
                BrokerControlState.CONTROLLED_SHUTDOWN if progress.has_leaderships else BrokerControlState.SHUTDOWN_NOW
            )
        case HeartbeatIntent.SERVE:
            return BrokerControlState.UNFENCED
