"""Judges a step's condition on the controller's committed state and on the counters since the step began."""

from dataclasses import dataclass
from typing import assert_never

from chaos.roles import NodeNames, resolve
from chaos.scenario import Acked, BrokerIs, Condition, Count, NodeRef, NoLeader, PartitionIs
from emulator.client.control import Progress
from emulator.core.image import MetadataImage, PartitionState
from emulator.core.types import Acks, BrokerId, NodeId, TopicPartition


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What a barrier saw: whether it is reached, and the state in words."""

    reached: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class View:
    """What there is to see: committed state, all counts now and when the step began, and the names of nodes."""

    image: MetadataImage
    progress: Progress
    progress_at_start: Progress
    names: NodeNames


def look(condition: Condition, view: View) -> Sight:
    """Returns whether a condition holds, and what was seen."""
    match condition:
        case Acked():
            return _acked(condition, view)
        case PartitionIs():
            return _partitions(condition, view)
        case BrokerIs():
            return _broker(condition, view)
        case _:
            assert_never(condition)


def _records(progress: Progress, acks: Acks | None, partition: TopicPartition) -> int:
    return sum(
        count.records
        for count in progress.acked
        if count.topic_partition == partition and (acks is None or count.acks == acks)
    )


def _acked(condition: Acked, view: View) -> Sight:
    acked = {
        partition: _records(view.progress, condition.acks, partition)
        - _records(view.progress_at_start, condition.acks, partition)
        for partition in condition.partitions
    }
    level = "" if condition.acks is None else f" acks={'all' if condition.acks is Acks.ALL else int(condition.acks)}"
    match condition.per:
        case Count.TOTAL:
            total = sum(acked.values())
            return Sight(reached=total >= condition.count, text=f"{total} records acked{level}")
        case Count.PARTITION:
            text = ", ".join(f"{partition}: {records}" for partition, records in acked.items())
            return Sight(reached=min(acked.values()) >= condition.count, text=f"records acked{level}: {text}")
        case _:
            assert_never(condition.per)


def _partitions(condition: PartitionIs, view: View) -> Sight:
    sights = [_partition(partition, condition, view) for partition in condition.partitions]
    return Sight(reached=all(each.reached for each in sights), text="; ".join(each.text for each in sights))


def _partition(partition: TopicPartition, condition: PartitionIs, view: View) -> Sight:
    state = view.image.partitions.get(partition)
    if state is None:
        return Sight(reached=False, text=f"{partition} does not exist")
    reached = (
        _is_leader(condition.leader, state, view)
        and _are_members(condition.isr, state.isr, view)
        and _are_members(condition.elr, state.elr, view)
    )
    return Sight(reached=reached, text=f"{partition} {describe_partition(state)}")


def describe_partition(state: PartitionState) -> str:
    """Returns leader, epochs, ISR and ELR in words."""
    leader = "none" if state.leader is None else str(state.leader)
    return f"leader={leader} leader_epoch={state.leader_epoch} isr={list(state.isr)} elr={list(state.elr)}"


def _is_leader(wanted: NodeRef | NoLeader | None, state: PartitionState, view: View) -> bool:
    match wanted:
        case None:
            return True
        case NoLeader.NONE:
            return state.leader is None
        case _:
            return state.leader is not None and state.leader == resolve(wanted, view.image, view.names)


def _are_members(wanted: tuple[NodeRef, ...] | None, members: tuple[BrokerId, ...], view: View) -> bool:
    if wanted is None:
        return True
    return {resolve(each, view.image, view.names) for each in wanted} == {NodeId(member) for member in members}


def _broker(condition: BrokerIs, view: View) -> Sight:
    node = resolve(condition.node, view.image, view.names)
    if node is None:
        return Sight(reached=False, text=f"nobody is {condition.node}")
    registration = view.image.brokers.get(BrokerId(node))
    if registration is None:
        return Sight(reached=False, text=f"node {node} is not registered")
    state = "fenced" if registration.fenced else "unfenced"
    return Sight(reached=registration.fenced != condition.unfenced, text=f"node {node} is {state}")
