"""A failed disk: SIGKILL, and an empty disk at the next start, which has room.

The sync ledger, which has what was durable on the old disk, is removed with the log directory.
"""

import asyncio

from laststand.chaos.process.faults.disk_errors import make_room
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.node_files import EmptyDisk
from laststand.emulator.core import events
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.ReplaceDisk)
async def replace_disk(target: ProcessTarget, action: actions.ReplaceDisk[NodeId]) -> actions.Outcome:
    """Kills nodes that run, and empties their disks; a no-op if nothing was ever written to one."""
    emptied = [await _replace(target, node_id) for node_id in action.nodes]
    if not any(emptied):
        return actions.no_op("there was nothing on the disk")
    return actions.Outcome(took_effect=True, affected=all(emptied), seen="the disk is empty")


async def _replace(target: ProcessTarget, node_id: NodeId) -> bool:
    await target.take_down(
        [node_id], target.cluster.kill_node, fault="replace_disk", recorded_as=events.IncarnationEnd.POWER_LOST
    )
    target.downed[node_id] = "replace_disk"
    await make_room(target, [node_id])
    return await asyncio.to_thread(target.cluster.files.perform, EmptyDisk(node_id=node_id))
