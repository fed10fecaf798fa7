"""The end of a run: mend what is broken, wait until that shows, and stop every node in order."""

import asyncio

from chaos.barriers import Sight, describe_partition
from chaos.faults.heal import heal_all
from chaos.faults.pause import resume
from chaos.faults.power_cycle import start
from chaos.faults.stage import Stage
from chaos.step_player import StepPlayer
from emulator.cluster.toxiproxy import LinkState
from emulator.core.events import IncarnationEnd


async def restore(stage: Stage, player: StepPlayer) -> None:
    """Heals every link, continues what is paused and starts what is down.

    Raises:
        StartError: a node did not become ready.
        ToxiproxyError: a link could not be mended.
    """
    cluster = stage.cluster
    links = cluster.toxiproxy
    if links is not None and any(links.state(link) is not LinkState.OPEN for link in links.links):
        await player.mend_with(heal_all(stage))
    for node_id in cluster.layout.node_ids:
        if cluster.is_paused(node_id):
            await player.mend_with(resume(stage, node_id))
        elif not cluster.is_running(node_id):
            await player.mend_with(start(stage, node_id))


def settled(stage: Stage) -> Sight:
    """Whether every partition has a leader and its full ISR, or an excuse, and every broker is unfenced."""
    unsettled = []
    for partition, state in sorted(stage.watch.image.partitions.items()):
        # Where nobody may be elected, KIP-966 leaves the choice to an administrator: that is the listed excuse.
        is_excused = state.leader is None and not state.isr and not state.elr
        is_full = state.leader is not None and set(state.isr) == set(state.replicas)
        if not is_full and not is_excused:
            unsettled.append(f"{partition} {describe_partition(state)}")
    fenced = sorted(broker for broker, registration in stage.watch.image.brokers.items() if registration.fenced)
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
