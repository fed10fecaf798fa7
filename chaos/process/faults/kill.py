"""SIGKILL: the process ends at once; what it wrote stays, since the page cache outlives a process."""

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.events import IncarnationEnd
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan.actions import Kill, Outcome, no_op


@executes(Kill)
async def kill(target: ProcessTarget, action: Kill[NodeId]) -> Outcome:
    """Kills nodes at once."""
    killed = await target.take_down(
        action.nodes, target.cluster.kill_node, fault="kill", recorded_as=IncarnationEnd.KILLED
    )
    if not killed:
        return no_op("nothing ran")
    seen = "; ".join(f"process {end.pid} was killed" for end in killed)
    return Outcome(took_effect=True, bit=len(killed) == len(action.nodes), seen=seen)
