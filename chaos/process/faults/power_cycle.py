"""Orderly stop, and start of nodes that are down."""

import asyncio

from laststand.chaos.process.faults.disk_errors import is_full, start_on_full_disk
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.core.zookeeper.inter_broker_protocol import ibp_level
from laststand.emulator.plan import actions


@executes(actions.Stop)
async def stop(target: ProcessTarget, action: actions.Stop[NodeId]) -> actions.Outcome:
    """Stops nodes in order. A node that does not end in time is killed and counts as crashed."""
    stopped = await target.take_down(
        action.nodes, target.cluster.stop_node, fault="stop", recorded_as=events.IncarnationEnd.STOPPED
    )
    if not stopped:
        return actions.no_op("nothing ran")
    seen = "; ".join(f"process {end.pid} {end.cause.value}" for end in stopped)
    return actions.Outcome(took_effect=True, affected=len(stopped) == len(action.nodes), seen=seen)


@executes(actions.Start)
async def start(target: ProcessTarget, action: actions.Start[NodeId]) -> actions.Outcome:
    """Starts nodes, of another era, release or protocol if one is named; one whose disk is full ends again.

    Raises:
        StartError: a node did not become ready.
    """
    down = [node_id for node_id in action.nodes if not target.cluster.is_running(node_id)]
    if not down:
        return actions.no_op("it runs")
    is_configured = action.inter_broker_protocol_version is not None or action.era is not None
    if is_configured and not target.cluster.configures_nodes:
        return actions.no_op("its container keeps the configuration that it was made with")
    for node_id in down:
        target.cluster.set_release(node_id, era=action.era, kafka=action.kafka)
    if action.inter_broker_protocol_version is not None:
        target.cluster.protocols.update(dict.fromkeys(down, ibp_level(action.inter_broker_protocol_version)))
    processes = target.cluster.layout.processes_of(down)
    seen = await asyncio.gather(*(_start(target, node_id) for node_id in processes))
    return actions.Outcome(took_effect=True, affected=len(down) == len(action.nodes), seen="; ".join(seen))


async def _start(target: ProcessTarget, node_id: NodeId) -> str:
    for each in target.together(node_id):
        if await is_full(target, each):
            return await start_on_full_disk(target, each)
    incarnation = await target.cluster.start_node(node_id)
    for each in target.together(node_id):
        target.downed.pop(each, None)
    return f"incarnation {incarnation} listens"
