"""Decides which fetched batches a follower may append (Kafka's ``AbstractFetcherThread``).

Batches keep their offsets and epochs. A gap above the log's end is accepted, as compaction makes them; so a follower
cannot notice a hole.
"""

from typing import TypeAlias

import msgspec

from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.replica_log import ReplicaLog
from laststand.emulator.core.types import LeaderEpoch, Offset


class AppendPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The batches fit; ``restart_at`` says where an empty log starts again first."""

    restart_at: Offset | None = None


class AppendProblem(msgspec.Struct, frozen=True, kw_only=True):
    """The batches do not fit: the first one that does not starts at ``base_offset``."""

    base_offset: Offset


AppendDecision: TypeAlias = AppendPlan | AppendProblem

_FITS = AppendPlan()


def batches_to_append(
    batches: tuple[BatchDescriptor, ...], *, request_leader_epoch: LeaderEpoch
) -> tuple[BatchDescriptor, ...]:
    """Returns the batches up to the first of an epoch above the one that the request named (KAFKA-18723).

    The responder may have become leader of a later epoch between reading and sending.
    """
    for index, batch in enumerate(batches):
        if batch.leader_epoch > request_leader_epoch:
            return batches[:index]
    return batches


def plan_append(log: ReplicaLog, batches: tuple[BatchDescriptor, ...]) -> AppendDecision:
    """Checks that offsets rise and begin at or above the log's end.

    A batch below that is taken only by an empty log whose start it spans: the log then starts at the batch's base.
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
