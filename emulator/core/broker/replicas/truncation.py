"""Finds where a follower's log stops agreeing with its leader's (KIP-101, KIP-279, KIP-595).

The switch ``truncation`` is read in ``truncation_rule``, and nowhere else. Its values differ in a follower's
first step, in whether fetches carry the last fetched epoch, and in the use of an epoch's end offset:

===============  ============================  ====================  =================================
rule             start                         fetch names an epoch  answer to an epoch lookup
===============  ============================  ====================  =================================
leader_epoch     fetch; cut at HW if no epoch  yes                   own floor epoch, repeated
kip101           look up own latest epoch      no                    its end offset, once (S03)
high_watermark   cut at HW, then fetch         no                    none is asked for (S01, S02)
===============  ============================  ====================  =================================
"""

from enum import Enum
from typing import Final

import msgspec

from laststand.emulator.core.batch import EpochEndOffset
from laststand.emulator.core.switches import Truncation
from laststand.emulator.core.types import LeaderEpoch, Offset


class FollowStart(Enum):
    """The first step of a new follower."""

    FETCH = "fetch"
    LOOK_UP_EPOCH = "look_up_epoch"
    CUT_AT_HIGH_WATERMARK = "cut_at_high_watermark"


class TruncationRule(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table above.

    Attributes:
        start: first step of a follower whose epoch cache has entries.
        fetch_names_epoch: whether fetches carry ``last_fetched_epoch``, so that the leader can detect divergence.
    """

    start: FollowStart
    fetch_names_epoch: bool

    def first_step(self, latest_epoch: LeaderEpoch | None) -> FollowStart:
        """Returns the first step of a follower; a log without epochs has nothing to compare under any rule."""
        return FollowStart.CUT_AT_HIGH_WATERMARK if latest_epoch is None else self.start


_RULES: Final = {
    Truncation.LEADER_EPOCH: TruncationRule(start=FollowStart.FETCH, fetch_names_epoch=True),
    Truncation.KIP_101: TruncationRule(start=FollowStart.LOOK_UP_EPOCH, fetch_names_epoch=False),
    Truncation.HIGH_WATERMARK: TruncationRule(start=FollowStart.CUT_AT_HIGH_WATERMARK, fetch_names_epoch=False),
}


def truncation_rule(truncation: Truncation) -> TruncationRule:
    """Returns the rule that the switch selects."""
    return _RULES[truncation]


class TruncationTarget(msgspec.Struct, frozen=True):
    """The offset to truncate to, and whether the logs then agree; if not, the next fetch reveals more."""

    offset: Offset
    is_final: bool


def truncation_target(
    *,
    leader_epoch: LeaderEpoch | None,
    end_offset: Offset | None,
    own_floor: EpochEndOffset | None,
    log_end_offset: Offset,
    initial_offset: Offset,
) -> TruncationTarget:
    """Returns where a follower cuts its log, by the leader's answer (``getOffsetTruncationState``).

    Args:
        leader_epoch: largest epoch of the leader not above the one asked for; ``None`` if undefined, or if the
            protocol version does not say (KIP-101).
        end_offset: where that epoch ends on the leader; ``None`` if undefined.
        own_floor: the follower's largest epoch not above ``leader_epoch`` with its end; ``None`` if it has none.
        log_end_offset: the follower's.
        initial_offset: the follower's high watermark when it began to follow.
    """
    if end_offset is None:
        return TruncationTarget(initial_offset, is_final=True)
    if leader_epoch is None or own_floor is None:
        return TruncationTarget(min(end_offset, log_end_offset), is_final=True)
    if own_floor.leader_epoch != leader_epoch:
        return TruncationTarget(min(own_floor.end_offset, log_end_offset), is_final=False)
    return TruncationTarget(min(own_floor.end_offset, end_offset, log_end_offset), is_final=True)
