"""SIGSTOP and SIGCONT: a process stands still, its connections stay open, its clock runs on."""

from chaos.faults.injury import Injury, Recovery
from chaos.faults.stage import Stage
from emulator.core.types import NodeId


async def pause(stage: Stage, node_id: NodeId) -> Injury:
    """Pauses a node; a no-op if it is down or paused already."""
    bit = "all threads stand still" if await stage.cluster.pause_node(node_id) else None
    return Injury(fault="pause", target=str(node_id), bit=bit)


async def resume(stage: Stage, node_id: NodeId) -> Recovery:
    """Continues a paused node; a no-op if it runs or is down."""
    seen = "its threads run" if await stage.cluster.resume_node(node_id) else None
    return Recovery(fault="pause", target=str(node_id), seen=seen)
