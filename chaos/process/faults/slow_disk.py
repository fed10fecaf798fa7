"""A slow disk: every fsync of a node takes longer, shown by the node itself when it has waited for one."""

from laststand.chaos.process.faults.disks import are_felt, change
from laststand.chaos.process.faults.registry import executes
from laststand.chaos.process.target import ProcessTarget
from laststand.emulator.cluster.node_files import DiskChange
from laststand.emulator.core.types import NodeId
from laststand.emulator.plan import actions


@executes(actions.SlowDisk)
async def slow_disk(target: ProcessTarget, action: actions.SlowDisk[NodeId]) -> actions.Outcome:
    """Makes every fsync of nodes take longer; a node that syncs nothing meanwhile proves no effect."""
    if not await change(target, action.nodes, DiskChange(sync_delay_ms=action.delay_ms)):
        return actions.no_op("it takes as long already")
    if action.is_repair:
        return actions.effective("the disk is as quick as before")
    if not await are_felt(target, action.nodes):
        return actions.unproved("a node did not wait for its disk")
    return actions.effective(f"an fsync takes {action.delay_ms} ms longer")
