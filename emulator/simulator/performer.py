"""Performs actions on a simulated cluster. One that makes no sense at the moment is a no-op.

So a plan stays playable when parts of it are taken away, which is what shrinking does. Every action of
``emulator.plan.actions`` has a case here; ``took_effect`` says whether the cluster is changed, ``bit`` whether somebody
was there to be affected: a process that ran, a link that was open and leads to a node that runs.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias, assert_never

from emulator.core.events import FaultHealed
from emulator.core.metadata_version import ELR_VERSION
from emulator.core.types import BrokerId, ConfigResource, NodeId, TopicId, TopicPartition
from emulator.plan.actions import (
    Action,
    Administration,
    AlterConfig,
    CancelReassignment,
    Clients,
    ClockRate,
    CrashWithin,
    CreatePartitions,
    CreateTopic,
    Cut,
    DeleteTopic,
    Draw,
    Duplicate,
    ElectLeaders,
    Expire,
    HealAll,
    HealLink,
    HealNodes,
    Hold,
    Isolate,
    Kill,
    LoseHeld,
    LoseResponses,
    MessageAction,
    Outcome,
    Pause,
    PowerLoss,
    Produce,
    Reassign,
    RecreateTopic,
    Release,
    ReleaseNewest,
    ReplaceDisk,
    Reset,
    Resume,
    Slow,
    Start,
    Stop,
    SyncDisk,
    UnregisterBroker,
    UpdateFeature,
    Wait,
    effective,
    no_op,
)
from emulator.plan.channels import Channel, Link, Way
from emulator.plan.faults import EVERYTHING, fault_events
from emulator.plan.lines import MIN_ISR
from emulator.plan.nodes import CLIENT, CONTROLLER
from emulator.plan.power import Loss
from emulator.plan.requests import requests_of
from emulator.simulator.cluster import SimulatedCluster
from emulator.simulator.nodes import BrokerNode, ControllerNode

_BIT: Final = "simulated"
"""What the events of faults say of how they were seen."""

_Process: TypeAlias = BrokerNode | ControllerNode

_UNKNOWN_NODE: Final = no_op("there is no such node")
_UNKNOWN_LINK: Final = no_op("there is no such link")
_NOT_RUNNING: Final = no_op("it does not run")


def perform_and_record(cluster: SimulatedCluster, action: Action) -> Outcome:
    """Performs an action, and writes into the event log which faults that began and ended."""
    before, broken = cluster.controller.committed_end_offset, cluster.network.broken
    outcome = perform(cluster, action)
    if outcome.took_effect:
        events = fault_events(
            action,
            bit=_BIT,
            cause_id=cluster.event_log.cause_id,
            before=before,
            after=cluster.controller.committed_end_offset,
            broken=broken,
        )
        for event in events:
            cluster.event_log.note(event)
    return outcome


def record_healing(cluster: SimulatedCluster) -> None:
    """Writes into the event log that every fault is over."""
    cluster.event_log.note(
        FaultHealed(
            cause_id=cluster.event_log.cause_id,
            fault=EVERYTHING.name,
            target=EVERYTHING.target,
            seen=_BIT,
            metadata_offset=cluster.controller.committed_end_offset,
        )
    )


def perform(cluster: SimulatedCluster, action: Action) -> Outcome:
    """Performs an action, and records nothing."""
    match action:
        case Wait(duration_ms=duration_ms):
            cluster.run(duration_ms)  # even none delivers what is due at this very millisecond
            return effective(f"{duration_ms} ms have passed")
        case Produce():
            return _produce(cluster, action)
        case Kill(nodes=nodes):
            return _on_each(nodes, lambda node_id: _kill(cluster, node_id))
        case PowerLoss(nodes=nodes, loss=loss):
            return _lose_power(cluster, nodes, loss)
        case CrashWithin(nodes=nodes):
            return _on_each(nodes, lambda node_id: _arm_crash(cluster, node_id, action))
        case ReplaceDisk(nodes=nodes):
            return _on_each(nodes, lambda node_id: _replace_disk(cluster, node_id))
        case Start(nodes=nodes):
            return _on_each(nodes, lambda node_id: _start(cluster, node_id))
        case Stop(nodes=nodes):
            return _on_each(nodes, lambda node_id: _stop(cluster, node_id))
        case Pause(nodes=nodes):
            return _on_each(nodes, lambda node_id: _pause(cluster, node_id))
        case Resume(nodes=nodes):
            return _on_each(nodes, lambda node_id: _resume(cluster, node_id))
        case SyncDisk(nodes=nodes):
            return _on_each(nodes, lambda node_id: _sync(cluster, node_id))
        case ClockRate(nodes=nodes, rate_ppm=rate_ppm):
            return _on_each(nodes, lambda node_id: _set_clock_rate(cluster, node_id, rate_ppm))
        case Expire(nodes=nodes):
            return _on_each(nodes, lambda node_id: _expire(cluster, node_id))
        case Draw(number=number):
            return _draw(cluster, number)
        case Isolate(nodes=nodes, clients=clients):
            return _on_each(nodes, lambda node_id: _isolate(cluster, node_id, clients))
        case Cut(link=link):
            return _cut(cluster, link)
        case LoseResponses(link=link):
            return _lose_responses(cluster, link)
        case Reset(link=link):
            return _reset(cluster, link)
        case Slow(link=link, latency_ms=latency_ms):
            return _slow(cluster, link, latency_ms)
        case HealAll():
            return _heal_all(cluster)
        case HealNodes(nodes=nodes):
            return _on_each(nodes, lambda node_id: _heal_node(cluster, node_id))
        case HealLink(link=link):
            return _heal_link(cluster, link)
        case Hold() | Release() | ReleaseNewest() | LoseHeld() | Duplicate():
            return _on_messages(cluster, action)
        case (
            CreateTopic()
            | DeleteTopic()
            | RecreateTopic()
            | CreatePartitions()
            | AlterConfig()
            | ElectLeaders()
            | Reassign()
            | CancelReassignment()
            | UpdateFeature()
            | UnregisterBroker()
        ):
            return _ask_controller(cluster, action)
        case _:
            assert_never(action)


def _produce(cluster: SimulatedCluster, action: Produce) -> Outcome:
    producer = cluster.clients.producers.get(action.producer)
    if producer is None:
        return no_op(f"there is no {action.producer}")
    if cluster.state(action.partition) is None:
        return no_op(f"{action.partition} does not exist")
    return effective(f"offered as {cluster.clients.produce(producer, action.partition, action.records)}")


def _draw(cluster: SimulatedCluster, number: int) -> Outcome:
    if number < 0 or cluster.controller_node.core is None:
        return no_op("no controller runs" if number >= 0 else "there is no such draw")
    cluster.set_draw(number)
    return effective(f"the controller draws {number}")


# --- Nodes --------------------------------------------------------------------------------------------------------


def _on_each(nodes: Sequence[NodeId], do: Callable[[NodeId], Outcome]) -> Outcome:
    outcomes = [do(node_id) for node_id in nodes]
    if len(outcomes) == 1:
        return outcomes[0]
    seen = "; ".join(f"{node_id}: {outcome.seen}" for node_id, outcome in zip(nodes, outcomes, strict=True))
    return Outcome(
        took_effect=any(outcome.took_effect for outcome in outcomes),
        bit=any(outcome.bit for outcome in outcomes),
        seen=seen,
    )


def _broker(cluster: SimulatedCluster, node_id: NodeId) -> BrokerNode | None:
    return cluster.nodes.get(BrokerId(node_id))


def _process(cluster: SimulatedCluster, node_id: NodeId) -> _Process | None:
    return cluster.controller_node if node_id == CONTROLLER else _broker(cluster, node_id)


def _kill(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    node = _process(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    if node.core is None:
        return _NOT_RUNNING
    if isinstance(node, BrokerNode):
        cluster.processes.kill(node.broker_id)
    else:
        cluster.processes.kill_controller()
    return effective("the process was killed")


def _start(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    node = _process(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    if node.core is not None:
        return no_op("it runs")
    if isinstance(node, BrokerNode):
        cluster.processes.start(node.broker_id)
    else:
        cluster.processes.start_controller()
    return effective(f"incarnation {node.incarnation} runs")


def _stop(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    node = _process(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    if node.core is None:
        return _NOT_RUNNING
    if node.is_paused:
        return no_op("it is paused")
    if isinstance(node, BrokerNode):
        cluster.processes.stop(node.broker_id)
    else:
        cluster.processes.stop_controller()
    return effective("the process was asked to stop")


def _pause(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    node = _process(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    if node.core is None:
        return _NOT_RUNNING
    if node.is_paused:
        return no_op("it is paused")
    if isinstance(node, BrokerNode):
        cluster.processes.pause(node)
    else:
        cluster.processes.pause(node)
    return effective("it stands still")


def _resume(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    node = _process(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    if not node.is_paused:
        return no_op("it is not paused")
    if isinstance(node, BrokerNode):
        cluster.processes.resume(node)
    else:
        cluster.processes.resume(node)
    return effective("it runs")


def _lose_power(cluster: SimulatedCluster, nodes: Sequence[NodeId], loss: Loss) -> Outcome:
    known = [node for node_id in nodes if (node := _process(cluster, node_id)) is not None]
    if not known:
        return _UNKNOWN_NODE
    killed = sum(node.core is not None for node in known)
    lost = sum(_lose_unsynced(cluster, node, loss) for node in known)
    # A broker's disk is another after a loss of power even when nothing is missing: a truncation may be undone.
    took_effect = killed > 0 or lost > 0 or any(isinstance(node, BrokerNode) for node in known)
    if not took_effect:
        return _NOT_RUNNING
    bit = killed > 0 or lost > 0
    return Outcome(took_effect=True, bit=bit, seen=f"{killed} processes killed, {lost} unsynced batches lost")


def _lose_unsynced(cluster: SimulatedCluster, node: _Process, loss: Loss) -> int:
    """Takes a node's power; returns how many batches it lost."""
    before = _batches(node)
    if isinstance(node, BrokerNode):
        cluster.processes.power_loss(node.broker_id, loss)
    else:
        cluster.processes.power_loss_controller()
    return before - _batches(node)


def _batches(node: _Process) -> int:
    if isinstance(node, ControllerNode):
        return len(node.log)
    return sum(len(log.batches) for log in node.disk.logs.values())


def _replace_disk(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    node = _broker(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    cluster.processes.replace_disk(node.broker_id)
    return effective("the disk is empty")


def _sync(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    node = _broker(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    node.disk.sync()
    return effective("the disk is synced")


def _arm_crash(cluster: SimulatedCluster, node_id: NodeId, crash: CrashWithin[NodeId]) -> Outcome:
    node = _broker(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    if node.pending_crash is not None:
        return no_op("a crash is pending")
    node.pending_crash = crash
    return effective("it will crash in its next turn that changes logs")


def _set_clock_rate(cluster: SimulatedCluster, node_id: NodeId, rate_ppm: int) -> Outcome:
    node = _broker(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    if rate_ppm <= 0:
        return no_op("there is no such rate")
    cluster.processes.set_clock_rate(node, rate_ppm)
    return effective(f"its clock runs at {rate_ppm} ppm")


def _expire(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    """Withholds heartbeats until the session is over: everything else goes on meanwhile."""
    node = _broker(cluster, node_id)
    if node is None:
        return _UNKNOWN_NODE
    if node.core is None:
        return _NOT_RUNNING
    broker_id = node.broker_id
    heartbeats = Channel(node.node_id, CONTROLLER, "BrokerHeartbeat", Way.REQUEST)
    was_held = heartbeats in cluster.network.held
    cluster.links.hold(heartbeats)

    def is_over() -> bool:
        registration = cluster.controller.image.brokers.get(broker_id)
        return registration is None or registration.fenced

    limit_ms = 3 * cluster.properties.broker_session_timeout_ms
    is_fenced = cluster.run_until(is_over, within_ms=limit_ms)
    if not was_held and not cluster.is_halted:
        cluster.links.release(heartbeats)
    return effective("the controller fenced it" if is_fenced else "the controller did not fence it")


# --- Links --------------------------------------------------------------------------------------------------------


def _links(cluster: SimulatedCluster) -> list[Link[NodeId]]:
    """Returns who dials whom: the clients every node, and the nodes each other."""
    nodes = [*cluster.nodes, CONTROLLER]
    return [Link(source, target) for source in (CLIENT, *nodes) for target in nodes if source != target]


def _is_link(cluster: SimulatedCluster, link: Link[NodeId]) -> bool:
    ends = (*cluster.nodes, CONTROLLER)
    return link.source != link.target and link.target in ends and (link.source in ends or link.source == CLIENT)


def _is_live(cluster: SimulatedCluster, link: Link[NodeId]) -> bool:
    """Whether a link is open and leads to a node that runs and is not paused."""
    target = _process(cluster, link.target)
    assert target is not None, "a link leads to a node"
    return link not in cluster.network.broken and target.core is not None and not target.is_paused


def _silenced(live: int, links: int) -> Outcome:
    return Outcome(took_effect=True, bit=live > 0, seen=f"{live} of {links} links silent")


def _isolate(cluster: SimulatedCluster, node_id: NodeId, clients: Clients) -> Outcome:
    if _process(cluster, node_id) is None:
        return _UNKNOWN_NODE
    links = [link for link in _links(cluster) if node_id in link and (clients is Clients.CUT or link.source != CLIENT)]
    live = sum(_is_live(cluster, link) for link in links)
    cluster.links.isolate(node_id, clients)
    return _silenced(live, len(links))


def _cut(cluster: SimulatedCluster, link: Link[NodeId]) -> Outcome:
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    if link in cluster.network.cuts:
        return no_op("it is cut")
    live = int(_is_live(cluster, link))
    cluster.links.cut(link.source, link.target)
    return _silenced(live, 1)


def _lose_responses(cluster: SimulatedCluster, link: Link[NodeId]) -> Outcome:
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    if link in cluster.network.losing:
        return no_op("it loses responses")
    live = int(_is_live(cluster, link))
    cluster.links.lose_responses(link.source, link.target)
    return _silenced(live, 1)


def _reset(cluster: SimulatedCluster, link: Link[NodeId]) -> Outcome:
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    ended = cluster.links.reset(link.source, link.target)
    return effective(f"{ended} requests ended") if ended else no_op("no request was under way")


def _slow(cluster: SimulatedCluster, link: Link[NodeId], latency_ms: int) -> Outcome:
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    if latency_ms < 0:
        return no_op("there is no such latency")
    live = _is_live(cluster, link)
    cluster.links.slow(link.source, link.target, latency_ms)
    return Outcome(took_effect=True, bit=live, seen=f"messages take {latency_ms} ms")


def _heal_all(cluster: SimulatedCluster) -> Outcome:
    if cluster.network.is_whole:
        return no_op("nothing is wrong with the network")
    count = len(cluster.network.broken)
    cluster.links.heal()
    return effective(f"{count} links restored")


def _heal_node(cluster: SimulatedCluster, node_id: NodeId) -> Outcome:
    if _process(cluster, node_id) is None:
        return _UNKNOWN_NODE
    count = _mend(cluster, (link for link in cluster.network.broken if node_id in link))
    return Outcome(took_effect=True, bit=count > 0, seen=f"{count} links restored")


def _heal_link(cluster: SimulatedCluster, link: Link[NodeId]) -> Outcome:
    if not _is_link(cluster, link):
        return _UNKNOWN_LINK
    if link not in cluster.network.broken:
        return no_op("it is whole")
    return effective(f"{_mend(cluster, [link])} links restored")


def _mend(cluster: SimulatedCluster, links: Iterable[Link[NodeId]]) -> int:
    """Mends links; returns how many."""
    mended = list(links)
    for link in mended:
        cluster.links.mend(link.source, link.target)
    return len(mended)


# --- Single messages ----------------------------------------------------------------------------------------------


def _on_messages(cluster: SimulatedCluster, action: MessageAction[NodeId]) -> Outcome:
    channel = action.channel
    is_held = channel in cluster.network.held
    match action:
        case Hold():
            if is_held:
                return no_op("they are held")
            cluster.links.hold(channel)
            return effective("held from now on")
        case Release(count=count):
            if not is_held:
                return no_op("they are not held")
            number = cluster.links.release(channel, count=count)
            return effective(f"{number} released") if number or count is None else no_op("none is held")
        case ReleaseNewest():
            return effective("1 released") if cluster.links.release_newest(channel) else no_op("none is held")
        case LoseHeld():
            return effective("1 lost") if cluster.links.lose_held(channel) else no_op("none is held")
        case Duplicate():
            return effective("1 duplicated") if cluster.links.duplicate_held(channel) else no_op("no request is held")
        case _:
            assert_never(action)


# --- Requests to the controller -----------------------------------------------------------------------------------


def _ask_controller(cluster: SimulatedCluster, action: Administration) -> Outcome:
    """Sends an administrator's requests past all links; nobody waits for the answers."""
    reason = _pointless(cluster, action)
    if reason is not None:
        return no_op(reason)
    requests = requests_of(action, cluster.image, topic_id=_new_topic_id(cluster, action))
    for request, cause in zip(requests, _causes(action), strict=True):
        cluster.clients.ask(CONTROLLER, request, cause=cause)
    return effective("asked the controller")


def _pointless(cluster: SimulatedCluster, action: Administration) -> str | None:
    """Returns why a request is about something that is not there, or asks for what is."""
    image = cluster.image
    match action:
        case CreateTopic():
            return None
        case DeleteTopic(name=name) | RecreateTopic(name=name) | CreatePartitions(name=name):
            return None if name in image.topics else f"there is no topic {name}"
        case AlterConfig(config=config):
            is_known = config.resource is not ConfigResource.TOPIC or config.name in image.topics
            return None if is_known else f"there is no topic {config.name}"
        case ElectLeaders(partitions=partitions):
            return _missing_partition(cluster, partitions)
        case CancelReassignment(partition=partition):
            return _missing_partition(cluster, (partition,))
        case Reassign(partition=partition, replicas=replicas):
            if any(_broker(cluster, broker_id) is None for broker_id in replicas):
                return "there is no such broker"
            return _missing_partition(cluster, (partition,))
        case UpdateFeature(target=target):
            is_there = image.feature_level(target.feature) == target.level
            return f"{target.feature} is at level {target.level}" if is_there else None
        case UnregisterBroker(broker_id=broker_id):
            return None if broker_id in image.brokers else f"broker {broker_id} is not registered"
        case _:
            assert_never(action)


def _missing_partition(cluster: SimulatedCluster, partitions: Iterable[TopicPartition]) -> str | None:
    missing = next((partition for partition in partitions if cluster.state(partition) is None), None)
    return None if missing is None else f"{missing} does not exist"


def _new_topic_id(cluster: SimulatedCluster, action: Administration) -> TopicId:
    """Returns the id of a topic that is created now; no two are the same, and a replay has the same ones."""
    match action:
        case CreateTopic(topic=topic):
            name = topic.name
        case RecreateTopic(name=name):
            pass
        case _:
            name = ""
    return TopicId(f"id-of-{name}-{cluster.steps}")


def _causes(action: Administration) -> tuple[str, ...]:
    """Returns what the events that each request leads to name as their cause."""
    match action:
        case CreateTopic(topic=topic):
            return (f"create-{topic.name}",)
        case DeleteTopic(name=name):
            return (f"delete-{name}",)
        case RecreateTopic(name=name):
            return (f"delete-{name}", f"create-{name}")
        case CreatePartitions(name=name):
            return (f"create-partitions-{name}",)
        case AlterConfig(config=config):
            is_min_isr = [name for name, _ in config.changes] == [MIN_ISR]
            return (f"{'min-isr' if is_min_isr else 'alter-config'}-{config.name}",)
        case ElectLeaders():
            return ("elect-leaders",)
        case Reassign(partition=partition) | CancelReassignment(partition=partition):
            return (f"reassign-{partition}",)
        case UpdateFeature(target=target):
            return (f"{'elr-feature' if target.feature == ELR_VERSION else target.feature}-{target.level}",)
        case UnregisterBroker(broker_id=broker_id):
            return (f"unregister-{broker_id}",)
        case _:
            assert_never(action)
