"""Finds acknowledged batches that are not where they must be, and how badly they are lost.

A batch acknowledged to its producer must be in the settled leader's final log at its offset, must have been in the log
of every leader elected after it, and must have been read by the consumer that reads everything at the end (in a cluster
that never settled: if it is below the high watermark at which that read ended). Records below a log start that was
raised on purpose, and those of deleted topics, are excused.
"""

from collections.abc import Set
from enum import Enum

from laststand.emulator.core import events


class CopyFate(Enum):
    """Outcome of a replica's copy of lost records."""

    KEPT = "kept"
    """The replica's final log has the records."""

    POWER_LOST = "power lost"
    """The replica lost them by a power loss before they were flushed."""

    TRUNCATED = "truncated"
    """The replica truncated them, following a leader without them."""

    LOG_DELETED = "log deleted"
    NOT_RECOVERED = "not recovered"
    """The replica's log ended before them when it was opened again."""

    UNEXPLAINED = "unexplained"
    """The final log lacks them or is missing, and no event explains it."""


class LossClass(Enum):
    """The state of a lost acknowledged record: gone everywhere, hidden, unread, or worse."""

    GONE_EVERYWHERE = "gone everywhere"
    """No final log holds the record."""

    ONLY_UNELECTABLE = "only on replicas that cannot be elected"
    """A final log has the record, but not that of a member of the ISR or the ELR."""

    NOT_ON_LEADER = "not on the leader, though on replicas that may be elected"
    """The logs of leader and candidates disagree."""

    GONE_FOR_A_TIME = "back at the end, though a leader was without it"
    """A leader since the acknowledgement lacked the record, so its readers missed it."""

    GONE_FOR_CONSUMERS = "no longer given to consumers"
    """The final consumer did not receive the record, and no log is recorded."""

    UNREAD = "acked but unread"
    """The leader has the record, but the final consumer did not receive it."""


def classify_settled(
    *, state: events.PartitionChanged, leader: int, holders: Set[int], was_lacking: bool, is_missed: bool
) -> LossClass | None:
    """Judges a batch of a partition whose last leader decides.

    Args:
        state: the controller's last word on the partition.
        leader: the leader whose final log decides.
        holders: nodes whose final logs have the batch.
        was_lacking: whether a leader without the batch was elected after it had been acknowledged.
        is_missed: whether the final consumer read the partition and did not get it.

    Returns:
        ``None`` if the batch is not lost.
    """
    if leader in holders:
        if was_lacking:
            return LossClass.GONE_FOR_A_TIME
        return LossClass.UNREAD if is_missed else None
    if not holders:
        return LossClass.GONE_EVERYWHERE
    if not holders & {*state.isr, *state.elr}:
        return LossClass.ONLY_UNELECTABLE
    return LossClass.NOT_ON_LEADER


def classify_unsettled(*, state: events.PartitionChanged, holders: Set[int], was_lacking: bool) -> LossClass | None:
    """Judges a batch of a partition that no leader serves at the end, if all its replicas' logs were read."""
    if not holders:
        return LossClass.GONE_EVERYWHERE
    candidates = {*state.isr, *state.elr}
    if not holders & candidates and state.last_known_leader not in holders:
        return LossClass.ONLY_UNELECTABLE
    return LossClass.GONE_FOR_A_TIME if was_lacking else None
