"""Judges a step's condition on the controller's committed state and on the counters since the step began."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from laststand.chaos.play.roles import NodeNames, missing, resolve
from laststand.chaos.scenario import conditions
from laststand.emulator.client.control import ClientCounts
from laststand.emulator.core.errors import ErrorCode
from laststand.emulator.core.image import MetadataImage, PartitionState
from laststand.emulator.core.types import Acks, BrokerId, LeaderRecoveryState, NodeId, Offset, TopicPartition
from laststand.emulator.plan.channels import Channel
from laststand.emulator.plan.nodes import NodeRef
from laststand.emulator.plan.nouns import counted


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The state of a barrier, reached or not, and a description."""

    reached: bool
    text: str


@dataclass(frozen=True, kw_only=True)
class View:
    """The state that barriers observe: committed state, counts now and when the step began, and the names of nodes.

    Attributes:
        log_end: end of a node's log of a partition, 0 without a log.
        log_names: names of the directories in a node's log directory, such as ``orders-0``.
        intercepted: number of messages of a kind that faults have affected.
        elapsed_ms: time since the step that is this number of steps before began.
    """

    image: MetadataImage
    counts: ClientCounts
    counts_at_start: ClientCounts
    names: NodeNames
    log_end: Callable[[NodeId, TopicPartition], Offset]
    log_names: Callable[[NodeId], frozenset[str]]
    intercepted: Callable[[Channel[NodeId]], int]
    elapsed_ms: Callable[[int], int]


def observe(condition: conditions.Condition, view: View) -> Observation:
    """Returns whether a condition holds, and the observed state."""
    match condition:
        case conditions.Acked():
            return _acked(condition, view)
        case conditions.PartitionIs():
            return _partitions(condition, view)
        case conditions.BrokerIs():
            return _broker(condition, view)
        case conditions.RegistrationIs():
            return _registration(condition, view)
        case conditions.LogIs():
            return _log(condition, view)
        case conditions.LogEnds(node=ref, partition=partition, end=end):
            node = resolve(ref, view.image, view.names)
            if node is None:
                return Observation(reached=False, text=missing(ref))
            log_end = view.log_end(node, partition)
            return Observation(reached=log_end == end, text=f"the log of {partition} on node {node} ends at {log_end}")
        case conditions.TopicIs(topic=topic, exists=exists):
            topic_id = view.image.topics.get(topic)
            text = f"topic {topic} does not exist" if topic_id is None else f"topic {topic} has id {topic_id}"
            return Observation(reached=(topic_id is not None) == exists, text=text)
        case conditions.FeatureIs(feature=feature, level=level):
            found = view.image.feature_level(feature)
            return Observation(reached=found == level, text=f"{feature} is at level {found}")
        case conditions.ClientSaw(error=error, count=count):
            seen = _errors(view.counts, error) - _errors(view.counts_at_start, error)
            return Observation(reached=seen >= count, text=f"{counted(seen, 'answer')} to clients: {error.name}")
        case conditions.Consumed(count=count, since=since):
            before = view.counts_at_start.consumed if since is conditions.Since.STEP else 0
            consumed = view.counts.consumed - before
            return Observation(reached=consumed >= count, text=f"{counted(consumed, 'record')} consumed")
        case conditions.Intercepted(channel=channel, count=count):
            return _intercepted(channel, count, view)
        case conditions.Elapsed(duration_ms=duration_ms, steps=steps):
            elapsed_ms = view.elapsed_ms(steps)
            return Observation(reached=elapsed_ms >= duration_ms, text=f"{elapsed_ms} ms have passed")
        case conditions.AnyOf(conditions=several):
            sights = [observe(each, view) for each in several]
            text = "; ".join(sight.text for sight in sights if sight.reached) or "; ".join(each.text for each in sights)
            return Observation(reached=any(sight.reached for sight in sights), text=text)
        case _:
            assert_never(condition)


def _intercepted(channel: Channel[NodeRef], count: int, view: View) -> Observation:
    source, target = (resolve(node, view.image, view.names) for node in (channel.source, channel.target))
    if source is None or target is None:
        return Observation(reached=False, text=missing(channel.source if source is None else channel.target))
    found = Channel(source, target, channel.api, channel.way)
    touched = view.intercepted(found)
    return Observation(reached=touched >= count, text=f"{counted(touched, 'message')} touched: {found}")


def _records(counts: ClientCounts, acks: Acks | None, partition: TopicPartition) -> int:
    return sum(
        count.records
        for count in counts.acked
        if (count.topic, count.partition) == partition and (acks is None or count.acks == acks)
    )


def _errors(counts: ClientCounts, error: ErrorCode) -> int:
    return sum(each.count for each in counts.errors if each.error == error.name)


def _acked(condition: conditions.Acked, view: View) -> Observation:
    acked = {partition: _records(view.counts, condition.acks, partition) for partition in condition.partitions}
    if condition.since is conditions.Since.STEP:
        for partition in acked:
            acked[partition] -= _records(view.counts_at_start, condition.acks, partition)
    level = "" if condition.acks is None else f" acks={'all' if condition.acks is Acks.ALL else int(condition.acks)}"
    match condition.per:
        case conditions.CountPer.TOTAL:
            total = sum(acked.values())
            return Observation(reached=total >= condition.count, text=f"{counted(total, 'record')} acked{level}")
        case conditions.CountPer.PARTITION:
            text = ", ".join(f"{partition}: {records}" for partition, records in acked.items())
            return Observation(
                reached=min(acked.values(), default=0) >= condition.count, text=f"records acked{level}: {text}"
            )
        case _:
            assert_never(condition.per)


def _partitions(condition: conditions.PartitionIs, view: View) -> Observation:
    sights = [_partition(partition, condition, view) for partition in condition.partitions]
    return Observation(reached=all(each.reached for each in sights), text="; ".join(each.text for each in sights))


def _partition(partition: TopicPartition, condition: conditions.PartitionIs, view: View) -> Observation:
    state = view.image.partitions.get(partition)
    if state is None:
        return Observation(reached=False, text=f"{partition} does not exist")
    reached = (
        _is_broker(condition.leader, state.leader, view)
        and _is_broker(condition.last_known_leader, state.last_known_leader, view)
        and condition.leader_recovery_state in (None, state.leader_recovery_state)
        and all(
            _are_members(wanted, members, view)
            for wanted, members in (
                (condition.isr, state.isr),
                (condition.elr, state.elr),
                (condition.last_known_elr, state.last_known_elr),
                (condition.replicas, state.replicas),
                (condition.adding_replicas, state.adding_replicas),
                (condition.removing_replicas, state.removing_replicas),
            )
        )
    )
    return Observation(reached=reached, text=f"{partition} {describe_partition(state)}")


def describe_partition(state: PartitionState) -> str:
    """Describes leader, epochs, ISR and ELR, and everything else that differs from a healthy partition."""
    words = [
        f"leader={'none' if state.leader is None else state.leader}",
        f"leader_epoch={state.leader_epoch}",
        f"isr={list(state.isr)}",
        f"elr={list(state.elr)}",
    ]
    if state.last_known_elr or state.last_known_leader is not None:
        words.append(f"last_known_elr={list(state.last_known_elr)}")
        words.append(f"last_known_leader={'none' if state.last_known_leader is None else state.last_known_leader}")
    if state.adding_replicas or state.removing_replicas:
        words.append(f"replicas={list(state.replicas)}")
        words.append(f"adding={list(state.adding_replicas)} removing={list(state.removing_replicas)}")
    if state.leader_recovery_state is not LeaderRecoveryState.RECOVERED:
        words.append(state.leader_recovery_state.name)
    return " ".join(words)


def _is_broker(wanted: NodeRef | conditions.NoLeader | None, found: BrokerId | None, view: View) -> bool:
    match wanted:
        case None:
            return True
        case conditions.NoLeader.NONE:
            return found is None
        case _:
            return found is not None and found == resolve(wanted, view.image, view.names)


def _are_members(wanted: tuple[NodeRef, ...] | None, members: tuple[BrokerId, ...], view: View) -> bool:
    if wanted is None:
        return True
    return {resolve(each, view.image, view.names) for each in wanted} == {NodeId(member) for member in members}


def _broker(condition: conditions.BrokerIs, view: View) -> Observation:
    node = resolve(condition.node, view.image, view.names)
    if node is None:
        return Observation(reached=False, text=missing(condition.node))
    registration = view.image.brokers.get(BrokerId(node))
    if registration is None:
        return Observation(reached=False, text=f"node {node} is not registered")
    state = "fenced" if registration.fenced else "unfenced"
    return Observation(reached=registration.fenced != condition.unfenced, text=f"node {node} is {state}")


def _registration(condition: conditions.RegistrationIs, view: View) -> Observation:
    node = resolve(condition.node, view.image, view.names)
    is_registered = node is not None and BrokerId(node) in view.image.brokers
    state = "registered" if is_registered else "not registered"
    return Observation(reached=is_registered == condition.exists, text=f"node {condition.node} is {state}")


def _log(condition: conditions.LogIs, view: View) -> Observation:
    node = resolve(condition.node, view.image, view.names)
    if node is None:
        return Observation(reached=False, text=missing(condition.node))
    names = view.log_names(node)
    text = f"node {node} has {', '.join(sorted(names)) or 'no logs'}"
    return Observation(reached=(str(condition.partition) in names) == condition.exists, text=text)
