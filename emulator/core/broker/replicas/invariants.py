"""Named predicates on a hosted partition that must hold after every step; a violation raises with the values.

Function names start with the predicate's id. Tests and the simulator call the predicates after each step. The oracle
checks the same properties on the event log, with separate code.
"""

from itertools import pairwise
from typing import Final

import msgspec

from laststand.emulator.core.broker.replicas.isr import Committed
from laststand.emulator.core.broker.replicas.partition import Partition
from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.types import LeaderEpoch, Offset, PartitionEpoch

_NO_ISR: Final = Committed(())


class PartitionMark(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier state of a hosted partition, to compare a later one with."""

    is_leader: bool
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    high_watermark: Offset


def partition_mark(partition: Partition) -> PartitionMark:
    """Returns the state of a partition that ``check_progress`` compares with a later one."""
    return PartitionMark(
        is_leader=partition.is_leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        high_watermark=partition.log.high_watermark,
    )


def check_d8_epoch_cache(partition: Partition) -> None:
    """D8: cached epochs and their start offsets rise, up to the log end; a leader's own epoch is the last.

    Raises:
        InvariantError: the condition does not hold.
    """
    entries = partition.log.epochs.entries
    for before, after in pairwise(entries):
        if before.leader_epoch >= after.leader_epoch or before.start_offset >= after.start_offset:
            raise InvariantError(f"D8: epochs of {partition.name} do not rise: {entries}")
    if entries and entries[-1].start_offset > partition.log.log_end_offset:
        raise InvariantError(f"D8: {entries[-1]} of {partition.name} lies beyond {partition.log.log_end_offset}")
    if partition.is_leader and partition.log.epochs.latest_epoch != partition.leader_epoch:
        raise InvariantError(f"D8: {partition.name} is led in {partition.leader_epoch}, its cache says {entries}")


def check_d9_bounds(partition: Partition) -> None:
    """D9: log start <= high watermark <= log end.

    Raises:
        InvariantError: the condition does not hold.
    """
    log = partition.log
    if not log.log_start_offset <= log.high_watermark <= log.log_end_offset:
        bounds = (log.log_start_offset, log.high_watermark, log.log_end_offset)
        raise InvariantError(f"D9: {partition.name} has log start, high watermark, log end {bounds}")


def check_h5_isr_state(partition: Partition) -> None:
    """H5: a leader is in its ISR and tracks the other replicas; a follower has neither. M1: ISR members are replicas.

    A ZooKeeper controller first sends the new replicas, and afterwards removes the old ones from the ISR.

    Raises:
        InvariantError: the condition does not hold.
    """
    isr, replicas = partition.committed_isr, set(partition.replicas)
    if not partition.is_leader:
        if partition.isr_state != _NO_ISR or partition.followers:
            raise InvariantError(f"H5: {partition.name} is followed, yet has ISR state {partition.isr_state}")
        return
    if partition.leader not in isr or len(set(isr)) < len(isr):
        raise InvariantError(f"H5: {partition.name} has leader {partition.leader} and ISR {isr}")
    if set(partition.followers) != replicas - {partition.leader}:
        raise InvariantError(f"H5: {partition.name} knows followers {set(partition.followers)} of {replicas}")
    if not set(isr) <= replicas:
        raise InvariantError(f"M1: {partition.name} has ISR {isr} of replicas {replicas}")


def check_m7_recovering(partition: Partition) -> None:
    """M7: a recovering leader is the only member of each ISR that the controller may have committed (KIP-704).

    Raises:
        InvariantError: the condition does not hold.
    """
    if partition.is_leader and partition.is_recovering and partition.maximal_isr != (partition.leader,):
        raise InvariantError(f"M7: {partition.name} recovers with ISR {partition.maximal_isr}")


def check_hosted_partition(partition: Partition) -> None:
    """Checks everything that must hold of one partition on one broker.

    Raises:
        InvariantError: one of them does not hold.
    """
    check_d8_epoch_cache(partition)
    check_d9_bounds(partition)
    check_h5_isr_state(partition)
    check_m7_recovering(partition)


def check_progress(partition: Partition, before: PartitionMark) -> None:
    """H3, M9: epochs never go back in an incarnation, nor does the high watermark in a leadership.

    Only a recovering leader may truncate below the high watermark: it removes records that were corrupt on its disk
    and that it served to no client.

    Raises:
        InvariantError: one of them went back.
    """
    if partition.leader_epoch < before.leader_epoch or partition.partition_epoch < before.partition_epoch:
        epochs = (partition.leader_epoch, partition.partition_epoch)
        raise InvariantError(f"M9: {partition.name} is at {epochs} after {before}")
    is_settled = before.is_leader and partition.is_leader and not partition.is_recovering
    if is_settled and partition.log.high_watermark < before.high_watermark:
        raise InvariantError(f"H3: high watermark of {partition.name} is {partition.log.high_watermark}, {before}")
