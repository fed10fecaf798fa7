"""Decides which fetched batches a follower may append (Kafka's ``AbstractFetcherThread``).

Batches keep their offsets and epochs. A gap above the log end is accepted, because compaction
leaves gaps; therefore a follower cannot notice missing records.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.types import LeaderEpoch, Offset


class AppendPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The batches can be appended; an empty log is first restarted at ``restart_at``, if given."""

    restart_at: Offset | None = None


class AppendProblem(msgspec.Struct, frozen=True, kw_only=True):
    """The batches cannot be appended; ``base_offset`` is that of the first batch that does not fit."""

    base_offset: Offset


AppendDecision: TypeAlias = AppendPlan | AppendProblem

_FITS = AppendPlan()


def batches_to_append(
    batches: tuple[BatchDescriptor, ...], *, request_leader_epoch: LeaderEpoch
) -> tuple[BatchDescriptor, ...]:
    """Returns the batches before the first whose epoch is above the request's leader epoch (KAFKA-18723).

    The leader may have been elected for a later epoch between the read and the response.
    """
    for index, batch in enumerate(batches):
        if batch.leader_epoch > request_leader_epoch:
            return batches[:index]
    return batches


def plan_append(log: ReplicaLog, batches: tuple[BatchDescriptor, ...]) -> AppendDecision:
    """Checks that offsets rise and begin at or above the log's end.

    A batch below the log end is accepted only by an empty log, if the batch contains the log start offset: the log
    is then restarted at the batch's base offset.
    """
    first = batches[0]
    restart_at = None
    expected = log.log_end_offset
    if first.base_offset < expected:
        if not log.is_empty or first.next_offset <= log.log_start_offset:
            return AppendProblem(base_offset=first.base_offset)
        restart_at = expected = first.base_offset
    for batch in batches:
        if batch.base_offset < expected or batch.last_offset < batch.base_offset:
            return AppendProblem(base_offset=batch.base_offset)
        expected = batch.next_offset
    return _FITS if restart_at is None else AppendPlan(restart_at=restart_at)
