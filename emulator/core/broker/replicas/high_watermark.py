"""The high watermark rule, as pure functions (Kafka's ``Partition.maybeIncrementLeaderHW``).

A leader commits records that every member of the maximal ISR holds, and commits nothing while the *committed* ISR is
smaller than min ISR. Each of the two conditions is about its own set; to confuse the sets loses data.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec

from laststand.emulator.core.switches import Switches
from laststand.emulator.core.types import Offset


class HighWatermarkReason(Enum):
    """Reason why a leader's high watermark moved, or did not."""

    ADVANCED = "advanced"
    UNDER_MIN_ISR = "under_min_isr"
    """The committed ISR is too small: frozen for all data, whatever its acks (KIP-966)."""

    UNKNOWN_REPLICA = "unknown_replica"
    """A member has not fetched since this broker became leader."""

    RECOVERING = "recovering"
    """The leader has not recovered from its unclean election: its log may still be truncated (KIP-704)."""

    NOT_HIGHER = "not_higher"
    """The slowest member's log end offset is not above the high watermark."""


class HighWatermarkDecision(msgspec.Struct, frozen=True):
    """The high watermark after the rule was applied, and why."""

    high_watermark: Offset
    reason: HighWatermarkReason


def effective_min_isr(*, min_insync_replicas: int, replica_count: int, switches: Switches) -> int:
    """Returns min ISR, capped by the number of assigned replicas (KIP-966) unless switch ``min_isr_capped`` is off."""
    return min(min_insync_replicas, replica_count) if switches.min_isr_capped else min_insync_replicas


def advance_high_watermark(
    *,
    high_watermark: Offset,
    log_end_offset: Offset,
    waited_for: Sequence[Offset | None],
    committed_isr_size: int,
    required_isr_size: int,
) -> HighWatermarkDecision:
    """Returns a leader's next high watermark; it never goes back.

    Args:
        high_watermark: the current one.
        log_end_offset: the leader's.
        waited_for: log end offsets of the maximal ISR's other members and of joining replicas; ``None`` if unknown.
        committed_isr_size: members that the controller is known to have accepted, the leader included.
        required_isr_size: the effective min ISR; 0 where the switch ``hw_requires_min_isr`` is off (S14).
    """
    if committed_isr_size < required_isr_size:
        return HighWatermarkDecision(high_watermark, HighWatermarkReason.UNDER_MIN_ISR)
    candidate = log_end_offset
    for follower_end_offset in waited_for:
        if follower_end_offset is None:
            return HighWatermarkDecision(high_watermark, HighWatermarkReason.UNKNOWN_REPLICA)
        if follower_end_offset < candidate:
            candidate = follower_end_offset
    if candidate <= high_watermark:
        return HighWatermarkDecision(high_watermark, HighWatermarkReason.NOT_HIGHER)
    return HighWatermarkDecision(candidate, HighWatermarkReason.ADVANCED)


def follower_high_watermark(
    *, leader_high_watermark: Offset, log_start_offset: Offset, log_end_offset: Offset
) -> Offset:
    """Returns a follower's high watermark after a fetch; it may go back, as a new leader's may be lower."""
    return min(max(leader_high_watermark, log_start_offset), log_end_offset)
