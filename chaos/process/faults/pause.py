"""SIGSTOP and SIGCONT: a process is suspended; its connections stay open and its clock runs on."""

from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.Pause)
async def pause(target: ProcessTarget, action: actions.Pause[NodeId]) -> actions.Outcome:
    """Pauses nodes."""
    cluster = target.cluster
    changed = [await cluster.pause_node(node_id) for node_id in cluster.layout.processes_of(action.nodes)]
    if not any(changed):
        return actions.no_op("nothing ran")
    return actions.Outcome(took_effect=True, affected=all(changed), seen="all threads stand still")


@executes(actions.Resume)
async def resume(target: ProcessTarget, action: actions.Resume[NodeId]) -> actions.Outcome:
    """Continues paused nodes."""
    cluster = target.cluster
    changed = [await cluster.resume_node(node_id) for node_id in cluster.layout.processes_of(action.nodes)]
    if not any(changed):
        return actions.no_op("nothing was paused")
    return actions.Outcome(took_effect=True, affected=all(changed), seen="all threads run")
