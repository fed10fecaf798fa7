"""The one pipeline through which every partition mutation passes (Kafka's ``PartitionChangeBuilder``).

An event only chooses the inputs: targets, election mode, who may lead. The pipeline returns one record, or none where
nothing changes. Its steps are those of ``PartitionChangeBuilder.build``, in the order in which they run here:

1. A reassignment that the target ISR makes complete is completed (``completeReassignmentIfNeeded``); by KIP-966 not
   where step 3 elects a leader from outside that ISR.
2. The ELR is computed from the old and the new ISR (``maybePopulateTargetElr``).
3. A leader is elected; one from outside the ISR makes an ISR of itself (``tryElection``).
4. A replica that was removed bumps the leader epoch (``triggerLeaderEpochBumpForReplicaReassignmentIfNeeded``).
5. Without ELR an ISR is never emptied (``build`` itself, which does this after step 6).
6. An unclean election ends the ELR (``maybeUpdateRecordElr``); what stays remembered depends on the ISR of step 5.
7. In old metadata versions an ISR that shrinks bumps the leader epoch (``triggerLeaderEpochBumpForIsrShrinkIfNeeded``).
8. The leader that was lost is remembered, or forgotten when there is one again (``maybeUpdateLastKnownLeader``).
"""

import msgspec
from msgspec import UNSET, UnsetType

from laststand.emulator.core import events, metadata_version, records
from laststand.emulator.core.controller.election import Candidates, ElectionResult, elect_leader
from laststand.emulator.core.controller.min_isr import MinIsr
from laststand.emulator.core.controller.reassignment_lists import complete_reassignment
from laststand.emulator.core.image import PartitionState
from laststand.emulator.core.switches import ClearElr, LastKnown
from laststand.emulator.core.types import BrokerId, ElectionType, LeaderRecoveryState


class PartitionRules(msgspec.Struct, frozen=True, kw_only=True):
    """The features and switches on which a partition change depends.

    Attributes:
        metadata_level: finalized ``metadata.version``, as an index into ``metadata_version.LEVELS``.
        elr_enabled: whether eligible leader replicas are kept and the ISR may be empty.
        last_known: the replicas that a leaderless partition remembers.
        elr_within_replicas: whether only replicas are eligible and remembered, also after a reassignment.
        reassignment_needs_all: whether a reassignment completes with every target in the ISR only.
        reassignment_requires_min_isr: whether it completes with min ISR members in the ISR only.
        clear_elr: the effect of a new min ISR on the ELR; it also decides whether an ELR may be left over.
        downgrade_ignores_elr: whether an ELR that is left over is ignored once the feature is gone.
        is_last_known_leader_electable: whether the topic takes a leader unseen that may lack records.
        draw: picks the leader of an unclean election; 0 is the first of the assignment.
    """

    metadata_level: int
    elr_enabled: bool
    last_known: LastKnown
    elr_within_replicas: bool
    reassignment_needs_all: bool
    reassignment_requires_min_isr: bool
    clear_elr: ClearElr
    downgrade_ignores_elr: bool
    is_last_known_leader_electable: bool = True
    draw: int = 0


class PartitionTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The aim of a change; ``UNSET`` keeps the current value.

    Attributes:
        acceptable: brokers that may lead.
        election: how a leader may be chosen.
        unclean_replicas: replicas that just restarted without proof that they kept their log.
    """

    acceptable: frozenset[BrokerId]
    election: ElectionType = ElectionType.ONLINE
    isr: tuple[BrokerId, ...] | UnsetType = UNSET
    replicas: tuple[BrokerId, ...] | UnsetType = UNSET
    adding_replicas: tuple[BrokerId, ...] | UnsetType = UNSET
    removing_replicas: tuple[BrokerId, ...] | UnsetType = UNSET
    leader_recovery_state: LeaderRecoveryState | UnsetType = UNSET
    unclean_replicas: frozenset[BrokerId] = frozenset()


class PartitionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change worth a record.

    Attributes:
        record: the record to write.
        election: how its leader was chosen; ``NONE`` if the leader stays.
        effective_min_isr: min ISR of the partition with the replicas that it has after the change.
    """

    record: records.PartitionChangeRecord
    election: events.Election
    effective_min_isr: int


class _Lists(msgspec.Struct, frozen=True, kw_only=True):
    """The targets with every ``UNSET`` resolved; a reassignment that is complete is completed in them."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...]
    removing_replicas: tuple[BrokerId, ...]
    leader_recovery_state: LeaderRecoveryState


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The ELR, and the replicas that are remembered beside it."""

    elr: tuple[BrokerId, ...]
    last_known_elr: tuple[BrokerId, ...]
    last_known_leader: BrokerId | None


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions of steps 1 to 3."""

    lists: _Lists
    effective_min_isr: int
    memory: _Memory
    result: ElectionResult


def next_partition_change(
    state: PartitionState,
    target: PartitionTarget,
    *,
    partition: int,
    rules: PartitionRules,
    min_isr: MinIsr,
) -> PartitionChange | None:
    """Returns the record that takes a partition to its target, or ``None`` if nothing would change."""
    outcome = _decide(state, target, rules=rules, min_isr=min_isr, may_complete=True)
    result = outcome.result
    if result.leader not in (None, *outcome.lists.isr) and rules.reassignment_requires_min_isr:
        # KIP-966: "completed if the ISR size is larger or equal to min ISR". Who is elected from outside the ISR makes
        # an ISR of itself, without those that were added. Kafka completes by the ISR from before that.
        outcome = _decide(state, target, rules=rules, min_isr=min_isr, may_complete=False)
        result = outcome.result
    lists, memory, effective_min_isr = outcome.lists, outcome.memory, outcome.effective_min_isr
    is_elected = result.leader != state.leader
    isr, recovery_state = lists.isr, lists.leader_recovery_state
    if is_elected and result.is_unclean and result.leader is not None:
        isr = (result.leader,)
        if rules.metadata_level >= metadata_version.LEADER_RECOVERY:
            recovery_state = LeaderRecoveryState.RECOVERING
    elif is_elected and result.election is events.Election.ELR and result.leader is not None:
        isr = (result.leader,)
        memory = msgspec.structs.replace(memory, elr=tuple(b for b in memory.elr if b != result.leader))
        if rules.clear_elr is ClearElr.SATISFIED and len(isr) >= effective_min_isr:
            # Min ISR became one while the partition was offline. The leader commits alone from here on, so nobody
            # beside it may be a candidate. Kafka empties the ELR with every change of min ISR, and does not look again.
            memory = msgspec.structs.replace(memory, elr=(), last_known_elr=())

    is_bumped = is_elected or not set(state.replicas) <= set(lists.replicas)  # 4
    if not isr and not rules.elr_enabled:  # 5
        isr = state.isr  # the last member stays: somebody must be left to wait for
    if (is_elected and result.is_unclean) or not rules.elr_enabled:  # 6
        remembered = _still_remembered(memory, isr, rules=rules, effective_min_isr=effective_min_isr)
        memory = msgspec.structs.replace(memory, elr=(), last_known_elr=remembered)
    if rules.metadata_level < metadata_version.NO_BUMP_ON_SHRINK:  # 7
        is_bumped = is_bumped or not set(state.isr) <= set(isr)
    if is_bumped and rules.elr_enabled:  # 8
        memory = _remember_leader(state, memory, result.leader)
        if rules.elr_within_replicas:
            memory = _within_replicas(memory, lists.replicas)

    wanted = PartitionState(
        topic_id=state.topic_id,
        replicas=lists.replicas,
        isr=isr,
        leader=result.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        leader_recovery_state=recovery_state,
        elr=memory.elr,
        last_known_elr=memory.last_known_elr,
        last_known_leader=memory.last_known_leader,
        adding_replicas=lists.adding_replicas,
        removing_replicas=lists.removing_replicas,
    )
    record = _difference(state, wanted, partition=partition)
    if is_bumped:
        record = msgspec.structs.replace(record, leader=result.leader)
    if record == records.PartitionChangeRecord(topic_id=state.topic_id, partition=partition):
        return None
    return PartitionChange(
        record=record,
        election=result.election if is_elected else events.Election.NONE,
        effective_min_isr=effective_min_isr,
    )


def _decide(
    state: PartitionState, target: PartitionTarget, *, rules: PartitionRules, min_isr: MinIsr, may_complete: bool
) -> _Outcome:
    lists = _target_lists(state, target)
    lists = _completed(lists, rules=rules, min_isr=min_isr) if may_complete else lists  # 1
    effective_min_isr = min_isr.effective(lists.replicas)
    memory = _target_memory(state, lists, target, rules=rules, effective_min_isr=effective_min_isr)  # 2
    result = _elect(state, target, lists=lists, memory=memory, rules=rules)  # 3
    return _Outcome(lists=lists, effective_min_isr=effective_min_isr, memory=memory, result=result)


def _target_lists(state: PartitionState, target: PartitionTarget) -> _Lists:
    recovery_state = target.leader_recovery_state
    return _Lists(
        replicas=state.replicas if target.replicas is UNSET else target.replicas,
        isr=state.isr if target.isr is UNSET else target.isr,
        adding_replicas=state.adding_replicas if target.adding_replicas is UNSET else target.adding_replicas,
        removing_replicas=state.removing_replicas if target.removing_replicas is UNSET else target.removing_replicas,
        leader_recovery_state=state.leader_recovery_state if recovery_state is UNSET else recovery_state,
    )


def _completed(lists: _Lists, *, rules: PartitionRules, min_isr: MinIsr) -> _Lists:
    completed = complete_reassignment(
        replicas=lists.replicas,
        adding=lists.adding_replicas,
        removing=lists.removing_replicas,
        isr=lists.isr,
        needs_all=rules.reassignment_needs_all,
        min_isr=min_isr if rules.reassignment_requires_min_isr else None,
    )
    if completed is None:
        return lists
    return msgspec.structs.replace(
        lists, replicas=completed.replicas, isr=completed.isr, adding_replicas=(), removing_replicas=()
    )


def _target_memory(
    state: PartitionState,
    lists: _Lists,
    target: PartitionTarget,
    *,
    rules: PartitionRules,
    effective_min_isr: int,
) -> _Memory:
    memory = _Memory(elr=state.elr, last_known_elr=state.last_known_elr, last_known_leader=state.last_known_leader)
    if not rules.elr_enabled:
        # KIP-966: once the feature is downgraded, what is left over counts for nothing and goes with the next change.
        none = _Memory(elr=(), last_known_elr=(), last_known_leader=None)
        memory = none if rules.downgrade_ignores_elr else memory
    elif len(lists.isr) >= effective_min_isr:
        memory = msgspec.structs.replace(memory, elr=(), last_known_elr=())
    else:
        # KIP-966: those who leave now were in the ISR until the high watermark stopped, so they hold everything below
        # it. Whoever left earlier, while the ISR was still large enough, does not.
        outside = (set(state.elr) | set(state.isr)) - set(lists.isr)
        elr = tuple(sorted(outside - target.unclean_replicas))
        last_known_elr = state.last_known_elr
        if rules.last_known is LastKnown.KIP:
            remembered = set(state.last_known_elr) | (outside & target.unclean_replicas)
            last_known_elr = tuple(sorted(remembered - set(lists.isr) - set(elr)))
        memory = msgspec.structs.replace(memory, elr=elr, last_known_elr=last_known_elr)
    return _within_replicas(memory, lists.replicas) if rules.elr_within_replicas else memory


def _within_replicas(memory: _Memory, replicas: tuple[BrokerId, ...]) -> _Memory:
    # KIP-966: after a reassignment only final replicas are eligible; who is none has deleted its log, or will.
    return _Memory(
        elr=tuple(broker_id for broker_id in memory.elr if broker_id in replicas),
        last_known_elr=tuple(broker_id for broker_id in memory.last_known_elr if broker_id in replicas),
        last_known_leader=memory.last_known_leader if memory.last_known_leader in replicas else None,
    )


def _elect(
    state: PartitionState, target: PartitionTarget, *, lists: _Lists, memory: _Memory, rules: PartitionRules
) -> ElectionResult:
    is_last_known_leader_electable = rules.elr_enabled and rules.is_last_known_leader_electable
    candidates = Candidates(
        replicas=lists.replicas,
        isr=lists.isr,
        elr=memory.elr,
        leader=state.leader,
        acceptable=target.acceptable,
        last_known_leader=memory.last_known_leader if is_last_known_leader_electable else None,
        draw=rules.draw,
    )
    return elect_leader(candidates, mode=target.election, last_known=rules.last_known)


def _still_remembered(
    memory: _Memory, isr: tuple[BrokerId, ...], *, rules: PartitionRules, effective_min_isr: int
) -> tuple[BrokerId, ...]:
    # KIP-966: the last known ELR lasts until the ISR is large enough; an unclean election takes out the winner alone.
    if not rules.elr_enabled or rules.last_known is LastKnown.LEADER or len(isr) >= effective_min_isr:
        return ()
    return tuple(broker_id for broker_id in memory.last_known_elr if broker_id not in isr)


def _remember_leader(state: PartitionState, memory: _Memory, leader: BrokerId | None) -> _Memory:
    # While leaderless the memory is frozen, even if that broker restarts uncleanly. Kafka would note "no leader" when
    # a change restates the absence of one; that memory could never be used, so it is not kept here.
    if leader is None:
        remembered = state.leader if memory.last_known_leader is None else memory.last_known_leader
        return msgspec.structs.replace(memory, last_known_leader=remembered)
    # The KIP's other memory, which Kafka does not have, lasts until the ISR is large enough.
    return msgspec.structs.replace(memory, last_known_leader=None)


def _difference(state: PartitionState, wanted: PartitionState, *, partition: int) -> records.PartitionChangeRecord:
    return records.PartitionChangeRecord(
        topic_id=state.topic_id,
        partition=partition,
        isr=UNSET if wanted.isr == state.isr else wanted.isr,
        leader_recovery_state=(
            UNSET if wanted.leader_recovery_state == state.leader_recovery_state else wanted.leader_recovery_state
        ),
        replicas=UNSET if wanted.replicas == state.replicas else wanted.replicas,
        elr=UNSET if wanted.elr == state.elr else wanted.elr,
        last_known_elr=UNSET if wanted.last_known_elr == state.last_known_elr else wanted.last_known_elr,
        last_known_leader=UNSET if wanted.last_known_leader == state.last_known_leader else wanted.last_known_leader,
        adding_replicas=UNSET if wanted.adding_replicas == state.adding_replicas else wanted.adding_replicas,
        removing_replicas=UNSET if wanted.removing_replicas == state.removing_replicas else wanted.removing_replicas,
    )
