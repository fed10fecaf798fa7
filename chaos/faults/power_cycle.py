"""Orderly stop, and start of a node that is down."""

from chaos.faults.injury import Injury, Recovery
from chaos.faults.stage import Stage
from emulator.core.events import IncarnationEnd
from emulator.core.types import NodeId


async def stop(stage: Stage, node_id: NodeId) -> Injury:
    """Stops a node in order; a no-op if it is down. One that does not end in time is killed and counts as crashed."""
    end = await stage.cluster.stop_node(node_id)
    if end is None:
        return Injury(fault="stop", target=str(node_id), bit=None)
    stage.downed[node_id] = "stop"
    stage.note_end(node_id, IncarnationEnd.STOPPED, end, await stage.watch.committed_end())
    return Injury(fault="stop", target=str(node_id), bit=f"process {end.pid} {end.cause.value}")


async def start(stage: Stage, node_id: NodeId) -> Recovery:
    """Starts a node; a no-op if it runs.

    Raises:
        StartError: it did not become ready.
    """
    fault = stage.downed.pop(node_id, "stop")
    if stage.cluster.is_running(node_id):
        return Recovery(fault=fault, target=str(node_id), seen=None)
    incarnation = await stage.cluster.start_node(node_id)
    return Recovery(fault=fault, target=str(node_id), seen=f"incarnation {incarnation} listens")
