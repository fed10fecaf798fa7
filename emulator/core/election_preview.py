"""What an unclean election would lose, before anybody decides: the live replicas of an offline partition side by side.

Each replica is known by its answer to GetReplicaLogInfo: the leader epoch of its last record, where its log ends, and
its high watermark. Two logs whose last records are of one epoch were written by one leader, so the shorter one is a
prefix of the longer one, and what electing it loses is exact. Otherwise the logs part somewhere: not below both high
watermarks, and not above the shorter one's end, which bounds the loss from both sides. Read only; the wish behind
KIP-1275.
"""

import msgspec

from emulator.core.errors import ErrorCode
from emulator.core.messages import ReplicaLogInfo
from emulator.core.types import BrokerId, LeaderEpoch, Offset


class LiveReplica(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica holds; the epoch is ``None`` for a log without records."""

    broker_id: BrokerId
    last_written_leader_epoch: LeaderEpoch | None
    log_end_offset: Offset
    high_watermark: Offset


class Bounds(msgspec.Struct, frozen=True):
    """A number of records, or an offset, that lies between two. Invariant: at_least <= at_most."""

    at_least: int
    at_most: int


class ElectionPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What electing a replica would lose against the other live ones.

    Attributes:
        replica: the candidate.
        lost: records of the replica against which it loses most.
        committed_lost: those of them below the highest high watermark that any live replica knows.
    """

    replica: LiveReplica
    lost: Bounds
    committed_lost: Bounds


def live_replica(broker_id: BrokerId, told: ReplicaLogInfo) -> LiveReplica | None:
    """Returns what a broker's answer says of its replica, or ``None`` where it has none or cannot tell."""
    if told.error is not ErrorCode.NONE or told.log_end_offset is None:
        return None
    return LiveReplica(
        broker_id=broker_id,
        last_written_leader_epoch=told.last_written_leader_epoch,
        log_end_offset=told.log_end_offset,
        high_watermark=Offset(0) if told.high_watermark is None else told.high_watermark,
    )


def preview_elections(replicas: tuple[LiveReplica, ...]) -> tuple[ElectionPreview, ...]:
    """Returns a preview for each replica; unclean recovery would choose the first (in the given order among equals)."""
    ranked = sorted(replicas, key=_rank, reverse=True)
    return tuple(_preview(candidate, [other for other in ranked if other is not candidate]) for candidate in ranked)


def _rank(replica: LiveReplica) -> tuple[int, int]:
    epoch = replica.last_written_leader_epoch
    return -1 if epoch is None else epoch, replica.log_end_offset


def _preview(candidate: LiveReplica, others: list[LiveReplica]) -> ElectionPreview:
    common = [_common_end(candidate, other) for other in others]
    losses = [
        Bounds(other.log_end_offset - end.at_most, other.log_end_offset - end.at_least)
        for other, end in zip(others, common, strict=True)
    ]
    committed = [
        Bounds(max(other.high_watermark - end.at_most, 0), max(other.high_watermark - end.at_least, 0))
        for other, end in zip(others, common, strict=True)
    ]
    return ElectionPreview(replica=candidate, lost=_worst(losses), committed_lost=_worst(committed))


def _common_end(one: LiveReplica, other: LiveReplica) -> Bounds:
    """Returns bounds of the offset up to which two logs are the same."""
    shorter_end = min(one.log_end_offset, other.log_end_offset)
    if one.last_written_leader_epoch == other.last_written_leader_epoch:
        return Bounds(shorter_end, shorter_end)
    return Bounds(min(one.high_watermark, other.high_watermark, shorter_end), shorter_end)


def _worst(losses: list[Bounds]) -> Bounds:
    return Bounds(max((loss.at_least for loss in losses), default=0), max((loss.at_most for loss in losses), default=0))
