"""Elects the next leader by four strategies (Kafka's ``Election`` and ``PartitionLeaderElectionAlgorithms``).

::

    OFFLINE               first online replica in the ISR; else, if unclean is allowed, the first online one
    REASSIGN              first online target in the ISR
    PREFERRED             the head of the assignment, if it is online and in the ISR
    CONTROLLED_SHUTDOWN   first online or departing replica in the ISR that is not departing

"First" is in assignment order. Each election writes a state node with the next leader epoch; a clean one keeps the
recovery state. If nobody can lead, nothing is written.
"""

from enum import Enum
from typing import assert_never

import msgspec

from laststand.emulator.core.types import BrokerId
from laststand.emulator.core.zookeeper.nodes.partition_state import LeaderAndIsr
from laststand.emulator.core.zookeeper.nodes.topic import ReplicaAssignment


class ElectionStrategy(Enum):
    """Reason why a leader is looked for."""

    OFFLINE = "OFFLINE"
    """A partition has none; unclean where its topic allows it."""

    OFFLINE_UNCLEAN = "OFFLINE_UNCLEAN"
    """A partition has none, and an administrator asked for an unclean election."""

    REASSIGN = "REASSIGN"
    PREFERRED = "PREFERRED"
    CONTROLLED_SHUTDOWN = "CONTROLLED_SHUTDOWN"


class RecoveryMark(Enum):
    """The mark that an unclean election leaves in the state node (KIP-704)."""

    RECORDED = "recorded"
    NOT_RECORDED = "not_recorded"
    """Below IBP 3.2."""


class Electorate(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an election.

    Attributes:
        assignment: the partition's replicas.
        current: the state node as it was read for this election.
        online: replicas that can serve.
        shutting_down: replicas on registered brokers that are about to go; their directories work.
        is_unclean_allowed: whether a replica outside the ISR may lead.
        recovery_mark: whether the state node records such an election.
    """

    assignment: ReplicaAssignment
    current: LeaderAndIsr
    online: frozenset[BrokerId]
    shutting_down: frozenset[BrokerId] = frozenset()
    is_unclean_allowed: bool = False
    recovery_mark: RecoveryMark = RecoveryMark.RECORDED


class ElectionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The state to write, ``None`` if nobody can lead, and the brokers to inform."""

    elected: LeaderAndIsr | None
    recipients: tuple[BrokerId, ...]


def offline_leader(
    replicas: tuple[BrokerId, ...],
    isr: tuple[BrokerId, ...],
    online: frozenset[BrokerId],
    *,
    is_unclean_allowed: bool,
) -> BrokerId | None:
    """Returns the first online replica that is in the ISR; else, if unclean is allowed, the first online one."""
    candidates = tuple(replica for replica in replicas if replica in online)
    in_sync = next((replica for replica in candidates if replica in isr), None)
    if in_sync is not None or not is_unclean_allowed:
        return in_sync
    return next(iter(candidates), None)


def reassign_leader(
    targets: tuple[BrokerId, ...], isr: tuple[BrokerId, ...], online: frozenset[BrokerId]
) -> BrokerId | None:
    """Returns the first online target that is in the ISR."""
    return next((target for target in targets if target in online and target in isr), None)


def preferred_leader(
    replicas: tuple[BrokerId, ...], isr: tuple[BrokerId, ...], online: frozenset[BrokerId]
) -> BrokerId | None:
    """Returns the head of the assignment, if it is online and in the ISR."""
    return next((head for head in replicas[:1] if head in online and head in isr), None)


def controlled_shutdown_leader(
    replicas: tuple[BrokerId, ...],
    isr: tuple[BrokerId, ...],
    online_or_shutting_down: frozenset[BrokerId],
    shutting_down: frozenset[BrokerId],
) -> BrokerId | None:
    """Returns the first replica in the ISR that is registered and stays."""
    return next(
        (
            replica
            for replica in replicas
            if replica in online_or_shutting_down and replica in isr and replica not in shutting_down
        ),
        None,
    )


def elect_leader(strategy: ElectionStrategy, electorate: Electorate) -> ElectionOutcome:
    """Returns the next leader and ISR by a strategy, and the brokers that get LeaderAndIsr."""
    match strategy:
        case ElectionStrategy.OFFLINE | ElectionStrategy.OFFLINE_UNCLEAN:
            return _elect_offline(electorate)
        case ElectionStrategy.REASSIGN:
            return _elect_reassigned(electorate)
        case ElectionStrategy.PREFERRED:
            return _elect_preferred(electorate)
        case ElectionStrategy.CONTROLLED_SHUTDOWN:
            return _elect_for_shutdown(electorate)
        case _:
            assert_never(strategy)


def _elect_offline(electorate: Electorate) -> ElectionOutcome:
    replicas, current, online = electorate.assignment.replicas, electorate.current, electorate.online
    leader = offline_leader(replicas, current.isr, online, is_unclean_allowed=electorate.is_unclean_allowed)
    recipients = tuple(replica for replica in replicas if replica in online)
    if leader is None:
        return ElectionOutcome(elected=None, recipients=recipients)
    if leader in current.isr:
        isr = tuple(member for member in current.isr if member in online)
        return ElectionOutcome(elected=current.next_epoch(leader=leader, isr=isr), recipients=recipients)
    if electorate.recovery_mark is RecoveryMark.RECORDED:
        return ElectionOutcome(elected=current.recovering(leader=leader, isr=(leader,)), recipients=recipients)
    return ElectionOutcome(elected=current.next_epoch(leader=leader, isr=(leader,)), recipients=recipients)


def _elect_reassigned(electorate: Electorate) -> ElectionOutcome:
    targets, current = electorate.assignment.target_replicas, electorate.current
    leader = reassign_leader(targets, current.isr, electorate.online)
    elected = None if leader is None else current.next_epoch(leader=leader, isr=current.isr)
    return ElectionOutcome(elected=elected, recipients=targets)


def _elect_preferred(electorate: Electorate) -> ElectionOutcome:
    replicas, current = electorate.assignment.replicas, electorate.current
    leader = preferred_leader(replicas, current.isr, electorate.online)
    elected = None if leader is None else current.next_epoch(leader=leader, isr=current.isr)
    return ElectionOutcome(elected=elected, recipients=replicas)


def _elect_for_shutdown(electorate: Electorate) -> ElectionOutcome:
    replicas, current, leaving = electorate.assignment.replicas, electorate.current, electorate.shutting_down
    registered = electorate.online | leaving
    leader = controlled_shutdown_leader(replicas, current.isr, registered, leaving)
    recipients = tuple(replica for replica in replicas if replica in registered)
    if leader is None:
        return ElectionOutcome(elected=None, recipients=recipients)
    isr = tuple(member for member in current.isr if member not in leaving)
    return ElectionOutcome(elected=current.next_epoch(leader=leader, isr=isr), recipients=recipients)
