"""Applies a leader's answer to a follower: batches, high watermark, log start (Kafka's ``ReplicaFetcherThread``).

The fetcher decides whether a response is still current; here it is applied. The three are independent of each other, so
a follower may lag in each of them separately.
"""

from laststand.emulator.core import events
from laststand.emulator.core.batch import BatchDescriptor
from laststand.emulator.core.broker.replicas.follower_append import AppendProblem, batches_to_append, plan_append
from laststand.emulator.core.broker.replicas.high_watermark import follower_high_watermark
from laststand.emulator.core.broker.replicas.log_writer import append_batches, raise_log_start, restart_log
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.broker.replicas.turn import Turn
from laststand.emulator.core.types import LeaderEpoch, Offset


def append_as_follower(
    turn: Turn, partition: Partition, batches: tuple[BatchDescriptor, ...], *, request_leader_epoch: LeaderEpoch
) -> AppendProblem | None:
    """Appends fetched batches unchanged; if their offsets do not fit, appends none and returns the problem.

    Batches whose epoch is above the leader epoch of the fetch are left out.
    """
    fitting = batches_to_append(batches, request_leader_epoch=request_leader_epoch)
    if not fitting:
        return None
    log, leader_epoch = partition.log, partition.leader_epoch
    plan = plan_append(log, fitting)
    if isinstance(plan, AppendProblem):
        return plan
    if plan.restart_at is not None:
        restart_log(turn, log, plan.restart_at, leader=partition.leader, leader_epoch=leader_epoch)
    append_batches(turn, log, fitting, role=events.AppendRole.FOLLOWER, current_leader_epoch=leader_epoch)
    return None


def follow_high_watermark(turn: Turn, partition: Partition, leader_high_watermark: Offset) -> None:
    """Takes over the leader's high watermark, as far as this log reaches."""
    log = partition.log
    old = log.high_watermark
    new = follower_high_watermark(
        leader_high_watermark=leader_high_watermark,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
    )
    if new == old:
        return
    log.high_watermark = new
    turn.advanced[partition.name] = None  # consumers may read here (KIP-392)
    turn.record(
        events.FollowerHighWatermarkUpdated(
            cause_id=turn.cause_id,
            topic=partition.name.topic,
            partition=partition.name.partition,
            topic_id=log.topic_id,
            old=old,
            new=new,
            log_end_offset=log.log_end_offset,
            leader_epoch=partition.leader_epoch,
        )
    )


def follow_log_start(turn: Turn, partition: Partition, leader_log_start_offset: Offset) -> bool:
    """Raises the log start to the leader's; returns false if it is above the own high watermark, an error."""
    log = partition.log
    if leader_log_start_offset <= log.log_start_offset:
        return True
    if leader_log_start_offset > log.high_watermark:
        return False
    raise_log_start(turn, log, leader_log_start_offset)
    return True
