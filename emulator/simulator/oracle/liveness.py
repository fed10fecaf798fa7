"""Checks that a healed cluster recovers within a bound: L1-L9.

Each property is checked repeatedly until it holds. If a property cannot hold for a reason that the protocol allows, the
reason is an *excuse*, which is counted and never silent. There is one excuse: a partition without any candidate (ISR
and ELR are empty, or it never had a leader), whose replicas are not being asked for their logs.
"""

from collections.abc import Iterator
from typing import Final

from laststand.emulator.core.broker.replicas.isr import Committed
from laststand.emulator.core.types import BrokerState, Offset, TopicPartition
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.disk.disk import StoredLog
from laststand.emulator.simulator.oracle.candidates import candidates
from laststand.emulator.simulator.oracle.tally import Tally

QUIET_MS: Final = 800
"""Virtual time for which nothing may change after that."""

PARKED_MS: Final = 5_000
"""Virtual time after which a request that a node took and did not answer counts as forgotten; all timeouts are shorter.
"""


def excused(cluster: SimulatedCluster) -> tuple[TopicPartition, ...]:
    """Returns the partitions that no replica may lead."""
    return tuple(
        name
        for name, state in sorted(cluster.image.partitions.items())
        if state.leader is None and not candidates(cluster, state) and not cluster.is_recovering(name)
    )


def missing(cluster: SimulatedCluster) -> Iterator[tuple[str, TopicPartition | None, str]]:
    """Yields the properties that a healed cluster has not reached yet: property, partition if any, and a sentence."""
    yield from _missing_on_brokers(cluster)
    without_candidate = excused(cluster)
    for name, state in sorted(cluster.image.partitions.items()):
        if name in without_candidate:
            continue
        if state.leader is None:
            yield "L3", name, f"{name} has no leader: {state}"
            continue
        if set(state.isr) != set(state.replicas):
            yield "L4", name, f"{name} has ISR {state.isr} of replicas {state.replicas}"
        leader = cluster.nodes[state.leader].broker
        led = None if leader is None else leader.partition(name)
        if led is None or not led.is_leader:
            yield "L3", name, f"broker {state.leader} does not lead {name}"
            continue
        if not isinstance(led.isr_state, Committed):
            yield "L4", name, f"{name} waits for an answer to {led.isr_state}"
        if state.adding_replicas or state.removing_replicas:
            yield "L8", name, f"{name} is being reassigned: {state}"
        yield from _missing_copies(cluster, name)
    for producer in cluster.clients.producers.values():
        if producer.producer.unfinished_records:
            yield "L5", None, f"{producer.name} has {producer.producer.unfinished_records} unanswered records"
    for request in cluster.wire.parked.values():
        if request.api not in cluster.apis_left_unanswered and cluster.now_ms - request.since_ms > PARKED_MS:
            yield "L5", None, f"node {request.node_id} has not answered a {request.api} since {request.since_ms} ms"
    yield from _missing_order(cluster)


def _missing_order(cluster: SimulatedCluster) -> Iterator[tuple[str, TopicPartition | None, str]]:
    """L7, first half: logs that lie where metadata does not assign them."""
    partitions = cluster.image.partitions
    for broker_id, node in cluster.nodes.items():
        for name, log in node.disk.logs.items():
            state = partitions.get(name)
            if state is None or state.topic_id != log.topic_id or broker_id not in state.replicas:
                yield "L7", name, f"broker {broker_id} keeps a log of {name} (topic {log.topic_id}), which is {state}"


def _missing_on_brokers(cluster: SimulatedCluster) -> Iterator[tuple[str, TopicPartition | None, str]]:
    image = cluster.image
    for broker_id, node in cluster.nodes.items():
        if node.broker is None:
            yield "L2", None, f"broker {broker_id} does not run"
            continue
        lacking = cluster.lacks_metadata(node)
        if lacking is not None:
            yield "L1", None, lacking
        registration = image.brokers.get(broker_id)
        if node.broker.state is not BrokerState.RUNNING or registration is None or registration.fenced:
            yield "L2", None, f"broker {broker_id} is {node.broker.state.value} and {registration}"


def _missing_copies(cluster: SimulatedCluster, name: TopicPartition) -> Iterator[tuple[str, TopicPartition, str]]:
    state = cluster.image.partitions[name]
    assert state.leader is not None
    leader_log = cluster.nodes[state.leader].disk.logs[name]
    for broker_id in state.replicas:
        node = cluster.nodes[broker_id]
        partition = None if node.broker is None else node.broker.partition(name)
        log = node.disk.logs.get(name)
        if partition is None or log is None:
            yield "L6", name, f"broker {broker_id} has no {name}"
            continue
        starts = (log.log_start_offset, leader_log.log_start_offset)
        if _batches_from(log, max(starts)) != _batches_from(leader_log, max(starts)):
            yield "L6", name, f"{name} differs between leader {state.leader} and broker {broker_id}"
        elif log.log_start_offset < leader_log.log_start_offset:
            yield "L6", name, f"{name} starts on broker {broker_id} and on leader {state.leader} at {starts}"
        elif partition.log.high_watermark != partition.log.log_end_offset:
            offsets = (partition.log.high_watermark, partition.log.log_end_offset)
            yield "L6", name, f"{name} on broker {broker_id} has high watermark and end {offsets}"


def _batches_from(log: StoredLog, start: Offset) -> list[int]:
    """Returns a log's batches from a log start on; those before it are deleted later, by each broker on its own."""
    return [batch.crc for batch in log.batches if batch.last_offset >= start]


def pulse(cluster: SimulatedCluster, tally: Tally) -> tuple[object, ...]:
    """Returns the counts that must stand still in a quiet cluster (L9)."""
    image = cluster.image
    states = tuple((name, s.leader_epoch, s.partition_epoch) for name, s in sorted(image.partitions.items()))
    return (image.next_offset, states, tally.proposals, tally.truncations, tally.fetch_errors)
