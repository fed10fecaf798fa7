"""Performs actions on a simulated cluster. One that is impossible at the moment is a no-op.

So a plan stays playable while parts of it are removed by shrinking. Every action of ``laststand.emulator.plan.actions``
has a case here. ``took_effect`` says whether the cluster changed, ``bit`` whether anything was affected: a process that
ran, or an open link to a running node.
"""

from typing import Final, assert_never

from laststand.emulator.core.events import FaultHealed, FaultLink
from laststand.emulator.plan.actions import (
    Action,
    AlterConfig,
    CancelReassignment,
    ClockJump,
    ClockRate,
    Connect,
    CrashWithin,
    CreatePartitions,
    CreateTopic,
    Cut,
    DelayMessages,
    DeleteRecords,
    DeleteTopic,
    DeposeController,
    Disconnect,
    DiskError,
    DiskFull,
    Draw,
    Duplicate,
    DuplicateNext,
    ElectLeaders,
    Expire,
    ExpireSession,
    Flap,
    FlipBit,
    HalfOpen,
    HealAll,
    HealLink,
    HealNodes,
    Hold,
    Isolate,
    Kill,
    LoseHeld,
    LoseNext,
    LoseResponses,
    LoseSyncs,
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
    Slice,
    Slow,
    SlowDisk,
    Start,
    Stop,
    SyncDisk,
    Throttle,
    UnregisterBroker,
    UpdateFeature,
    Wait,
    deed_of,
    effective,
    no_op,
)
from laststand.emulator.plan.drivers import DriverName
from laststand.emulator.plan.faults import EVERYTHING, fault_events
from laststand.emulator.simulator.actions import on_links, on_nodes
from laststand.emulator.simulator.actions.administration import administer
from laststand.emulator.simulator.actions.targets import on_each
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster

_BIT: Final = "simulated"
"""What the events of faults say of how they were seen."""


def perform_and_record(cluster: SimulatedCluster, action: Action) -> Outcome:
    """Performs an action, and writes into the event log which faults that began and ended."""
    before, broken = cluster.committed_end_offset, cluster.network.broken
    begun_ns = cluster.event_log.now_ns
    outcome = perform(cluster, action)
    if outcome.took_effect:
        events = fault_events(
            action,
            bit=_BIT,
            cause_id=cluster.event_log.cause_id,
            before=before,
            after=cluster.committed_end_offset,
            broken=broken,
            begun_ns=begun_ns,
            proved_ns=cluster.event_log.now_ns,
        )
        for event in events:
            cluster.event_log.note(event)
    return outcome


def heal_and_record(cluster: SimulatedCluster) -> None:
    """Heals every link, and writes into the event log that every fault is over."""
    broken = sorted(cluster.network.broken)
    cluster.links.heal()
    now_ns = cluster.event_log.now_ns
    cluster.event_log.note(
        FaultHealed(
            cause_id=cluster.event_log.cause_id,
            fault=EVERYTHING.name,
            target=EVERYTHING.target,
            links=tuple(FaultLink(*link) for link in broken),
            seen=_BIT,
            metadata_offset=cluster.committed_end_offset,
            begun_ns=now_ns,
            proved_ns=now_ns,
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
            return on_each(nodes, lambda node_id: on_nodes.kill(cluster, node_id))
        case PowerLoss(nodes=nodes, loss=loss):
            return on_nodes.lose_power(cluster, nodes, loss)
        case CrashWithin(nodes=nodes):
            return on_each(nodes, lambda node_id: on_nodes.arm_crash(cluster, node_id, action))
        case ReplaceDisk(nodes=nodes):
            return on_each(nodes, lambda node_id: on_nodes.replace_disk(cluster, node_id))
        case Start(nodes=nodes, inter_broker_protocol_version=version):
            return on_each(nodes, lambda node_id: on_nodes.start(cluster, node_id, version))
        case Stop(nodes=nodes):
            return on_each(nodes, lambda node_id: on_nodes.stop(cluster, node_id))
        case Pause(nodes=nodes):
            return on_each(nodes, lambda node_id: on_nodes.pause(cluster, node_id))
        case Resume(nodes=nodes):
            return on_each(nodes, lambda node_id: on_nodes.resume(cluster, node_id))
        case SyncDisk(nodes=nodes):
            return on_each(nodes, lambda node_id: on_nodes.sync(cluster, node_id))
        case ClockRate(nodes=nodes, rate_ppm=rate_ppm):
            return on_each(nodes, lambda node_id: on_nodes.set_clock_rate(cluster, node_id, rate_ppm))
        case ClockJump(nodes=nodes, by_ms=by_ms):
            return on_each(nodes, lambda node_id: on_nodes.let_clock_jump(cluster, node_id, by_ms))
        case Expire(nodes=nodes):
            return on_each(nodes, lambda node_id: on_nodes.expire(cluster, node_id))
        case ExpireSession(nodes=nodes):
            return on_each(nodes, lambda node_id: on_nodes.expire_session(cluster, node_id))
        case DeposeController():
            return on_nodes.depose_controller(cluster)
        case Draw(number=number):
            return _draw(cluster, number)
        case Isolate(nodes=nodes, clients=clients):
            return on_each(nodes, lambda node_id: on_links.isolate(cluster, node_id, clients))
        case Cut(link=link):
            return on_links.cut(cluster, link)
        case LoseResponses(link=link):
            return on_links.lose_responses(cluster, link)
        case Reset(link=link):
            return on_links.reset(cluster, link)
        case HalfOpen(link=link):
            return on_links.half_open(cluster, link)
        case Flap():
            return on_links.flap(cluster, action)
        case (
            Throttle()
            | Slice()
            | SlowDisk()
            | LoseSyncs()
            | DiskError()
            | DiskFull()
            | FlipBit()
            | Disconnect()
            | Connect()
        ):
            return no_op(deed_of(action).refused[DriverName.SIMULATOR])
        case Slow(link=link, latency_ms=latency_ms, jitter_ms=jitter_ms, direction=direction):
            return on_links.slow(cluster, link, latency_ms, jitter_ms=jitter_ms, direction=direction)
        case HealAll():
            return on_links.heal_all(cluster)
        case HealNodes(nodes=nodes):
            return on_each(nodes, lambda node_id: on_links.heal_node(cluster, node_id))
        case HealLink(link=link):
            return on_links.heal_link(cluster, link)
        case Hold() | Release() | ReleaseNewest() | LoseHeld() | Duplicate():
            return on_links.on_messages(cluster, action)
        case LoseNext() | DuplicateNext() | DelayMessages():
            return on_links.interfere(cluster, action)
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
            | DeleteRecords()
        ):
            return administer(cluster, action)
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
    if number < 0 or cluster.metadata_node.core is None:
        return no_op("no controller runs" if number >= 0 else "there is no such draw")
    cluster.set_draw(number)
    return effective(f"the controller draws {number}")
