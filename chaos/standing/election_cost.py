"""The cost of electing a replica: records of the other replicas that its log does not have.

Two logs are equal up to the offset where their leader epochs diverge: a record is identified by its offset and epoch.
Everything that another replica has from there on is truncated once the candidate leads.
"""

import msgspec

from laststand.chaos.standing.inspection import InspectedPartition, Replica
from laststand.emulator.core.batch import EpochEntry
from laststand.emulator.core.types import BrokerId, LeaderEpoch, Offset


class ReplicaLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The records that one replica would lose to a candidate.

    Attributes:
        broker_id: the replica.
        state: of its process; a replica that is down loses its records only when it comes back.
        first_offset: the offset where the logs diverge.
        records: offsets that the replica has from there on.
        committed: those of them below the replica's high watermark.
    """

    broker_id: BrokerId
    state: str
    first_offset: Offset
    records: int
    committed: int


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A live replica that could be elected, the state of its log, and the records that electing it would lose.

    Attributes:
        fenced: whether it is fenced; a fenced replica cannot be elected.
        records_lost: the largest number of records that one other replica has and this one lacks.
        committed_lost: those of them below a high watermark.
        losses: by replica; replicas without a loss are left out.
    """

    broker_id: BrokerId
    fenced: bool
    roles: tuple[str, ...]
    last_written_leader_epoch: LeaderEpoch | None
    log_end_offset: Offset | None
    high_watermark: Offset | None
    records_lost: int
    committed_lost: int
    losses: tuple[ReplicaLoss, ...]


def candidates(inspected: InspectedPartition) -> tuple[Candidate, ...]:
    """Returns every live replica that has a log, in the order of the assignment."""
    return tuple(
        _candidate(replica, inspected.replicas)
        for replica in inspected.replicas
        if replica.is_live and replica.log_end_offset is not None
    )


def _candidate(replica: Replica, replicas: tuple[Replica, ...]) -> Candidate:
    losses = [
        loss
        for other in replicas
        if other.broker_id != replica.broker_id and (loss := _loss(replica, other)) is not None
    ]
    return Candidate(
        broker_id=replica.broker_id,
        fenced=replica.fenced,
        roles=replica.roles,
        last_written_leader_epoch=replica.last_written_leader_epoch,
        log_end_offset=replica.log_end_offset,
        high_watermark=replica.high_watermark,
        records_lost=max((loss.records for loss in losses), default=0),
        committed_lost=max((loss.committed for loss in losses), default=0),
        losses=tuple(losses),
    )


def _loss(candidate: Replica, other: Replica) -> ReplicaLoss | None:
    if other.log_end_offset is None:
        return None
    first = common_end(candidate, other)
    if first >= other.log_end_offset:
        return None
    committed = min(other.high_watermark or Offset(0), other.log_end_offset)
    return ReplicaLoss(
        broker_id=other.broker_id,
        state=other.state,
        first_offset=first,
        records=other.log_end_offset - first,
        committed=max(0, committed - first),
    )


def common_end(left: Replica, right: Replica) -> Offset:
    """Returns where two logs diverge, exclusive; if they do not, the end of the shorter one."""
    start = max(left.log_start_offset or Offset(0), right.log_start_offset or Offset(0))
    end = min(left.log_end_offset or Offset(0), right.log_end_offset or Offset(0))
    starts = {entry.start_offset for entry in (*left.epochs, *right.epochs)}
    for offset in sorted({start, *(each for each in starts if start < each < end)}):
        if _epoch_at(left.epochs, offset) != _epoch_at(right.epochs, offset):
            return min(offset, end)
    return end


def _epoch_at(epochs: tuple[EpochEntry, ...], offset: Offset) -> LeaderEpoch | None:
    return next((entry.leader_epoch for entry in reversed(epochs) if entry.start_offset <= offset), None)
