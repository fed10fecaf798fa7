"""SIGKILL: the process ends at once; what it wrote stays, since the page cache outlives a process."""

import asyncio

from chaos.process.fault_target import FaultTarget
from chaos.process.faults.registry import executes
from emulator.core.events import IncarnationEnd
from emulator.core.types import NodeId
from emulator.plan.actions import Kill, Outcome, no_op


@executes(Kill)
async def kill(target: FaultTarget, action: Kill[NodeId]) -> Outcome:
    """Kills nodes at once."""
    ends = await asyncio.gather(*(target.cluster.kill_node(node_id) for node_id in action.nodes))
    committed = await target.committed_end()
    killed = []
    for node_id, end in zip(action.nodes, ends, strict=True):
        if end is not None:
            target.downed[node_id] = "kill"
            target.note_end(node_id, IncarnationEnd.KILLED, end, committed)
            killed.append(f"process {end.pid} was killed")
    if not killed:
        return no_op("nothing ran")
    return Outcome(took_effect=True, bit=len(killed) == len(action.nodes), seen="; ".join(killed))
