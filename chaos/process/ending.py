"""Ends of nodes: stopped in order, or unexpectedly."""

import asyncio
from collections.abc import Mapping, Sequence

from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.client.history import complete_history
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.layout import foreign_history_files
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import events
from laststand.emulator.core.types import MetadataOffset, NodeId


async def stop_nodes(target: ProcessTarget) -> None:
    """Stops the brokers that run, then the controllers, and records how each ended.

    It completes what brokers that were killed had written of clients of Apache Kafka.
    """
    cluster = target.cluster
    brokers = await _stop(target, cluster.layout.broker_ids)
    committed = await target.committed_end()
    _note_stopped(target, brokers, committed)
    _note_stopped(target, await _stop(target, cluster.layout.controller_ids), committed)
    await asyncio.to_thread(cluster.files.catch_up)
    for path in foreign_history_files(cluster.layout.directory):
        complete_history(path)


async def _stop(target: ProcessTarget, nodes: Sequence[NodeId]) -> dict[NodeId, ProcessEnd | None]:
    running = [node_id for node_id in nodes if target.cluster.is_running(node_id)]
    ends = await asyncio.gather(*(target.cluster.stop_node(node_id) for node_id in running))
    return dict(zip(running, ends, strict=True))


def _note_stopped(target: ProcessTarget, ends: Mapping[NodeId, ProcessEnd | None], committed: MetadataOffset) -> None:
    for node_id, end in ends.items():
        if end is not None:
            target.note_end(node_id, events.IncarnationEnd.STOPPED, end, committed)


def note_crash(cluster: ProcessCluster, log: HarnessLog, name: str, end: ProcessEnd) -> str:
    """Records that a process ended unexpectedly, or failed while stopping; returns a description."""
    if name.isdigit():
        for node_id in cluster.layout.machine_of(NodeId(int(name))):
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
