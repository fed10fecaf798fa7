"""The ends of a run and of its nodes: mend what is broken, stop in order, and put crashes on record."""

import asyncio
from collections.abc import Iterable

from chaos.barriers import Sight, describe_partition
from chaos.faults.stage import Stage
from chaos.harness_log import HarnessLog
from chaos.scene import Scene
from chaos.step_player import StepPlayer
from emulator.cluster.child import ProcessEnd
from emulator.cluster.process_cluster import ProcessCluster
from emulator.core.events import IncarnationEnd
from emulator.core.image import MetadataImage
from emulator.core.types import NodeId


async def restore(scene: Scene, player: StepPlayer, node_ids: Iterable[NodeId]) -> None:
    """Heals every link, continues what is paused of ``node_ids`` and starts what is down.

    Raises:
        EmulatorError: a node did not become ready, or a link could not be mended.
    """
    if scene.has_broken_links:
        await player.mend_with(scene.heal_all())
    for node_id in node_ids:
        if scene.is_paused(node_id):
            await player.mend_with(scene.resume(node_id))
        elif not scene.is_running(node_id):
            await player.mend_with(scene.start(node_id))


def settled(image: MetadataImage) -> Sight:
    """Whether every partition has a leader and its full ISR, or an excuse, and every broker is unfenced."""
    unsettled = []
    for partition, state in sorted(image.partitions.items()):
        # Where nobody may be elected, KIP-966 leaves the choice to an administrator: that is the listed excuse.
        is_excused = state.leader is None and not state.isr and not state.elr
        is_full = state.leader is not None and set(state.isr) == set(state.replicas)
        if not is_full and not is_excused:
            unsettled.append(f"{partition} {describe_partition(state)}")
    fenced = sorted(broker for broker, registration in image.brokers.items() if registration.fenced)
    if fenced:
        unsettled.append(f"brokers {fenced} are fenced")
    return Sight(reached=not unsettled, text="; ".join(unsettled) or "leaders and full ISRs")


async def stop_nodes(stage: Stage) -> None:
    """Stops the brokers that run, then the controller, and records how each ended."""
    cluster, controller = stage.cluster, stage.cluster.layout.controller_id
    brokers = [broker for broker in cluster.layout.broker_ids if cluster.is_running(broker)]
    ends = await asyncio.gather(*(cluster.stop_node(broker) for broker in brokers))
    committed = await stage.watch.committed_end()
    for broker, end in zip(brokers, ends, strict=True):
        if end is not None:
            stage.note_end(broker, IncarnationEnd.STOPPED, end, committed)
    controller_end = await cluster.stop_node(controller)
    if controller_end is not None:
        stage.note_end(controller, IncarnationEnd.STOPPED, controller_end, committed)


def note_crash(cluster: ProcessCluster, log: HarnessLog, name: str, end: ProcessEnd) -> str:
    """Records that a process ended unasked, or not as it was asked to; returns that in words."""
    if name.isdigit():
        node_id = NodeId(int(name))
        log.ended(
            node_id,
            cluster.incarnation(node_id),
            IncarnationEnd.UNEXPECTED,
            process_end=end,
            metadata_offset=None,
        )
    return f"process {name} ended by itself ({end.cause.value}, exit code {end.exit_code})"
