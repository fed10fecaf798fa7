"""Ends of nodes: stopped in order, or unexpectedly."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from laststand.chaos.play.barriers import Observation
from laststand.chaos.play.waiting import StepError
from laststand.chaos.process.harness_log import HarnessLog
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.client.history import complete_history
from laststand.emulator.cluster.child import ProcessEnd
from laststand.emulator.cluster.layout import foreign_history_files
from laststand.emulator.cluster.process_cluster import ProcessCluster
from laststand.emulator.core import events
from laststand.emulator.core.types import BrokerId, MetadataOffset, NodeId

_SAID_MAX: Final = 200
"""Most characters of a process's last line on standard error."""


async def stop_nodes(target: ProcessTarget) -> None:
    """Stops the brokers that run, then the controllers, and records how each ended.

    It completes what brokers that were killed had written of clients of Apache Kafka.
    """
    cluster = target.cluster
    layout = cluster.layout
    shared = [broker_id for broker_id in layout.broker_ids if len(layout.machine_of(broker_id)) > 1]
    leaving = _end_brokers(target, shared)
    brokers = await _stop(target, [broker_id for broker_id in layout.broker_ids if broker_id not in shared])
    await _until_left(target, leaving)
    committed = await target.committed_end()
    _note_stopped(target, brokers | await _stop(target, shared), committed)
    _note_stopped(target, await _stop(target, cluster.layout.controller_ids), committed)
    await asyncio.to_thread(cluster.files.catch_up)
    for path in foreign_history_files(cluster.layout.directory):
        complete_history(path)


def _end_brokers(target: ProcessTarget, shared: Sequence[BrokerId]) -> list[BrokerId]:
    """Ends brokers whose controllers share their processes and continue, so that each broker finds a controller."""
    cluster = target.cluster
    leaving = [each for each in shared if cluster.is_running(each) and not cluster.is_paused(each)]
    for broker_id in leaving:
        cluster.end_broker(broker_id)
    return leaving


async def _until_left(target: ProcessTarget, leaving: Sequence[BrokerId]) -> None:
    """Waits until the controllers have fenced brokers that leave; these give up after a session."""

    def seen() -> Observation:
        registered = target.image.brokers
        waiting = [each for each in leaving if each in registered and not registered[each].fenced]
        return Observation(reached=not waiting, text=f"brokers that have not left: {waiting}")

    with suppress(StepError):
        await target.wait(seen, timeout_s=target.session_timeout_ms / 1000)


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
    said = f": {end.stderr_tail[-1][:_SAID_MAX]}" if end.stderr_tail else ""
    return f"process {name} ended by itself ({end.cause.value}, exit code {end.exit_code}){said}"
