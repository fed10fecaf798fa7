"""Performs actions on processes and their disks."""

import errno
import os
from collections.abc import Sequence
from typing import Final

from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions
from laststand.emulator.plan.nouns import counted
from laststand.emulator.plan.power import DiskLoss
from laststand.emulator.simulator.actions.targets import UNKNOWN_NODE, Process, find_process
from laststand.emulator.simulator.cluster.cluster import SimulatedCluster
from laststand.emulator.simulator.nodes.nodes import BrokerNode, MetadataNode

_NOT_RUNNING: Final = actions.no_op("it does not run")


def kill(cluster: SimulatedCluster, node: Process) -> actions.Outcome:
    """Ends a process; the page cache stays."""
    if node.core is None:
        return _NOT_RUNNING
    cluster.processes.kill(node)
    return actions.effective("the process was killed")


def start(cluster: SimulatedCluster, node: Process, action: actions.Start[NodeId]) -> actions.Outcome:
    """Starts a node that is down, with another era or another inter-broker protocol if the action names one."""
    if node.core is not None:
        return actions.no_op("it runs")
    if isinstance(node, BrokerNode) and cluster.processes.still_stops(node):
        return actions.no_op("the controller in its process still stops")
    version = action.inter_broker_protocol_version
    if version is not None and not cluster.set_protocol(node.node_id, version):
        return actions.no_op("it is no broker of a cluster with ZooKeeper")
    if action.era is not None:
        cluster.set_era(node.node_id, action.era)
    machine = [find_process(cluster, each) for each in cluster.machine_of(node.node_id)]
    for each in machine:
        if isinstance(each, MetadataNode) and (refusal := each.start_refusal(cluster.rules_of(each.node_id))):
            return actions.no_op(refusal)
    cluster.processes.start(node)
    seen = "runs" if node.core is not None else f"ended again: {os.strerror(errno.ENOSPC)}"
    return actions.effective(f"incarnation {node.incarnation} {seen}")


def stop(cluster: SimulatedCluster, node: Process) -> actions.Outcome:
    """Asks a process to shut down, without waiting for its end."""
    if node.core is None:
        return _NOT_RUNNING
    if node.is_paused:
        return actions.no_op("it is paused")
    if isinstance(node, BrokerNode) or cluster.machine_of(node.node_id)[0] == node.node_id:
        cluster.processes.stop(node)
    return actions.effective("the process was asked to stop")


def pause(cluster: SimulatedCluster, node: Process) -> actions.Outcome:
    """Pauses a process: its inputs are queued until it is resumed."""
    if node.core is None:
        return _NOT_RUNNING
    if node.is_paused:
        return actions.no_op("it is paused")
    cluster.processes.pause(node)
    return actions.effective("it stands still")


def resume(cluster: SimulatedCluster, node: Process) -> actions.Outcome:
    """Resumes a paused process: it takes the inputs that waited for it."""
    if not node.is_paused:
        return actions.no_op("it is not paused")
    cluster.processes.resume(node)
    return actions.effective("it runs")


def lose_power(cluster: SimulatedCluster, nodes: Sequence[NodeId], loss: DiskLoss) -> actions.Outcome:
    """Takes the power of nodes at the same moment."""
    known = [node for node_id in nodes if (node := find_process(cluster, node_id)) is not None]
    if not known:
        return UNKNOWN_NODE
    killed = sum(node.core is not None for node in known)
    lost = sum(_lose_unsynced(cluster, node, loss) for node in known)
    # A broker's disk is another after a loss of power even when nothing is missing: a truncation may be undone.
    took_effect = killed > 0 or lost > 0 or any(isinstance(node, BrokerNode) for node in known)
    if not took_effect:
        return _NOT_RUNNING
    affected = killed > 0 or lost > 0
    return actions.Outcome(
        took_effect=True,
        affected=affected,
        seen=f"{counted(killed, 'process')} killed, {counted(lost, 'unsynced batch')} lost",
    )


def _lose_unsynced(cluster: SimulatedCluster, node: Process, loss: DiskLoss) -> int:
    """Cuts a node's power; returns how many batches it lost."""
    before = _batches(node)
    cluster.processes.power_loss(node, loss)
    return before - _batches(node)


def _batches(node: Process) -> int:
    if isinstance(node, MetadataNode):
        return node.length
    return sum(len(log.batches) for log in node.disk.logs.values())


def replace_disk(cluster: SimulatedCluster, node: Process) -> actions.Outcome:
    """Ends a process, and empties its disk."""
    if not isinstance(node, BrokerNode) and not cluster.has_quorum:
        return UNKNOWN_NODE
    cluster.processes.replace_disk(node)
    return actions.effective("the disk is empty")


def lose_quorum_state(cluster: SimulatedCluster, node: Process) -> actions.Outcome:
    """Ends a controller's process, and removes its ``quorum-state`` file."""
    if not isinstance(node, MetadataNode) or not cluster.has_quorum:
        return actions.no_op("it has no quorum-state")
    cluster.processes.kill(node)
    return actions.effective("the file is gone") if node.lose_election() else actions.no_op("there was no quorum-state")


def limit_disk(cluster: SimulatedCluster, node: BrokerNode, room: int | None) -> actions.Outcome:
    """Limits the bytes that may still be written to a disk, or removes that limit (``None``)."""
    if node.disk.room == room:
        return actions.no_op("there is room" if room is None else "it is as full already")
    node.disk.room = room
    return actions.effective("there is room again" if room is None else "the next write without room ends the process")


def sync(cluster: SimulatedCluster, node: BrokerNode) -> actions.Outcome:
    """Makes the page cache durable."""
    cluster.sync_disk(node)
    return actions.effective("the disk is synced")


def arm_crash(cluster: SimulatedCluster, node: BrokerNode, crash: actions.CrashWithin[NodeId]) -> actions.Outcome:
    """Makes a broker crash within a later turn."""
    if node.pending_crash is not None:
        return actions.no_op("a crash is pending")
    node.pending_crash = crash
    return actions.effective("it will crash in its next turn that changes logs")


def set_clock_rate(cluster: SimulatedCluster, node: Process, rate_ppm: int) -> actions.Outcome:
    """Changes the rate of a node's clock."""
    if rate_ppm <= 0:
        return actions.no_op("there is no such rate")
    if node.clock.rate_ppm == rate_ppm:
        return actions.no_op("it runs so already")
    cluster.processes.set_clock_rate(node, rate_ppm)
    return actions.effective(f"its clock runs at {rate_ppm} ppm")


def expire_certificate(cluster: SimulatedCluster, node: Process) -> actions.Outcome:
    """Expires a node's client certificate: its new connections are refused."""
    if not cluster.properties.has_tls_between_nodes:
        return actions.no_op(actions.NO_TLS)
    if node.node_id in cluster.network.expired:
        return actions.no_op("it has expired already")
    cluster.links.expire_certificate(node.node_id)
    return actions.effective("whoever it dials refuses it")


def renew_certificate(cluster: SimulatedCluster, node: Process) -> actions.Outcome:
    """Gives a node a new client certificate: its connections are accepted again."""
    if not cluster.properties.has_tls_between_nodes:
        return actions.no_op(actions.NO_TLS)
    cluster.links.renew_certificate(node.node_id)
    return actions.effective("new connections show another certificate")


def let_clock_jump(cluster: SimulatedCluster, node: Process, by_ms: int) -> actions.Outcome:
    """Sets a node's clock forward."""
    if node.core is None:
        return _NOT_RUNNING
    cluster.processes.let_clock_jump(node, by_ms)
    return actions.effective(f"its clock is {by_ms} ms ahead")


def expire_session(cluster: SimulatedCluster, node: BrokerNode) -> actions.Outcome:
    """Has a broker's ZooKeeper session ended; the process is not informed."""
    if not cluster.end_session(node.broker_id):
        return actions.no_op("it has no session with a ZooKeeper that runs")
    return actions.effective("ZooKeeper has ended its session")


def depose_controller(cluster: SimulatedCluster) -> actions.Outcome:
    """Has ``/controller`` deleted; the watch of the former controller notifies its process."""
    if not cluster.depose_controller():
        return actions.no_op("there is no /controller, or no ZooKeeper that runs")
    return actions.effective("an administrator deleted /controller")


def expire(cluster: SimulatedCluster, node: BrokerNode) -> actions.Outcome:
    """Expires a broker's session; its process and its links continue."""
    if node.core is None:
        return _NOT_RUNNING
    has_ended = cluster.expire(node.broker_id)
    return actions.effective("its session has ended" if has_ended else "its session did not end")
