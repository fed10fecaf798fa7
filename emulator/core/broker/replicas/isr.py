"""The ISR as its leader knows it: committed, or with a change under way (KIP-497).

States and edges::

    Committed --expand--> PendingExpand --answer--> Committed
    Committed --shrink--> PendingShrink --answer--> Committed
    Committed --recovered--> PendingRecovery --answer--> Committed

Only ``Committed`` may start a change. An answer that leaves the outcome open keeps the pending state until metadata
settles it. The *maximal* ISR is what the controller may have committed at this moment; it bounds the high watermark.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from laststand.emulator.core import messages
from laststand.emulator.core.broker.replicas.follower_state import FollowerState
from laststand.emulator.core.image import BrokerRegistration
from laststand.emulator.core.switches import MaximalIsr
from laststand.emulator.core.types import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    Offset,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)


class Committed(msgspec.Struct, frozen=True):
    """No change of the ISR is under way."""

    isr: tuple[BrokerId, ...]


class PendingExpand(msgspec.Struct, frozen=True):
    """``joining`` was proposed as a member."""

    committed: tuple[BrokerId, ...]
    joining: BrokerId


class PendingShrink(msgspec.Struct, frozen=True):
    """``leaving`` was proposed for removal."""

    committed: tuple[BrokerId, ...]
    leaving: frozenset[BrokerId]


class PendingRecovery(msgspec.Struct, frozen=True):
    """The same ISR of one was proposed, with leader recovery state RECOVERED (KIP-704)."""

    committed: tuple[BrokerId, ...]


PendingState: TypeAlias = PendingExpand | PendingShrink | PendingRecovery
IsrState: TypeAlias = Committed | PendingState


class IsrProposal(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An ISR change on its way to the controller. ``state`` is the pending state that it belongs to, by identity."""

    partition: TopicPartition
    topic_id: TopicId | None
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    members: tuple[messages.IsrMember, ...]
    state: PendingState


def committed_isr(state: IsrState) -> tuple[BrokerId, ...]:
    """Returns the last ISR known to be accepted by the controller."""
    return state.isr if isinstance(state, Committed) else state.committed


def proposed_isr(state: IsrState) -> tuple[BrokerId, ...]:
    """Returns the proposed ISR; the committed one if none is proposed."""
    match state:
        case Committed(isr) | PendingRecovery(isr):
            return isr
        case PendingExpand(committed, joining):
            return (*committed, joining)
        case PendingShrink(committed, leaving):
            return tuple(member for member in committed if member not in leaving)


def maximal_isr(state: IsrState, *, rule: MaximalIsr) -> tuple[BrokerId, ...]:
    """Returns the ISR that bounds the high watermark; see ``MaximalIsr`` for what each rule risks."""
    if isinstance(state, Committed):
        return state.isr
    match rule:
        case MaximalIsr.ON:
            return state.committed if isinstance(state, PendingShrink) else proposed_isr(state)
        case MaximalIsr.PROPOSED:
            return proposed_isr(state)
        case MaximalIsr.COMMITTED_ONLY:
            return committed_isr(state)


def is_isr_eligible(
    broker_id: BrokerId, *, fetch_broker_epoch: BrokerEpoch | None, registrations: Mapping[BrokerId, BrokerRegistration]
) -> bool:
    """Returns whether a replica may join: active, and its last fetch came from the registered incarnation.

    A fetch without a broker epoch counts for any registered incarnation.
    """
    registration = registrations.get(broker_id)
    if registration is None or not registration.is_active:
        return False
    return fetch_broker_epoch is None or fetch_broker_epoch == registration.broker_epoch


def can_expand(
    state: IsrState,
    follower: FollowerState,
    *,
    high_watermark: Offset,
    epoch_start_offset: Offset,
    registrations: Mapping[BrokerId, BrokerRegistration],
) -> bool:
    """Returns whether a follower that just fetched may be proposed as a member (Kafka's ``Partition.maybeExpandIsr``).

    The follower's log has to reach the start of the leader's epoch, because the high watermark may be lower
    (KAFKA-7128). There is no condition on the lag time.
    """
    if not isinstance(state, Committed) or follower.broker_id in state.isr or follower.log_end_offset is None:
        return False
    if follower.log_end_offset < high_watermark or follower.log_end_offset < epoch_start_offset:
        return False
    return is_isr_eligible(follower.broker_id, fetch_broker_epoch=follower.broker_epoch, registrations=registrations)


def out_of_sync_members(
    state: IsrState,
    followers: Mapping[BrokerId, FollowerState],
    *,
    leader: BrokerId,
    log_end_offset: Offset,
    now_ms: int,
    lag_time_max_ms: int,
) -> frozenset[BrokerId]:
    """Returns the committed members, other than the leader, that a shrink would drop now."""
    return frozenset(
        member
        for member in committed_isr(state)
        if member != leader
        and (
            member not in followers
            or not followers[member].is_caught_up(
                log_end_offset=log_end_offset, now_ms=now_ms, lag_time_max_ms=lag_time_max_ms
            )
        )
    )
