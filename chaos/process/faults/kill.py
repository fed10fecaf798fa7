"""SIGKILL: the process ends at once; its written bytes stay, since the page cache outlives a process."""

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.Kill)
async def kill(target: ProcessTarget, action: actions.Kill[NodeId]) -> actions.Outcome:
    """Kills nodes at once."""
    killed = await target.take_down(
        action.nodes, target.cluster.kill_node, fault="kill", recorded_as=events.IncarnationEnd.KILLED
    )
    if not killed:
        return actions.no_op("nothing ran")
    seen = "; ".join(f"process {end.pid} was killed" for end in killed)
    return actions.Outcome(took_effect=True, affected=len(killed) == len(action.nodes), seen=seen)
