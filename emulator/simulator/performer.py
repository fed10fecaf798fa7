"""Performs actions on a cluster. An action that makes no sense at the moment is skipped: it is *not enabled*.

So a plan stays playable when parts of it are taken away, which is what shrinking does.
"""

from collections.abc import Callable
from typing import assert_never

from emulator.core.events import FaultHealed, FaultInjected
from emulator.core.metadata_version import ELR_VERSION
from emulator.core.types import BrokerId, MetadataOffset, NodeId
from emulator.simulator.actions import (
    Action,
    ChannelVerb,
    ClockRate,
    CrashWithin,
    Draw,
    ElrFeature,
    Heal,
    LinkVerb,
    MinIsr,
    NodeVerb,
    OnChannel,
    OnLink,
    OnNode,
    PowerLoss,
    Produce,
    Reassign,
    Recreate,
    Slow,
    Wait,
)
from emulator.simulator.administration import reassign, recreate_topic, set_elr_feature, set_min_isr
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.faults import Fault, faults_of, mended_by
from emulator.simulator.network import Channel, Way
from emulator.simulator.nodes import CLIENT, CONTROLLER, BrokerNode, ControllerNode


def perform(cluster: SimulatedCluster, action: Action) -> bool:
    """Performs an action and notes it as a fault if it is one; returns whether it was enabled."""
    offset = cluster.controller.committed_end_offset
    broken = {*cluster.network.cuts, *cluster.network.losing}
    is_enabled = _perform(cluster, action)
    if is_enabled:
        for fault in faults_of(action):
            _note_injected(cluster, fault, offset=offset)
        for fault in mended_by(action, broken=broken):
            note_healed(cluster, fault)
    return is_enabled


def _note_injected(cluster: SimulatedCluster, fault: Fault, *, offset: MetadataOffset) -> None:
    cluster.event_log.note(
        FaultInjected(
            cause_id=cluster.event_log.cause_id,
            fault=fault.name,
            target=fault.target,
            bit="simulated",
            metadata_offset=offset,
        )
    )


def note_healed(cluster: SimulatedCluster, fault: Fault) -> None:
    """Writes that a fault is over."""
    cluster.event_log.note(
        FaultHealed(
            cause_id=cluster.event_log.cause_id,
            fault=fault.name,
            target=fault.target,
            seen="simulated",
            metadata_offset=cluster.controller.committed_end_offset,
        )
    )


def _perform(cluster: SimulatedCluster, action: Action) -> bool:
    match action:
        case Wait(duration_ms=duration_ms):
            cluster.run(duration_ms)  # even none delivers what is due at this very millisecond
            return True
        case Produce(partition=partition, acks=acks, records=records):
            producer = cluster.clients.producers.get(acks)
            if producer is None or cluster.state(partition) is None:
                return False
            cluster.clients.produce(producer, partition, records)
            return True
        case OnNode(verb=verb, nodes=nodes):
            return sum(_on_node(cluster, verb, node_id) for node_id in nodes) > 0
        case PowerLoss(nodes=nodes):
            return sum(_lose_power(cluster, node_id, action) for node_id in nodes) > 0
        case CrashWithin(node=node_id):
            node = _broker(cluster, node_id)
            if node is None or node.pending_crash is not None:
                return False
            node.pending_crash = action
            return True
        case ClockRate(node=node_id, rate_ppm=rate_ppm):
            node = _broker(cluster, node_id)
            if node is None or rate_ppm <= 0:
                return False
            cluster.processes.set_clock_rate(node, rate_ppm)
            return True
        case OnLink():
            return _on_link(cluster, action)
        case Slow(source=source, destination=destination, latency_ms=latency_ms):
            if not _is_link(cluster, source, destination) or latency_ms < 0:
                return False
            cluster.links.slow(source, destination, latency_ms)
            return True
        case OnChannel():
            return _on_channel(cluster, action)
        case Draw(number=number):
            if number < 0 or cluster.controller_node.core is None:
                return False
            cluster.set_draw(number)
            return True
        case MinIsr(topic=topic, value=value):
            if value < 1 or topic not in cluster.image.topics:
                return False
            set_min_isr(cluster, topic, value)
            return True
        case Reassign(partition=partition, replicas=replicas):
            if cluster.state(partition) is None or any(_broker(cluster, node_id) is None for node_id in replicas):
                return False
            reassign(cluster, partition, tuple(BrokerId(node_id) for node_id in replicas))
            return True
        case Recreate(topic=topic):
            if topic not in cluster.image.topics:
                return False
            recreate_topic(cluster, topic)
            return True
        case ElrFeature(level=level):
            if level not in (0, 1) or level == cluster.image.feature_level(ELR_VERSION):
                return False
            set_elr_feature(cluster, level)
            return True
        case Heal():
            was_whole = cluster.network.is_whole
            cluster.links.heal()
            return not was_whole
        case _:
            assert_never(action)


def _broker(cluster: SimulatedCluster, node_id: NodeId) -> BrokerNode | None:
    return cluster.nodes.get(BrokerId(node_id))


def _on_node(cluster: SimulatedCluster, verb: NodeVerb, node_id: NodeId) -> bool:
    if node_id == CONTROLLER:
        return _on_controller(cluster, verb)
    node = _broker(cluster, node_id)
    if node is None:
        return False
    is_running = node.core is not None
    doable: dict[NodeVerb, tuple[bool, Callable[[], object]]] = {
        NodeVerb.KILL: (is_running, lambda: cluster.processes.kill(node.broker_id)),
        NodeVerb.REPLACE_DISK: (True, lambda: cluster.processes.replace_disk(node.broker_id)),
        NodeVerb.START: (not is_running, lambda: cluster.processes.start(node.broker_id)),
        NodeVerb.STOP: (is_running and not node.is_paused, lambda: cluster.processes.stop(node.broker_id)),
        NodeVerb.PAUSE: (is_running and not node.is_paused, lambda: cluster.processes.pause(node)),
        NodeVerb.RESUME: (node.is_paused, lambda: cluster.processes.resume(node)),
        NodeVerb.SYNC: (True, node.disk.sync),
        NodeVerb.EXPIRE: (is_running, lambda: _expire(cluster, node)),
        NodeVerb.ISOLATE: (True, lambda: cluster.links.isolate(node.broker_id)),
        NodeVerb.REJOIN: (True, lambda: _rejoin(cluster, node_id)),
    }
    is_enabled, do = doable[verb]
    if is_enabled:
        do()
    return is_enabled


def _on_controller(cluster: SimulatedCluster, verb: NodeVerb) -> bool:
    node: ControllerNode = cluster.controller_node
    is_running = node.core is not None
    match verb:
        case NodeVerb.KILL if is_running:
            cluster.processes.kill_controller()
        case NodeVerb.START if not is_running:
            cluster.processes.start_controller()
        case NodeVerb.PAUSE if is_running and not node.is_paused:
            cluster.processes.pause(node)
        case NodeVerb.RESUME if node.is_paused:
            cluster.processes.resume(node)
        case _:
            return False
    return True


def _expire(cluster: SimulatedCluster, node: BrokerNode) -> None:
    """Withholds heartbeats until the session is over: everything else goes on meanwhile."""
    heartbeats = Channel(node.node_id, CONTROLLER, "BrokerHeartbeat", Way.REQUEST)
    was_held = heartbeats in cluster.network.held
    cluster.links.hold(heartbeats)

    def is_over() -> bool:
        registration = cluster.controller.image.brokers.get(node.broker_id)
        return registration is None or registration.fenced

    limit_ms = 3 * cluster.properties.broker_session_timeout_ms
    cluster.run_until(is_over, within_ms=limit_ms)
    if not was_held and not cluster.is_halted:
        cluster.links.release(heartbeats)


def _rejoin(cluster: SimulatedCluster, node_id: NodeId) -> None:
    for other in (*cluster.nodes, CONTROLLER, CLIENT):
        cluster.links.mend(node_id, other)
        cluster.links.mend(other, node_id)


def _lose_power(cluster: SimulatedCluster, node_id: NodeId, action: PowerLoss) -> bool:
    if node_id == CONTROLLER:
        is_running = cluster.controller_node.core is not None
        if is_running:
            cluster.processes.power_loss_controller()
        return is_running
    node = _broker(cluster, node_id)
    if node is None:
        return False
    cluster.processes.power_loss(
        node.broker_id, action.keep, kept=action.kept, truncation=action.truncation, names=action.names
    )
    return True


def _is_link(cluster: SimulatedCluster, source: NodeId, destination: NodeId) -> bool:
    ends = (*cluster.nodes, CONTROLLER)
    return source != destination and destination in ends and (source in ends or source == CLIENT)


def _on_link(cluster: SimulatedCluster, action: OnLink) -> bool:
    source, destination = action.source, action.destination
    if not _is_link(cluster, source, destination):
        return False
    link = (source, destination)
    network = cluster.network
    match action.verb:
        case LinkVerb.CUT if link not in network.cuts:
            cluster.links.cut(source, destination)
        case LinkVerb.LOSE_RESPONSES if link not in network.losing:
            cluster.links.lose_responses(source, destination)
        case LinkVerb.MEND if link in network.cuts or link in network.losing:
            cluster.links.mend(source, destination)
        case LinkVerb.RESET:
            return cluster.links.reset(source, destination) > 0
        case _:
            return False
    return True


def _on_channel(cluster: SimulatedCluster, action: OnChannel) -> bool:
    channel = action.channel
    is_held = channel in cluster.network.held
    match action.verb:
        case ChannelVerb.HOLD:
            if not is_held:
                cluster.links.hold(channel)
            return not is_held
        case ChannelVerb.RELEASE:
            return is_held and (cluster.links.release(channel, count=action.count) > 0 or action.count is None)
        case ChannelVerb.RELEASE_NEWEST:
            return cluster.links.release_newest(channel) > 0
        case ChannelVerb.LOSE:
            return cluster.links.lose_held(channel) > 0
        case ChannelVerb.DUPLICATE:
            return cluster.links.duplicate_held(channel) > 0
        case _:
            assert_never(action.verb)
