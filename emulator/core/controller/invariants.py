"""Named predicates on committed metadata that must hold after every record; each raises with the values.

Names start with the id. Tests and the simulator call them after each step; a controller asserts of each record what
holds under every set of rules. The oracle computes the same properties from the event log, by other code.
"""

from collections.abc import Mapping

from laststand.emulator.core.errors import InvariantError
from laststand.emulator.core.image import BrokerRegistration, ImageDelta, PartitionState
from laststand.emulator.core.types import BrokerId, TopicPartition


def check_m1_members(partition: TopicPartition, state: PartitionState) -> None:
    """M1: the ISR is a subset of the replicas, no broker is in ISR or ELR twice; the leader, if any, is in the ISR.

    Whether the ELR is a subset of them, too, depends on the era: M17.

    Raises:
        InvariantError: the condition does not hold.
    """
    members = (*state.isr, *state.elr)
    if len(set(members)) < len(members) or not set(state.isr) <= set(state.replicas):
        raise InvariantError(f"M1: {partition} has ISR {state.isr}, ELR {state.elr}, replicas {state.replicas}")
    if state.leader is not None and state.leader not in state.isr:
        raise InvariantError(f"M1: leader {state.leader} of {partition} is not in ISR {state.isr}")


def check_m17_elr_replicas(partition: TopicPartition, state: PartitionState) -> None:
    """M17, where ``elr_within_replicas`` is on: the ELR is a subset of the replicas.

    Raises:
        InvariantError: the condition does not hold.
    """
    if not set(state.elr) <= set(state.replicas):
        raise InvariantError(f"M17: {partition} has ELR {state.elr}, replicas {state.replicas}")


def check_m2_active_leader(partition: TopicPartition, state: PartitionState, *, active: frozenset[BrokerId]) -> None:
    """M2, first half: the leader is neither fenced nor shutting down.

    Raises:
        InvariantError: the condition does not hold.
    """
    if state.leader is not None and state.leader not in active:
        raise InvariantError(f"M2: leader {state.leader} of {partition} is not among active {sorted(active)}")


def check_m2_active_isr(partition: TopicPartition, state: PartitionState, *, active: frozenset[BrokerId]) -> None:
    """M2, second half, where ELR is on: no member of the ISR is fenced or shutting down.

    Raises:
        InvariantError: the condition does not hold.
    """
    if not set(state.isr) <= active:
        raise InvariantError(f"M2: ISR {state.isr} of {partition}, active are {sorted(active)}")


def check_m3_elr_only_under_min_isr(
    partition: TopicPartition, state: PartitionState, *, effective_min_isr: int
) -> None:
    """M3: an ISR that is large enough leaves nothing in ELR and LastKnownELR.

    Raises:
        InvariantError: the condition does not hold.
    """
    if len(state.isr) >= effective_min_isr and (state.elr or state.last_known_elr):
        raise InvariantError(
            f"M3: {partition} has ISR {state.isr} (min {effective_min_isr}), ELR {state.elr}, "
            f"LastKnownELR {state.last_known_elr}"
        )


def check_m9_epochs(partition: TopicPartition, *, before: PartitionState, after: PartitionState) -> None:
    """M9, for two states one record apart: the partition epoch rises by one, the leader epoch with the leader.

    Raises:
        InvariantError: the condition does not hold.
    """
    is_new_leader = after.leader != before.leader
    leader_step = after.leader_epoch - before.leader_epoch
    if after.partition_epoch != before.partition_epoch + 1 or leader_step not in ((1,) if is_new_leader else (0, 1)):
        raise InvariantError(f"M9: {partition} went from {before} to {after}")


def check_m12_broker_epoch(*, before: BrokerRegistration | None, after: BrokerRegistration) -> None:
    """M12: a broker epoch is a metadata offset, and a new incarnation has a larger one; the same one keeps it.

    Raises:
        InvariantError: the condition does not hold.
    """
    if after.broker_epoch > after.registration_offset:
        raise InvariantError(f"M12: {after} has an epoch from beyond its record")
    if before is None:
        return
    is_same = after.incarnation_id == before.incarnation_id
    if after.broker_epoch != before.broker_epoch if is_same else after.broker_epoch <= before.broker_epoch:
        raise InvariantError(f"M12: {after} follows {before}")


def check_delta(
    delta: ImageDelta,
    *,
    brokers_before: Mapping[BrokerId, BrokerRegistration],
    brokers_after: Mapping[BrokerId, BrokerRegistration],
) -> None:
    """Checks the invariants of every record, under any rules; a controller asserts them as it replays its records.

    Args:
        delta: the changes of one record.
        brokers_before: registrations before the record.
        brokers_after: registrations after the record.

    Raises:
        InvariantError: M9 or M12 does not hold.
    """
    for partition, change in delta.partitions.items():
        before, after = change.before, change.after
        if before is not None and after is not None and before.topic_id == after.topic_id:
            check_m9_epochs(partition, before=before, after=after)
    for broker_id in delta.brokers:
        registration = brokers_after.get(broker_id)
        if registration is not None:
            check_m12_broker_epoch(before=brokers_before.get(broker_id), after=registration)


def check_partition(
    partition: TopicPartition, state: PartitionState, *, active: frozenset[BrokerId], effective_min_isr: int | None
) -> None:
    """Checks what must hold of one committed partition.

    Args:
        partition: its name.
        state: its committed state.
        active: brokers that are neither fenced nor shutting down.
        effective_min_isr: of the topic; ``None`` if ELR is off, and then no condition that depends on it is checked.

    Raises:
        InvariantError: M1, M2 or M3 does not hold.
    """
    check_m1_members(partition, state)
    check_m2_active_leader(partition, state, active=active)
    if effective_min_isr is not None:
        check_m2_active_isr(partition, state, active=active)
        check_m3_elr_only_under_min_isr(partition, state, effective_min_isr=effective_min_isr)
