"""A container leaves its network, as if its cable were pulled: every connection of the node is silent, both ways.

The harness cannot reach it either, which proves the effect.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.probe import ProbeOutcome, probe
from laststand.emulator.cluster.zookeeper_probe import server_probes
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions

_SILENT_AFTER_S: Final = 0.5
_ANSWERS_WITHIN_S: Final = 10.0
_LOOK_INTERVAL_S: Final = 0.05


@executes(actions.Disconnect)
async def disconnect(target: ProcessTarget, action: actions.Disconnect[NodeId]) -> actions.Outcome:
    """Takes the containers of nodes off their network."""
    changed = await _each(action.nodes, target.cluster.disconnect_node)
    if not changed:
        return actions.no_op("it is not on the network")
    silent = [node_id for node_id in changed if not await _answers(target, node_id)]
    if len(silent) < len(action.nodes):
        return actions.unproved(f"only {silent} are silent")
    return actions.effective("no answer at its address")


@executes(actions.Connect)
async def connect(target: ProcessTarget, action: actions.Connect[NodeId]) -> actions.Outcome:
    """Puts the containers of nodes back on the network, at their former address."""
    changed = await _each(action.nodes, target.cluster.connect_node)
    if not changed:
        return actions.no_op("it is on the network")
    deadline = asyncio.get_running_loop().time() + _ANSWERS_WITHIN_S
    waiting = [node_id for node_id in changed if target.is_answering(node_id)]
    while waiting and asyncio.get_running_loop().time() < deadline:
        waiting = [node_id for node_id in waiting if not await _answers(target, node_id)]
        await asyncio.sleep(_LOOK_INTERVAL_S)
    if waiting:
        return actions.unproved(f"no answer from {waiting}")
    return actions.effective("it answers at its address")


async def _each(nodes: tuple[NodeId, ...], change: Callable[[NodeId], Awaitable[bool]]) -> list[NodeId]:
    return [node_id for node_id in nodes if await change(node_id)]


async def _answers(target: ProcessTarget, node_id: NodeId) -> bool:
    cluster = target.cluster
    outcome = await probe(
        cluster.direct_addresses()[node_id],
        timeout_s=_SILENT_AFTER_S,
        probe_connection=server_probes(cluster.layout).get(node_id),
        context=cluster.token.dialling_context,
    )
    return outcome is ProbeOutcome.PASSES
