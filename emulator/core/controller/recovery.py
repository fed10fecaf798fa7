"""Unclean recovery as KIP-966 describes it: whether to recover a leaderless partition, and which replica to choose.

Kafka never shipped it, so the KIP's text is the only source. The strategy comes from ``unclean.recovery.strategy``, or
from the old boolean: true means Aggressive, false Balanced.
"""

from enum import Enum

import msgspec

from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.types import BrokerEpoch, BrokerId, LeaderEpoch, Offset, RecoveryStrategy


class RecoveryAction(Enum):
    """The next action for a leaderless partition."""

    ELECT = "elect"
    UNCLEAN_RECOVERY = "unclean_recovery"
    WAIT_ISR = "wait_isr"
    """Only where eligible leader replicas are off, or were when it went offline: the last ISR member is still in."""

    WAIT_ELR = "wait_elr"
    WAIT_LAST_KNOWN_ELR = "wait_last_known_elr"
    WAIT_USER = "wait_user"


class RecoveryDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The action; ``must_hear_from`` are replicas without whose answers a Balanced recovery does not choose."""

    action: RecoveryAction
    must_hear_from: tuple[BrokerId, ...] = ()


class ReplicaReport(msgspec.Struct, frozen=True, kw_only=True):
    """One replica's answer to GetReplicaLogInfo, and who gave it."""

    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    last_written_leader_epoch: LeaderEpoch | None
    current_leader_epoch: LeaderEpoch
    log_end_offset: Offset


class RecoveryChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The replica to elect (``None``: no usable answer), and those whose answers were stale."""

    leader: BrokerId | None
    discarded: tuple[BrokerId, ...]


def strategy_of_unclean_enable(value: str) -> RecoveryStrategy:
    """Returns the strategy that ``unclean.leader.election.enable`` stands for."""
    return RecoveryStrategy.AGGRESSIVE if value.lower() == "true" else RecoveryStrategy.BALANCED


def decide_recovery(
    state: PartitionState, *, active: frozenset[BrokerId], strategy: RecoveryStrategy
) -> RecoveryDecision:
    """Decides on a partition that has just lost its leader, or whose candidates changed."""
    # Where an ELR may have others (``elr_within_replicas``), who is no replica is not elected.
    if any(broker_id in active and broker_id in state.replicas for broker_id in state.isr or state.elr):
        return RecoveryDecision(action=RecoveryAction.ELECT)
    match strategy:
        case RecoveryStrategy.AGGRESSIVE:
            return RecoveryDecision(action=RecoveryAction.UNCLEAN_RECOVERY)
        case RecoveryStrategy.BALANCED | RecoveryStrategy.NONE if state.isr:
            return RecoveryDecision(action=RecoveryAction.WAIT_ISR)
        case RecoveryStrategy.BALANCED | RecoveryStrategy.NONE if state.elr:
            return RecoveryDecision(action=RecoveryAction.WAIT_ELR)
        case RecoveryStrategy.BALANCED:
            remembered = remembered_candidates(state)
            if set(remembered) <= active:
                return RecoveryDecision(action=RecoveryAction.UNCLEAN_RECOVERY, must_hear_from=remembered)
            return RecoveryDecision(action=RecoveryAction.WAIT_LAST_KNOWN_ELR)
        case RecoveryStrategy.NONE:
            return RecoveryDecision(action=RecoveryAction.WAIT_USER)


def remembered_candidates(state: PartitionState) -> tuple[BrokerId, ...]:
    """Returns the replicas that may hold records which no other has: the last known ELR, and the last known leader.

    Kafka as shipped remembers only the last known leader. A replica that was reassigned away since then has no records.
    """
    leader = () if state.last_known_leader is None else (state.last_known_leader,)
    return tuple(sorted((set(state.last_known_elr) | set(leader)) & set(state.replicas)))


def choose_leader(
    state: PartitionState, reports: tuple[ReplicaReport, ...], *, broker_epochs: dict[BrokerId, BrokerEpoch]
) -> RecoveryChoice:
    """Chooses the report with the highest last written leader epoch, then the longest log, then assignment order.

    A report is stale if its broker registered again since, or had not yet heard of the current leader epoch.
    """
    discarded = tuple(
        report.broker_id
        for report in reports
        if broker_epochs.get(report.broker_id) != report.broker_epoch
        or report.current_leader_epoch != state.leader_epoch
    )
    usable = [report for report in reports if report.broker_id not in discarded]
    best = max(usable, key=lambda report: _rank(state, report), default=None)
    return RecoveryChoice(leader=None if best is None else best.broker_id, discarded=discarded)


def _rank(state: PartitionState, report: ReplicaReport) -> tuple[int, int, int]:
    written, end = log_rank(report.last_written_leader_epoch, report.log_end_offset)
    return written, end, -state.replicas.index(report.broker_id)


def log_rank(last_written_leader_epoch: LeaderEpoch | None, log_end_offset: Offset) -> tuple[int, int]:
    """Returns the sort key of logs: the greatest is the longest log."""
    return -1 if last_written_leader_epoch is None else last_written_leader_epoch, log_end_offset
