"""Ends of nodes: stopped in order, or unexpectedly."""

import asyncio

from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.client.history import complete_history
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId


async def stop_nodes(target: ProcessTarget) -> None:
    """Stops the brokers that run, then the controller, and records how each ended.

    It completes what brokers that were killed had written of clients of Apache Kafka.
    """
    cluster, controller = target.cluster, target.cluster.layout.controller_id
    brokers = [broker for broker in cluster.layout.broker_ids if cluster.is_running(broker)]
    ends = await asyncio.gather(*(cluster.stop_node(broker) for broker in brokers))
    committed = await target.committed_end()
    for broker, end in zip(brokers, ends, strict=True):
        if end is not None:
            target.note_end(broker, events.IncarnationEnd.STOPPED, end, committed)
    controller_end = await cluster.stop_node(controller)
    if controller_end is not None:
        target.note_end(controller, events.IncarnationEnd.STOPPED, controller_end, committed)
    for path in cluster.layout.foreign_history_files():
        complete_history(path)


def note_crash(cluster: ProcessCluster, log: HarnessLog, name: str, end: ProcessEnd) -> str:
    """Records that a process ended unexpectedly, or failed while stopping; returns a description."""
    if name.isdigit():
        node_id = NodeId(int(name))
        log.ended(
            node_id,
            cluster.incarnation(node_id),
            events.IncarnationEnd.UNEXPECTED,
            exit_code=end.exit_code,
            metadata_offset=None,
        )
    if end.explanation is not None:
        return f"process {name}: {end.explanation}"
    if end.exit_code is None:
        return f"process {name} was ended by signal {end.signal_number}, which no step sent"
    return f"process {name} ended by itself ({end.cause.value}, exit code {end.exit_code})"
