"""SIGKILL: the process is gone at once, what it wrote stays, as the page cache outlives a process."""

from chaos.faults.injury import Injury
from chaos.faults.stage import Stage
from emulator.core.events import IncarnationEnd
from emulator.core.types import NodeId


async def kill(stage: Stage, node_id: NodeId) -> Injury:
    """Kills a node; a no-op if it is down."""
    end = await stage.cluster.kill_node(node_id)
    if end is None:
        return Injury(fault="kill", target=str(node_id), bit=None)
    stage.downed[node_id] = "kill"
    stage.note_end(node_id, IncarnationEnd.KILLED, end, await stage.watch.committed_end())
    return Injury(fault="kill", target=str(node_id), bit=f"process {end.pid} was killed")
